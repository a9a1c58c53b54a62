"""Signals of the parent: the first one asks to drain, another one 2 s later or more means now.

Schedulers send the same signal twice within milliseconds (to the group and to the process), so a second one only counts
after ``AGAIN_AFTER_S``. SIGHUP (a closed terminal) is noted and the run goes on: no work is lost by a dropped connection.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType

DRAIN_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
AGAIN_AFTER_S = 2.0


class StopRequests:
    """Installs the handlers while entered; ``fileno`` becomes readable when a signal came."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._first: float | None = None
        self.name = ""
        """Name of the first signal."""
        self.immediately = False
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
            signal.signal(number, handler)  # type: ignore[arg-type]
        os.close(self._reader)
        os.close(self._writer)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.ask(signal.Signals(number).name)

    def ask(self, name: str) -> None:
        """Count one request to stop."""
        now = self._now()
        if self._first is None:
            self._first, self.name = now, name
        elif now - self._first >= AGAIN_AFTER_S:
            self.immediately = True
        os.write(self._writer, b"s")

    @property
    def asked(self) -> bool:
        return self._first is not None

    def fileno(self) -> int:
        """For ``multiprocessing.connection.wait``."""
        return self._reader

    def clear(self) -> None:
        """Empty the wake-up pipe."""
        try:
            while os.read(self._reader, 64):
                pass
        except BlockingIOError:
            pass
