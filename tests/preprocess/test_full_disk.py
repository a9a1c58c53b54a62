"""A disk that is full before a worker has started: exit code 75 and the same command goes on, not a traceback."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from latentprep.core.errors import ExitCode
from latentprep.preprocess.config_file import resolved_yaml

from .runs import bulk_config


@pytest.mark.parametrize("limit", [0, 60, 4096])
def test_a_disk_that_fills_up_before_the_workers_run_is_exit_code_75(limit: int, tmp_path: Path):
    """At the lock, at a worker's board, at the plan: wherever it shows first."""
    (tmp_path / "prep.yaml").write_text(resolved_yaml(bulk_config(tmp_path, 40, seconds=(0.3, 1.0), workers=1)))

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "latentprep.cli.main", "svs", "--config", tmp_path / "prep.yaml"]
    run = subprocess.run(command, preexec_fn=limit_files, capture_output=True, text=True, check=False)

    assert ExitCode.STOPPED == run.returncode, run.stderr
    assert "a file size limit is reached" in run.stderr
    assert "give the same command again" in run.stderr
