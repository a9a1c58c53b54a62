"""One run on one part of an output folder."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import WHOLE, OutputPaths, Part
from latentprep.preprocess.lock import locked_parts, part_lock
from latentprep.preprocess.lock_holder import Holder, boot_id, myself
from latentprep.preprocess.lock_watch import LockState, LockWatch


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


def write_lock(paths: OutputPaths, part: Part = WHOLE, **changes: object) -> None:
    paths.work.mkdir(parents=True, exist_ok=True)
    paths.lock(part).write_bytes(msgspec.json.encode(msgspec.structs.replace(myself(), token="other", **changes)))


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


def test_a_run_that_was_given_up_for_dead_learns_it(tmp_path: Path):
    """It stood still for minutes, another machine took over: it must not write metadata beside it."""
    paths = OutputPaths(tmp_path)

    with part_lock(paths) as lock:
        lock.check()
        write_lock(paths, host="elsewhere")
        with pytest.raises(OutputError, match=r"on elsewhere has taken .* over"):
            lock.check()


def test_a_lock_that_somebody_deleted_is_made_again(tmp_path: Path):
    """A second run would not be refused without it."""
    paths = OutputPaths(tmp_path)

    with part_lock(paths) as lock:
        paths.lock().unlink()
        lock.check()
        assert paths.lock().exists()


def test_file_systems_without_hard_links_have_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """FAT, and some that live in user space."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    paths = OutputPaths(tmp_path)

    with part_lock(paths), pytest.raises(OutputError, match="another run"), part_lock(paths):
        pass
    assert not paths.lock().exists()


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


def test_parts_of_one_division_work_side_by_side(tmp_path: Path):
    """That is what they are for."""
    paths = OutputPaths(tmp_path)

    with part_lock(paths, Part(1, 3)), part_lock(paths, Part(3, 3)):
        assert [Part(1, 3), Part(3, 3)] == locked_parts(paths)


@pytest.mark.parametrize(
    ("held", "wanted"), [(Part(1, 3), Part(1, 3)), (Part(1, 3), Part(2, 4)), (Part(2, 3), WHOLE), (WHOLE, Part(2, 3))]
)
def test_parts_of_two_divisions_exclude_each_other(held: Part, wanted: Part, tmp_path: Path):
    """They hold the same chunks. Who is refused leaves no lock behind."""
    paths = OutputPaths(tmp_path)

    with part_lock(paths, held):
        with pytest.raises(OutputError, match="is working in"), part_lock(paths, wanted):
            pass
        assert [held] == locked_parts(paths)


def test_many_dead_nodes_are_watched_at_once(tmp_path: Path):
    """A hundred of them, one after another, would take over three hours."""
    paths = OutputPaths(tmp_path)
    for number in range(1, 5):
        write_lock(paths, Part(number, 4), host="elsewhere")
    waited: list[float] = []

    with part_lock(paths, wait=waited.append, stale_s=120):
        assert 120 == pytest.approx(sum(waited))
        assert [WHOLE] == locked_parts(paths)


def test_a_watched_lock_is_living_only_while_it_beats(tmp_path: Path):
    """By the observer's own clock: the holder's may be wrong by hours."""
    paths, now = OutputPaths(tmp_path), 0.0
    watch = LockWatch(stale_s=120, now=lambda: now)
    write_lock(paths, host="elsewhere")
    states = [watch.look(paths.lock()).state]
    for now, beat in ((60.0, 1), (179.0, 1), (181.0, 1), (182.0, 2)):  # noqa: B007
        write_lock(paths, host="elsewhere", beat=beat)
        states.append(watch.look(paths.lock()).state)
    paths.lock().unlink()
    states.append(watch.look(paths.lock()).state)

    unknown, living, stale, free = LockState.UNKNOWN, LockState.LIVING, LockState.STALE, LockState.FREE
    assert [unknown, living, living, stale, living, free] == states


def test_a_process_number_of_another_container_says_nothing(tmp_path: Path):
    """There it may be a living one, and here a dead one: only the beat counts."""
    paths = OutputPaths(tmp_path)
    write_lock(paths, namespace="pid:[1]", pid=1 << 30)

    assert LockState.UNKNOWN is LockWatch().look(paths.lock()).state
