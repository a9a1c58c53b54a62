"""The cut: from lengths to batches to chunks to the order of the plan. A pure function, numpy only.

It never learns of workers, timing or free memory, so the same corpora, encoder and limits give the same plan on every
machine. On one core a million clips take 0.5 s (GPU limits) to 3 s (CPU limits, 66,000 chunks), ten million 10 to 60 s
and 590 MB.

    clips ── sorted, cut ──► batches (batches.py) ── dealt ──► chunks (deal.py) ──► plan order (here)

Plan order: the full-size chunks of all corpora in seeded order, then the quarter-size ones in seeded order, so that any
prefix of a run resembles the whole and the last chunks are small enough to end at about the same time on all devices.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .batches import Batches, CutInput, Int64s, cut_batches
from .deal import deal, shuffle_keys
from .limits import CutLimits

__all__ = ["Cut", "CutInput", "CutLimits", "cut"]

_CHUNK_SALT = 1
"""Keeps the shuffle of chunks apart from the shuffle of batches under one seed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """N clips in plan order, in B batches and K chunks."""

    order: Int64s
    """[N] position (in reading order) of the clip at each place of the plan."""
    batch_starts: Int64s
    """[B + 1] places where the batches start; the last is N."""
    chunk_starts: Int64s
    """[K + 1] places where the chunks start; the last is N."""
    num_full_chunks: int
    """Chunks before the quarter-size ones."""

    @property
    def batch(self) -> npt.NDArray[np.int32]:
        """[N] number of the batch at each place; rises along the plan."""
        return _numbers(self.batch_starts)

    @property
    def chunk(self) -> npt.NDArray[np.int32]:
        """[N] number of the chunk at each place; rises along the plan."""
        return _numbers(self.chunk_starts)


def cut(clips: CutInput, limits: CutLimits, *, seed: int) -> Cut:
    """Cut clips into batches and chunks; ``seed`` (64 bits, from the plan's identity) orders what has no order."""
    batches = cut_batches(clips, limits)
    full, quarter = deal(batches, limits, seed)
    chunks = _seeded(full, seed) + _seeded(quarter, seed)
    return _in_plan_order(batches, chunks, num_full_chunks=len(full))


def _seeded(chunks: list[Int64s], seed: int) -> list[Int64s]:
    first = np.asarray([chunk[0] for chunk in chunks], np.int64)
    return [chunks[number] for number in np.argsort(shuffle_keys(first, seed ^ _CHUNK_SALT), kind="stable")]


def _in_plan_order(batches: Batches, chunks: list[Int64s], *, num_full_chunks: int) -> Cut:
    sequence = np.concatenate([*chunks, np.zeros(0, np.int64)]).astype(np.int64)
    rows = batches.rows[sequence]
    batch_starts = np.append(0, np.cumsum(rows))
    source = np.repeat(batches.starts[sequence] - batch_starts[:-1], rows) + np.arange(len(batches.order))
    chunk_ends = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64)
    return Cut(
        order=batches.order[source],
        batch_starts=batch_starts,
        chunk_starts=batch_starts[np.append(0, chunk_ends)],
        num_full_chunks=num_full_chunks,
    )


def _numbers(starts: Int64s) -> npt.NDArray[np.int32]:
    return np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
