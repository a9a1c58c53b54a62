"""``events.jsonl``: every event of every run on an output folder, one JSON line each, with its time."""

import time
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from . import events


class EventLog:
    """A sink that appends events to a file and passes them on. Losing a line to a full disk never stops a run."""

    def __init__(self, path: Path, pass_on: events.EventSink) -> None:
        self._path = path
        self._pass_on = pass_on
        self._file: BinaryIO | None = None

    def __enter__(self) -> "EventLog":
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("ab", buffering=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        self._file.close()

    def __call__(self, event: events.Event) -> None:
        line = {"time": round(time.time(), 3), "event": type(event).__name__, **msgspec.to_builtins(event)}
        try:
            if self._file is not None:
                self._file.write(msgspec.json.encode(line) + b"\n")
        except OSError:
            pass
        self._pass_on(event)
