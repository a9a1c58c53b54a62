"""Messages between parent and workers."""

from multiprocessing import Pipe

import pytest

from latentprep.core.errors import DiskError
from latentprep.preprocess.dispatch import messages


@pytest.mark.parametrize("text", ["short", "x" * 10_000, "感" * 10_000, "\n" * 5_000])
def test_no_message_is_longer_than_a_pipe_takes_at_once(text: str):
    """Beyond 4,096 bytes a write is not atomic: a worker stopped in the middle would block the parent."""
    raw = messages.encode(messages.Failed("bug", messages.clipped(text)))

    assert len(raw) <= messages.MAX_BYTES


def test_an_error_with_three_long_parts_fits_and_arrives():
    """The parent says what, why and what to do in the worker's words."""
    error = DiskError("what " * 2000, why="why " * 2000, fix="感" * 2000 + "\ud800")
    raw = messages.encode(messages.Failed.of("disk", error))

    assert len(raw) <= messages.MAX_BYTES


def test_a_long_text_keeps_its_end():
    """The end of a traceback is what says what happened."""
    assert messages.clipped("begin " + "x" * 10_000 + " ValueError: the reason").endswith("ValueError: the reason")


def test_a_message_arrives_as_it_was_sent():
    """Through a real pipe."""
    ours, theirs = Pipe()
    sent = messages.Committed(chunk_id=3, num_rows=100, num_skipped=2)

    theirs.send_bytes(messages.encode(sent))

    assert sent == messages.receive(ours)
