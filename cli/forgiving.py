"""A text stream whose failures end nothing: progress is decoration, events.jsonl keeps it.

A terminal that was closed, a `tee` that died, a full disk behind `2>`, a process started without stderr: the run goes on
in silence.
"""

import contextlib
import os
import sys
from typing import Any, TextIO


class ForgivingStream:
    """Passes everything on to a stream until that fails for the first time; then drops it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or drop the text and all that follows."""
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # ValueError: the stream is closed
            self._fall_silent()
            return len(text)

    def flush(self) -> None:
        """Flush, or fall silent."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._fall_silent()

    def _fall_silent(self) -> None:
        self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the rest of the process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def forgive_output() -> None:
    """Make ``sys.stderr`` forgiving, also where there is none (started with ``2>&-``)."""
    if isinstance(sys.stderr, ForgivingStream):
        return
    stream = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = ForgivingStream(stream)  # type: ignore[assignment]


@contextlib.contextmanager
def said_or_not():
    """For a last word about work that is done: a reader that left doesn't turn success into failure."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
