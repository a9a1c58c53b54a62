"""``Tuner``: looks at a worker's board from time to time and applies what ``tuning.step`` says.

It has no thread: the worker's main thread calls ``tick`` after each batch. Which clips make a batch was planned; the tuner only
decides when they are decoded, so that rows do not depend on it.
"""

import time
from collections.abc import Callable

from ..events import StageSeconds
from .board import Board
from .messages import Adapted, FromWorker
from .prefetch import CHUNKS_AHEAD, Prefetcher
from .stages import minus
from .tuning import Setting, Tuning, Window, step

WINDOW_S = 10.0
"""Shorter windows differ by more than what is to be won."""
MIN_BATCHES = 8
"""In a window: a single batch of long clips says nothing."""
MAX_AHEAD = 4
"""Chunks in hand: each more is work that idle neighbours lack at the end of a run."""
ELSEWHERE = 0.1
"""A window in which the encoder waited so long for the disk or for work says nothing about decoding."""


class Tuner:
    """Of one worker."""

    def __init__(
        self, prefetcher: Prefetcher, board: Board, most_threads: int, send: Callable[[FromWorker], None]
    ) -> None:
        self._prefetcher, self._board, self._send = prefetcher, board, send
        self._bounds = Setting(most_threads, MAX_AHEAD)
        self._state = Tuning(Setting(prefetcher.active_threads, CHUNKS_AHEAD))
        self._since = board.stages(0)
        self._next = time.monotonic() + WINDOW_S

    def tick(self) -> None:
        """End the window if it is long enough, and begin the next."""
        if time.monotonic() < self._next:
            return
        now = self._board.stages(0)
        seen = minus(now, self._since)
        if seen.encoded_batches < MIN_BATCHES:
            return
        self._since, self._next = now, time.monotonic() + WINDOW_S
        if seen.span > 0 and seen.no_work + seen.blocked < ELSEWHERE * seen.span:
            self._apply(step(self._state, window_of(seen), self._bounds))

    def _apply(self, state: Tuning) -> None:
        before, self._state = self._state.setting, state
        if state.setting != before:
            self._prefetcher.resize(state.setting.threads, state.setting.ahead)
            self._send(Adapted(state.setting.threads, state.setting.ahead, trial=state.before is not None))


def window_of(seen: StageSeconds) -> Window:
    """The shares that decide, of what the stages did in some time."""
    return Window(
        rate=seen.decoded_bytes / seen.span,
        idle=seen.wait / seen.span,
        busy=seen.decode / seen.thread_seconds if seen.thread_seconds else 0.0,
        held=seen.held_chunks / seen.span,
    )
