"""Signals of the parent: the first one asks for an orderly stop, another one 2 s later or more means now.

Schedulers send the same signal twice within milliseconds (to the group and to the process), so a second one only counts
after ``AGAIN_AFTER_S``. What a request does depends on what the run is at:

    before the workers start     ``Stopped`` is raised at once: the plan's files are temporary until they are complete
    while workers run            nothing is raised (``polled``): the fleet drains them
    when all is committed        the first one is noted (``finishing``), since a few seconds make the run complete

SIGHUP (a closed terminal) is ignored: a dropped connection costs no work.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType

from ...core.errors import Stopped

DRAIN_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
AGAIN_AFTER_S = 2.0
_NONE, _ASKED, _NOW = 0, 1, 2
"""How urgent the requests so far are."""


class StopRequests:
    """Installs the handlers while entered; ``fileno`` becomes readable when a signal came.

    Outside of the main thread, where Python takes no signals, it does nothing.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._clock = now
        self._first: float | None = None
        self._tolerated = _NONE
        self.name = ""
        """Name of the first signal."""
        self.urgency = _NONE
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before: dict[int, object] = {}

    def __enter__(self) -> "StopRequests":
        if threading.current_thread() is threading.main_thread():
            for number in DRAIN_SIGNALS:
                self._before[number] = signal.signal(number, self._asked)
            if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
                self._before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            if handler is not None:  # None: it was not set from Python, and can't be set again
                signal.signal(number, handler)  # type: ignore[arg-type]
        os.close(self._reader)
        os.close(self._writer)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.ask(signal.Signals(number).name)

    def ask(self, name: str) -> None:
        """Count one request to stop. Raises Stopped if it is not tolerated now, once for each degree of urgency."""
        now = self._clock()
        before = self.urgency
        if self._first is None:
            self._first, self.name, self.urgency = now, name, _ASKED
        elif now - self._first >= AGAIN_AFTER_S:
            self.urgency = _NOW
        with contextlib.suppress(BlockingIOError):  # full: it is readable anyway
            os.write(self._writer, b"s")
        if self.urgency > before:
            self.check()

    def check(self) -> None:
        """Raise Stopped if a request came that is not tolerated now (an exception in a handler can get lost)."""
        if self.urgency > self._tolerated:
            again = " for the second time" if self.urgency == _NOW else ""
            raise Stopped(
                f"{self.name} received{again}: stopped",
                why="what is committed is kept",
                fix="run the same command to go on",
            )

    def polled(self) -> contextlib.AbstractContextManager[None]:
        """While entered nothing is raised: who entered it looks at ``asked`` and ``immediately``."""
        self.check()
        return self._tolerate(_NOW)

    def finishing(self) -> contextlib.AbstractContextManager[None]:
        """While entered only a second request raises."""
        return self._tolerate(_ASKED)

    @contextlib.contextmanager
    def _tolerate(self, urgency: int) -> Iterator[None]:
        before, self._tolerated = self._tolerated, urgency
        try:
            yield
        finally:
            self._tolerated = before

    @property
    def asked(self) -> bool:
        return self.urgency >= _ASKED

    @property
    def immediately(self) -> bool:
        return self.urgency >= _NOW

    def fileno(self) -> int:
        """For ``multiprocessing.connection.wait``."""
        return self._reader

    def clear(self) -> None:
        """Empty the wake-up pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 64):
                pass
