"""``LockWatch``: looks at locks again and again, and knows by and by which of them are stale.

A lock of this machine is judged at once. One of another machine, or of another container on this one, is stale when its
*content* has not changed for ``STALE_S`` of the observer's own clock: clocks of two machines are never compared.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from .lock_holder import Holder, lives_here, read_lock

BEAT_S = 20.0
"""The content of a lock changes as often."""
STALE_S = 120.0
"""Six missed beats: a node that is that late has lost its file system or its life."""
_ROUNDING_S = 1e-6
_NOBODY = Holder(host="", boot_id="", pid=0, started=0, job="", token="")


class LockState(Enum):
    """What is known about the holder of a lock."""

    FREE = "free"
    """there is no such lock"""
    LIVING = "living"
    """it works, as far as can be seen"""
    UNKNOWN = "unknown"
    """another machine's, not watched for long enough"""
    STALE = "stale"
    """its holder is dead"""


@dataclass(frozen=True, kw_only=True, slots=True)
class LockLook:
    """One look at a lock."""

    path: Path
    state: LockState
    holder: Holder


class LockWatch:
    """Looks at locks again and again, without waiting and without changing them."""

    def __init__(self, stale_s: float = STALE_S, now: Callable[[], float] = time.monotonic) -> None:
        self._stale_s, self._now = stale_s, now
        self._first_seen: dict[Path, tuple[Holder, float]] = {}
        self._moved: dict[Path, tuple[str, float]] = {}
        """Holding token and time of the last change of content."""

    def look(self, path: Path) -> LockLook:
        """What is known about a lock now."""
        holder = read_lock(path)
        if holder is None:
            self._first_seen.pop(path, None)
            return LockLook(path=path, state=LockState.FREE, holder=_NOBODY)
        return LockLook(path=path, state=self._state(path, holder), holder=holder)

    def _state(self, path: Path, holder: Holder) -> LockState:
        if (alive := lives_here(holder)) is not None:
            return LockState.LIVING if alive else LockState.STALE
        now = self._now()
        before, since = self._first_seen.setdefault(path, (holder, now))
        if before != holder:
            self._first_seen[path] = (holder, now)
            if before.token == holder.token:
                self._moved[path] = (holder.token, now)
        if holder == before and now - since >= self._stale_s - _ROUNDING_S:
            return LockState.STALE
        return LockState.LIVING if self._moved.get(path, ("",))[0] == holder.token else LockState.UNKNOWN
