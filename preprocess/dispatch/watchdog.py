"""``Watchdog``: finds workers that live and do nothing, by their boards alone.

Two failures look alike from outside: a decoder that does not return (one slot of the board stands still, and names its
clip), and a worker that is stuck elsewhere (no counter moves). A worker that somebody stopped (SIGSTOP) is stuck, but not
its decoder: no clip is blamed for it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..config import SupervisionSettings
from .decide import ClipKey
from .handle import WorkerHandle


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a worker must be replaced."""

    cause: str
    """For people; without the clip's name."""
    hung: ClipKey | None = None
    """The clip whose decoder did not return."""


class Watchdog:
    """Remembers when each rank's counters last moved."""

    def __init__(self, patience: SupervisionSettings, now: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._now = now
        self._pulses: dict[int, tuple[bytes, float]] = {}

    def forget(self, rank: int) -> None:
        """The rank is loading, idle or new: its standing still means nothing."""
        self._pulses.pop(rank, None)

    def look(self, rank: int, worker: WorkerHandle) -> Verdict | None:
        """Whether a worker that has chunks to do must be replaced."""
        clips = worker.board.in_flight()
        if clips and clips[0].seconds > self._patience.decode_timeout_s and not worker.is_stopped():
            return Verdict(f"its decoder did not return in {clips[0].seconds:.0f} s", (clips[0].chunk_id, clips[0].row))
        pulse, now = worker.board.pulse(), self._now()
        known, since = self._pulses.setdefault(rank, (pulse, now))
        if pulse != known:
            self._pulses[rank] = (pulse, now)
        elif now - since > self._patience.stall_s:
            return Verdict(f"no stage moved for {now - since:.0f} s")
        return None
