"""One run on one part of an output folder."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.lock import Holder, boot_id, myself, part_lock


def test_a_second_run_is_refused_and_told_who_works_there(tmp_path: Path):
    """Two runs would write the same rows twice."""
    with part_lock(OutputPaths(tmp_path)), pytest.raises(OutputError) as caught, part_lock(OutputPaths(tmp_path)):
        pass

    assert f"process {myself().pid} on {myself().host}" in caught.value.what


def test_the_lock_is_gone_afterwards(tmp_path: Path):
    """Also after an error."""
    with pytest.raises(KeyError), part_lock(OutputPaths(tmp_path)):
        raise KeyError

    assert [] == list(OutputPaths(tmp_path).work.iterdir())


def write_lock(paths: OutputPaths, **changes: object) -> None:
    paths.work.mkdir(parents=True, exist_ok=True)
    paths.lock().write_bytes(msgspec.json.encode(msgspec.structs.replace(myself(), token="other", **changes)))


def test_a_lock_of_a_killed_process_is_taken_over_at_once(tmp_path: Path):
    """kill -9 leaves it behind."""
    paths = OutputPaths(tmp_path)
    script = f"from latentprep.preprocess.lock import *; import os; p = OutputPaths(Path({str(tmp_path)!r}))\n"
    script += "with part_lock(p): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script], check=False)
    assert paths.lock().exists()

    with part_lock(paths, wait=lambda seconds: pytest.fail("no need to wait")):
        assert myself().pid == msgspec.json.decode(paths.lock().read_bytes(), type=Holder).pid


def test_a_pid_that_another_process_has_now_is_stale(tmp_path: Path):
    """The start time tells them apart."""
    paths = OutputPaths(tmp_path)
    write_lock(paths, started=1)

    with part_lock(paths):
        pass


def test_a_lock_from_before_the_last_boot_is_stale(tmp_path: Path):
    """No process survives a boot."""
    paths = OutputPaths(tmp_path)
    write_lock(paths, boot_id="another")

    with part_lock(paths):
        pass


def test_another_machines_lock_is_stale_when_its_beat_stands_still(tmp_path: Path):
    """Its clock is never compared with ours: only whether the content changes while we watch."""
    paths = OutputPaths(tmp_path)
    write_lock(paths, host="elsewhere", boot_id=boot_id() + "x")
    waited: list[float] = []

    with part_lock(paths, wait=waited.append, stale_s=120):
        assert 120 == pytest.approx(sum(waited))


def test_another_machines_lock_that_beats_is_respected(tmp_path: Path):
    """A slow node is not a dead one."""
    paths = OutputPaths(tmp_path)
    write_lock(paths, host="elsewhere")

    def beat(seconds: float) -> None:
        write_lock(paths, host="elsewhere", beat=1)

    with pytest.raises(OutputError, match="elsewhere"), part_lock(paths, wait=beat):
        pass
