"""A worker that somebody stopped (SIGSTOP), or that a driver holds, must not keep the others' run from its end."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from latentprep.preprocess.config_file import resolved_yaml
from tests.chaos.processes import send, workers_of
from tests.preprocess.runs import bulk_config

STALL_S = 3.0


def start(folder: Path, workers: int) -> subprocess.Popen[str]:
    """A run of a small corpus whose workers may stand still for ``STALL_S``."""
    config = bulk_config(folder, 60, seconds=(0.3, 1.0), workers=workers, supervision={"stall_s": STALL_S})
    (folder / "prep.yaml").write_text(resolved_yaml(config))
    command = [sys.executable, "-m", "latentprep.cli.main", "svs", "--config", folder / "prep.yaml"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stop_one(run: subprocess.Popen[str], workers: int) -> None:
    """Stop the worker that was started last, before it is ready."""
    deadline = time.monotonic() + 60
    while len(pids := workers_of(run.pid)) < workers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert send(max(pids), signal.SIGSTOP)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_stopped_while_it_loads_does_not_hold_the_run(workers: int, tmp_path: Path):
    """Alone it is replaced; beside others it is not waited for when all is done."""
    run = start(tmp_path, workers)
    try:
        stop_one(run, workers)
        shown, said = run.communicate(timeout=90)
    finally:
        run.kill()

    assert 0 == run.returncode, said
    assert "planned 60 = written 60 + skipped 0 + remaining 0" in shown
