"""What can happen to a fleet, and what can be done about it: the words that ``decide`` is spoken to and answers in."""

from dataclasses import dataclass

from ...core.errors import FaultCode
from .messages import Task

ClipKey = tuple[int, int]
"""(chunk id, row in the chunk)."""


# ---- events


@dataclass(frozen=True, slots=True)
class RankReady:
    rank: int


@dataclass(frozen=True, slots=True)
class TaskTaken:
    rank: int
    chunk_id: int


@dataclass(frozen=True, slots=True)
class TaskCommitted:
    rank: int
    chunk_id: int


@dataclass(frozen=True, slots=True)
class TaskHandedBack:
    rank: int
    chunk_id: int


@dataclass(frozen=True, slots=True)
class RankDied:
    """``suspects``: clips in flight. ``hung``: the one whose decoder did not return. ``cause``: for people."""

    rank: int
    cause: str
    external: bool = False
    """Killed from outside: by SIGKILL, or by us because it did nothing any more."""
    suspects: tuple[ClipKey, ...] = ()
    hung: ClipKey | None = None


@dataclass(frozen=True, slots=True)
class RankLeft:
    """It ended as it was told to. Of the chunks that lay unread in its inbox it may not have said a word."""

    rank: int


@dataclass(frozen=True, slots=True)
class DrainAsked:
    pass


FleetEvent = RankReady | TaskTaken | TaskCommitted | TaskHandedBack | RankDied | RankLeft | DrainAsked


# ---- actions


@dataclass(frozen=True, slots=True)
class Assign:
    rank: int
    task: Task


@dataclass(frozen=True, slots=True)
class Respawn:
    rank: int


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """A rank that can't start is given up; the others go on."""

    rank: int
    cause: str


@dataclass(frozen=True, slots=True)
class Exclude:
    """A clip is skipped from now on. For the report; the tasks carry it to the worker."""

    clip: ClipKey
    code: FaultCode


@dataclass(frozen=True, slots=True)
class Drain:
    """Tell every worker to drain."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the run with this text; what is committed is kept."""

    reason: str


Action = Assign | Respawn | LeaveOut | Exclude | Drain | GiveUp
