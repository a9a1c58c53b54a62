"""What the stages of all workers did: over the incarnations of a rank, over ranks, and over the last half minute."""

from collections import deque
from collections.abc import Iterable
from dataclasses import fields, replace

from ..events import StageSeconds
from .board import Board

WINDOW_S = 30.0
"""What people are told of is the last half minute: long enough for some chunks, short enough to be now."""
SUMMED = tuple(field.name for field in fields(StageSeconds) if field.name not in ("rank", "threads"))


class StageTotals:
    """Sums of the boards of workers that have ended, and what a living one's board adds."""

    def __init__(self) -> None:
        self._past: dict[int, StageSeconds] = {}

    def keep(self, rank: int, board: Board) -> None:
        """Add the board of an incarnation that has ended."""
        self._past[rank] = self.with_board(rank, board)

    def with_board(self, rank: int, board: Board | None) -> StageSeconds:
        """Totals of a rank; ``board`` is that of its living incarnation."""
        past = self._past.get(rank, StageSeconds(rank=rank))
        return past if board is None else plus(past, board.stages(rank))


class StageHistory:
    """Remembers totals for half a minute, and tells what was added to them."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, dict[int, StageSeconds]]] = deque()

    def window(self, now: float, stages: Iterable[StageSeconds]) -> tuple[StageSeconds, ...]:
        """What each rank did since the look that is nearest to ``WINDOW_S`` ago, or since its start."""
        while len(self._past) > 1 and now - self._past[1][0] >= WINDOW_S:
            self._past.popleft()
        before = self._past[0][1] if self._past else {}
        totals = {one.rank: one for one in stages}
        self._past.append((now, totals))
        return tuple(minus(one, before[rank]) if rank in before else one for rank, one in totals.items())


def plus(past: StageSeconds, more: StageSeconds) -> StageSeconds:
    """Sums; rank is the first one's, the number of threads the second one's."""
    sums = {name: getattr(past, name) + getattr(more, name) for name in SUMMED}
    return replace(past, threads=more.threads, **sums)


def minus(now: StageSeconds, before: StageSeconds) -> StageSeconds:
    """What was added between two looks at one rank."""
    return replace(now, **{name: getattr(now, name) - getattr(before, name) for name in SUMMED})


def total(stages: Iterable[StageSeconds]) -> StageSeconds:
    """All ranks as one: its span is worker seconds."""
    whole, threads = StageSeconds(rank=0), 0
    for one in stages:
        whole, threads = plus(whole, one), threads + one.threads
    return replace(whole, threads=threads)
