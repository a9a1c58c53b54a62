"""Batches into chunks: dealt like cards, so that every chunk of a corpus holds all lengths and many songs.

The batches of a corpus come in an order seeded by the plan, and each goes to the chunk that holds the least audio so
far. The number of chunks is the smallest (tried in steps of 1/32) with which no chunk breaks a bound; so chunks of one
size and corpus differ by at most one batch, where filling one chunk after another would leave a small rest. Measured:
about 10 % more chunks than the bounds alone demand.

A batch that breaks a bound by itself (a clip of an hour) is a chunk of its own. The last tenth of each corpus' work
goes into quarter-size chunks, all three bounds divided by four.

Order comes from sorting by splitmix64 (Steele, Lea, Flood 2014) of seed and batch number: integer arithmetic that no
version of numpy can change, unlike the streams of its generators.
"""

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.units import ceil_div
from .batches import CORPUS_PARTS, QUARTER, Batches, Int64s
from .limits import CutLimits

TAIL = 0.1
"""Share of a corpus' audio that goes into quarter-size chunks."""
MIN_CHUNKS = 32
"""Where audio seconds bound chunks, a run has at least so many if its batches allow."""
_UNBOUNDED = 1 << 62
_GAMMA = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class _Bounds:
    rows: int
    row_bytes: int
    samples: int

    def divided(self, by: int) -> "_Bounds":
        return _Bounds(max(1, self.rows // by), self.row_bytes // by, self.samples // by)


def deal(batches: Batches, limits: CutLimits, seed: int) -> tuple[list[Int64s], list[Int64s]]:
    """Deal batches into full-size and quarter-size chunks; each chunk lists its batches' numbers, of one corpus."""
    bounds = _bounds(batches, limits)
    full: list[Int64s] = []
    quarter: list[Int64s] = []
    for corpus in np.unique(batches.corpus):
        numbers = np.flatnonzero(batches.corpus == corpus)
        numbers = numbers[np.argsort(shuffle_keys(numbers, seed), kind="stable")]
        audio = batches.samples[numbers]
        middle = np.cumsum(audio) - audio / 2
        tail = middle > (1 - TAIL) * audio.sum()
        full += _fill(numbers[~tail], batches, bounds)
        quarter += _fill(numbers[tail], batches, bounds.divided(QUARTER))
    return full, quarter


def shuffle_keys(numbers: Int64s, seed: int) -> npt.NDArray[np.uint64]:
    """splitmix64 of numbers [N] under a seed of 64 bits; sorting by it shuffles."""
    start = _mix(np.asarray([seed], np.uint64) * _GAMMA)
    return _mix(start + (numbers.astype(np.uint64) + np.uint64(1)) * _GAMMA)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _bounds(batches: Batches, limits: CutLimits) -> _Bounds:
    samples = _UNBOUNDED
    if limits.max_chunk_samples is not None:
        samples = min(limits.max_chunk_samples, int(batches.samples.sum()) // MIN_CHUNKS)
    return _Bounds(limits.max_chunk_rows, limits.max_chunk_bytes, samples)


def _fill(numbers: Int64s, batches: Batches, bounds: _Bounds) -> list[Int64s]:
    """Chunks of the batches ``numbers``: those that break a bound alone, the others dealt."""
    alone = (
        (batches.rows[numbers] > bounds.rows)
        | (batches.row_bytes[numbers] > bounds.row_bytes)
        | (batches.samples[numbers] > bounds.samples)
    )
    single = [numbers[place : place + 1] for place in np.flatnonzero(alone)]
    rest = numbers[~alone]
    if not len(rest):
        return single
    sizes = [values[rest] for values in (batches.rows, batches.row_bytes, batches.samples)]
    num_chunks = max(
        ceil_div(int(size.sum()), bound)
        for size, bound in zip(sizes, (bounds.rows, bounds.row_bytes, bounds.samples), strict=True)
    )
    while (dealt := _deal_into(num_chunks, sizes, bounds)) is None:
        num_chunks += ceil_div(num_chunks, CORPUS_PARTS)
    by_chunk = np.argsort(dealt, kind="stable")
    return single + np.split(rest[by_chunk], np.cumsum(np.bincount(dealt))[:-1])


def _deal_into(num_chunks: int, sizes: list[Int64s], bounds: _Bounds) -> Int64s | None:
    """Chunk of each batch when each goes to the chunk with the least audio; None if one breaks a bound."""
    heap = [(0, chunk, 0, 0) for chunk in range(num_chunks)]
    dealt = []
    for rows, row_bytes, samples in zip(*(size.tolist() for size in sizes), strict=True):
        held_samples, chunk, held_rows, held_bytes = heap[0]
        load = (held_samples + samples, chunk, held_rows + rows, held_bytes + row_bytes)
        if load[0] > bounds.samples or load[2] > bounds.rows or load[3] > bounds.row_bytes:
            return None
        heapq.heapreplace(heap, load)
        dealt.append(chunk)
    return np.asarray(dealt, np.int64)
