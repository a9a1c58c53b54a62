"""Who lives and does nothing, told by boards and a clock that the tests turn."""

from pathlib import Path

import pytest

from latentprep.preprocess.config import SupervisionSettings
from latentprep.preprocess.dispatch.board import Board
from latentprep.preprocess.dispatch.watchdog import Verdict, Watchdog

PATIENCE = SupervisionSettings(decode_timeout_s=120, stall_s=300, load_s=1800)


class Worker:
    """What the watchdog sees of one."""

    def __init__(self, folder: Path) -> None:
        self.board = Board.create(folder / "board", 2)
        self.board.ready()
        self.stopped = False

    def is_stopped(self) -> bool:
        return self.stopped


class Clock:
    """A watchdog that looks once a second."""

    def __init__(self, worker: Worker) -> None:
        self._now = 0.0
        self._worker = worker
        self.dog = Watchdog(PATIENCE, lambda: self._now)

    def sleep(self, seconds: float) -> None:
        """The whole process group stands still."""
        self._now += seconds

    def watch(self, seconds: int) -> Verdict | None:
        """The first verdict in so many seconds."""
        for _ in range(seconds):
            self._now += 1.0
            self.dog.tick()
            if verdict := self.dog.look(0, self._worker):
                return verdict
        return None


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


@pytest.fixture
def clock(worker: Worker) -> Clock:
    return Clock(worker)


def test_a_decoder_that_does_not_return_names_its_clip(worker: Worker, clock: Clock):
    worker.board.begin(0, chunk_id=7, row=3)
    early = clock.watch(119)
    worker.board.begin(1, chunk_id=7, row=4)

    assert early is None
    assert Verdict("its decoder did not return in 121 s", (7, 3)) == clock.watch(10)


def test_a_worker_whose_counters_stand_still_is_stalled(worker: Worker, clock: Clock):
    worker.board.add("decoded_clips", 1)
    early = clock.watch(299)
    worker.board.add("decoded_clips", 1)
    later = clock.watch(300)

    assert (None, None) == (early, later)
    assert Verdict("no stage moved for 301 s") == clock.watch(10)


def test_a_stopped_workers_clips_are_not_blamed(worker: Worker, clock: Clock):
    """Neither while it is stopped nor when it goes on."""
    worker.board.begin(0, chunk_id=7, row=3)
    clock.watch(50)
    worker.stopped = True
    assert clock.watch(200) is None
    worker.stopped = False

    assert clock.watch(45) is None
    assert Verdict("no stage moved for 301 s") == clock.watch(10)


def test_nobody_is_blamed_for_the_sleep_of_all(worker: Worker, clock: Clock):
    """Ctrl-Z, ten minutes, fg."""
    worker.board.begin(0, chunk_id=7, row=3)
    clock.watch(10)
    clock.sleep(600)

    assert clock.watch(60) is None


def test_a_long_clip_on_the_encoder_may_take_what_it_was_allowed(worker: Worker, clock: Clock):
    """An hour of audio in windows moves no counter for twenty minutes on a CPU."""
    worker.board.allow(1200)
    during = clock.watch(1100)
    worker.board.allow(0)
    worker.board.add("encode", 1100)

    assert during is None
    assert Verdict("no stage moved for 301 s") == clock.watch(400)


def test_loading_has_a_patience_of_its_own(tmp_path: Path):
    """Longer than any stall; but a driver that hangs does so for ever."""
    worker = Worker(tmp_path)
    worker.board = Board.create(tmp_path / "board", 2)
    clock = Clock(worker)
    early = clock.watch(1800)

    assert early is None
    assert Verdict("it was not ready after 1801 s") == clock.watch(10)


def test_a_worker_without_work_is_forgotten(worker: Worker, clock: Clock):
    """The time before its next chunk does not count."""
    clock.watch(200)
    clock.dog.forget(0)

    assert clock.watch(299) is None
