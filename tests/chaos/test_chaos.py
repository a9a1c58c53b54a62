"""A short chaos run in the test suite, and tests of what a long one is judged by. ``make chaos`` is the long one."""

import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from .chaos import Settings, chaos
from .command import Ended
from .faults import DAMAGE, ENDING, SURVIVED, Fault, damage
from .verdict import objection


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_disturbed_run_loses_nothing(tmp_path: Path):
    """Promise 2: kill anything, any time."""
    settings = Settings(clips=200, faults=8, seconds=0, seed=6, clip_ms=40, faults_a_round=8, tmpfs=False)

    report = chaos(settings, tmp_path / "chaos")

    assert [] == report.objections, report.text()
    assert (0, 0, 0) == (report.total("lost"), report.total("twice"), report.total("other_digest"))
    assert 200 * len(report.rounds) == report.total("rows")
    assert report.faults.total() >= 4, "it was disturbed at all"
    assert report.total("runs") > len(report.rounds), "it was resumed at all"


def ended(exit_code: int, *, hung: bool = False, orphans: int = 0) -> Ended:
    return Ended(exit_code=exit_code, hung=hung, orphans=orphans, log=Path("log"), output="")


@pytest.mark.parametrize(
    ("run", "faults", "log"),
    [
        (ended(1), [], ""),
        (ended(1), [Fault.WORKER_KILL], "no worker could start"),
        (ended(1), [Fault.DISK_FULL], "Traceback"),
        (ended(75), [Fault.WORKER_KILL], ""),
        (ended(0), [Fault.PARENT_KILL], ""),
        (ended(-signal.SIGTERM), [Fault.TERM], "prep: read chaos: 2000 clips"),
        (ended(0, hung=True), [], ""),
        (ended(-signal.SIGKILL, orphans=1), [Fault.PARENT_KILL], ""),
    ],
)
def test_an_end_that_no_fault_explains_is_objected_to(run: Ended, faults: list[Fault], log: str):
    """A chaos run that takes any exit code would find nothing."""
    assert objection(run, Counter(faults), log) is not None


@pytest.mark.parametrize(
    ("code", "faults", "log"),
    [
        (0, [Fault.WORKER_KILL, Fault.TERM], ""),
        (75, [Fault.TERM], "prep: SIGTERM received"),
        (-signal.SIGTERM, [Fault.TERM], ""),
        (75, [Fault.DISK_FULL], ""),
        (-signal.SIGKILL, [Fault.PARENT_STOP_KILL], ""),
        (1, [Fault.WORKER_KILL, Fault.WORKER_STOP_KILL], "prep: no worker could start; rank 0: ..."),
        (1, [Fault.LIVE_PART_DELETED], "3 chunks were reported done and are not in /out"),
    ],
)
def test_an_end_that_the_faults_explain_is_taken(code: int, faults: list[Fault], log: str):
    assert objection(ended(code), Counter(faults), log) is None


def test_every_fault_is_drawn():
    assert set(Fault) == SURVIVED.keys() | ENDING.keys() | DAMAGE.keys()


@pytest.mark.parametrize("fault", DAMAGE)
def test_damage_changes_the_file_and_none_is_damaged_in_an_empty_folder(fault: Fault, tmp_path: Path):
    """A fault is counted only when it hit something."""
    rng = random.Random(0)
    nothing = damage(fault, tmp_path, rng)
    for name in (".prep/open/data-r0-00000.arrow.x.part", ".prep/journal/r0-x.jsonl", "data-r0-00001.arrow"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"a line\n" * 100)
    before = files(tmp_path)

    assert (False, True) == (nothing, damage(fault, tmp_path, rng))
    assert 2 == len(before.items() & files(tmp_path).items())


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
