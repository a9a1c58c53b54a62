"""Output that can't be written ends nothing."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from latentprep.cli.forgiving import ForgivingStream
from latentprep.preprocess.config_file import resolved_yaml

from ..preprocess.runs import bulk_config, prep


class Broken(io.StringIO):
    """A stream whose reader left."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_broken_stream_falls_silent_for_good():
    """The first failure is the last one that anybody notices."""
    stream = ForgivingStream(Broken())

    assert 5 == stream.write("hello")
    assert 5 == stream.write("again")
    stream.flush()


def test_a_working_stream_gets_every_word():
    """Forgiving is not forgetting."""
    target = io.StringIO()

    ForgivingStream(target).write("hello")

    assert "hello" == target.getvalue()


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full >/dev/full", "2>&1 >/dev/null | true", ">&- 2>&-"])
def test_a_run_whose_output_nobody_takes_still_makes_its_dataset(redirection: str, tmp_path: Path):
    """A `tee` that died or a full log disk must not cost a run of days."""
    (tmp_path / "prep.yaml").write_text(resolved_yaml(bulk_config(tmp_path, 12, seconds=(0.5, 1.0), workers=1)))
    command = f"{sys.executable} -m latentprep.cli.main svs --config {tmp_path}/prep.yaml {redirection}"

    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], check=False, capture_output=True, timeout=120)

    assert 0 == done.returncode
    assert (tmp_path / "out/state.json").exists()


def test_the_package_runs_as_a_module(tmp_path: Path):
    """Silence would be taken for success."""
    shown = prep("--version")

    assert shown.stdout.startswith("prep, version ")
