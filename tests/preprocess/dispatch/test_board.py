"""What a parent can read of a worker at any time."""

import time
from pathlib import Path

import pytest

from latentprep.preprocess.dispatch.board import Board


def test_counters_and_clips_written_by_the_worker_are_read_by_the_parent(tmp_path: Path):
    """Two mappings of one file; the parent's works after the worker's death, too."""
    parent = Board.create(tmp_path / "board", num_slots=2)
    worker = Board(tmp_path / "board", num_slots=2)

    worker.add("encode", 1.5)
    worker.add("encode", 0.25)
    worker.begin(1, chunk_id=7, row=3)

    assert 1.75 == parent.stages(0).encode
    assert [(7, 3)] == [(clip.chunk_id, clip.row) for clip in parent.in_flight()]


def test_a_clip_that_is_done_is_no_suspect(tmp_path: Path):
    """Only what was in flight when the worker died can have killed it."""
    board = Board.create(tmp_path / "board", num_slots=1)
    board.begin(0, chunk_id=7, row=3)
    board.end(0)

    assert [] == board.in_flight()


def test_the_pulse_changes_with_every_counter(tmp_path: Path):
    """A worker whose pulse stands still is stalled."""
    board = Board.create(tmp_path / "board", num_slots=1)
    before = board.pulse()
    same = board.pulse()
    board.add("decoded_clips", 1)

    assert before == same
    assert before != board.pulse()


def test_room_for_threads_is_no_sign_of_life(tmp_path: Path):
    """Time passes for a stalled worker, too."""
    board = Board.create(tmp_path / "board", num_slots=4)
    board.ready()
    before = board.pulse()
    board.set_threads(4)

    assert before == board.pulse()


def test_thread_seconds_are_the_active_threads_over_the_time_since_readiness(tmp_path: Path):
    """Loading for a minute is no minute of idle threads; a change of their number counts from its moment on."""
    parent = Board.create(tmp_path / "board", num_slots=4)
    worker = Board(tmp_path / "board", num_slots=4)
    worker.set_threads(4)
    assert (0.0, 0.0, 4) == (parent.stages(0).span, parent.stages(0).thread_seconds, parent.stages(0).threads)

    worker.ready()
    time.sleep(0.05)
    worker.set_threads(1)
    halfway = parent.stages(0)
    time.sleep(0.05)
    now = parent.stages(0)

    assert halfway.span < halfway.thread_seconds <= 4 * halfway.span
    assert now.span - halfway.span == pytest.approx(now.thread_seconds - halfway.thread_seconds)


def test_a_timed_block_counts_also_when_it_raises(tmp_path: Path):
    board = Board.create(tmp_path / "board", num_slots=1)
    with pytest.raises(OSError, match="disk"), board.timed("blocked"):
        raise OSError("disk")

    assert board.stages(0).blocked > 0


def test_a_new_board_is_loading_until_ready(tmp_path: Path):
    """Loading and compiling may take longer than a stall."""
    board = Board.create(tmp_path / "board", num_slots=1)
    assert board.loading

    board.ready()

    assert not board.loading
