"""``Watchdog``: finds workers that live and do nothing, by their boards alone.

Three failures look alike from outside: a decoder that does not return (one slot of the board stands still, and names its
clip), a worker that is stuck elsewhere (no counter moves), and one that never gets ready. A worker that somebody stopped
(SIGSTOP) is stuck, but not its decoder: no clip is blamed for it.

All is measured in time that this process was awake, in steps of at most ``STEP_S``: after Ctrl-Z and ``fg`` the whole
group has stood still for minutes, and nobody is to blame.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..config import SupervisionSettings
from .board import Board
from .moves import ClipKey

STEP_S = 5.0
"""Counted at most between two looks, which are a second apart."""


class Watched(Protocol):
    """What the watchdog looks at."""

    board: Board

    def is_stopped(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a worker must be replaced."""

    cause: str
    """For people; without the clip's name."""
    hung: ClipKey | None = None
    """The clip whose decoder did not return."""


@dataclass(slots=True)
class _Seen:
    """What one worker looked like, and for how long."""

    began: float
    pulse: bytes
    moved: float
    clips: dict[ClipKey, float] = field(default_factory=dict)
    """Clips in flight, and how long the worker was seen to run with them."""
    looked: float = 0.0


class Watchdog:
    """Remembers when each rank's counters last moved."""

    def __init__(self, patience: SupervisionSettings, now: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._now = now
        self._last = now()
        self._awake = 0.0
        self._seen: dict[int, _Seen] = {}

    def tick(self) -> None:
        """Let time pass; to be called before a round of looks."""
        now = self._now()
        self._awake += min(now - self._last, STEP_S)
        self._last = now

    def forget(self, rank: int) -> None:
        """The rank is idle or new: its standing still means nothing."""
        self._seen.pop(rank, None)

    def look(self, rank: int, worker: Watched) -> Verdict | None:
        """Whether a worker that has something to do must be replaced."""
        pulse, now = worker.board.pulse(), self._awake
        seen = self._seen.setdefault(rank, _Seen(now, pulse, now, looked=now))
        if pulse != seen.pulse:
            seen.pulse, seen.moved = pulse, now
        if worker.board.loading and not worker.is_stopped():
            return self._loading(now - seen.began)
        return self._hung(seen, worker) or self._stalled(now - seen.moved, worker.board)

    def _loading(self, seconds: float) -> Verdict | None:
        return Verdict(f"it was not ready after {seconds:.0f} s") if seconds > self._patience.load_s else None

    def _hung(self, seen: _Seen, worker: Watched) -> Verdict | None:
        step = 0.0 if worker.is_stopped() else self._awake - seen.looked
        seen.looked = self._awake
        clips = [(clip.chunk_id, clip.row) for clip in worker.board.in_flight()]
        seen.clips = {clip: seen.clips[clip] + step if clip in seen.clips else 0.0 for clip in clips}
        clip = max(seen.clips, key=lambda clip: seen.clips[clip], default=None)
        if clip is None or seen.clips[clip] <= self._patience.decode_timeout_s:
            return None
        return Verdict(f"its decoder did not return in {seen.clips[clip]:.0f} s", clip)

    def _stalled(self, seconds: float, board: Board) -> Verdict | None:
        if seconds <= max(self._patience.stall_s, board.allowance):
            return None
        return Verdict(f"no stage moved for {seconds:.0f} s")
