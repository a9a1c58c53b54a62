"""``events.jsonl``: every event of every run on an output folder, one JSON line each, with its time.

Who listens may go away: a terminal that was closed (EIO) or the reader of a pipe (EPIPE) is told nothing more, and the
run goes on.
"""

import contextlib
import errno
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
        self._listens = True
        self._file: BinaryIO | None = None

    def __enter__(self) -> "EventLog":
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def __call__(self, event: events.Event) -> None:
        line = {"time": round(time.time(), 3), "event": type(event).__name__, **msgspec.to_builtins(event)}
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.write(msgspec.json.encode(line) + b"\n")
        if self._listens:
            try:
                self._pass_on(event)
            except OSError as error:
                if error.errno not in (errno.EIO, errno.EPIPE):
                    raise
                self._listens = False
