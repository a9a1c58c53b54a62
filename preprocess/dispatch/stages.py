"""``StageTotals``: how busy each rank's stages have been, over all its incarnations."""

from dataclasses import replace

from ..events import StageSeconds
from .board import Board

STAGES = ("decode", "encode", "rows", "write", "wait")


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
        if board is None:
            return past
        now = board.counters()
        return replace(past, **{name: getattr(past, name) + now[name] for name in STAGES})
