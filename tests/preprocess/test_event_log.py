"""Nobody who listens, and no disk, ends a run by refusing an event."""

import errno
import json
from pathlib import Path

import pytest

from latentprep.preprocess.event_log import EventLog
from latentprep.preprocess.events import Event, Notice


class Listener:
    """Fails from the second event on."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.heard: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.heard.append(event)
        if len(self.heard) > 1:
            raise OSError(self._number, "refused")


@pytest.mark.parametrize("number", [errno.EIO, errno.EPIPE])
def test_a_listener_that_left_is_told_nothing_more(number: int, tmp_path: Path):
    """A closed terminal; the file has it all."""
    listener = Listener(number)
    with EventLog(tmp_path / "events.jsonl", listener) as tell:
        for text in "abc":
            tell(Notice("info", text))

    assert ["a", "b"] == [event.text for event in listener.heard if isinstance(event, Notice)]
    assert list("abc") == [json.loads(line)["text"] for line in (tmp_path / "events.jsonl").open()]


def test_other_errors_of_a_listener_are_its_own(tmp_path: Path):
    """A programmer's mistake must not be swallowed."""
    with EventLog(tmp_path / "events.jsonl", Listener(errno.ENOENT)) as tell:
        tell(Notice("info", "a"))
        with pytest.raises(FileNotFoundError):
            tell(Notice("info", "b"))


def test_a_file_that_cannot_be_opened_is_done_without(tmp_path: Path):
    """The events still reach who listens."""
    (tmp_path / "events.jsonl").mkdir()
    heard: list[Event] = []
    with EventLog(tmp_path / "events.jsonl", heard.append) as tell:
        tell(Notice("info", "a"))

    assert [Notice("info", "a")] == heard
