"""Batches into chunks: dealt like cards, so that every chunk of a corpus holds all lengths and many songs.

The batches of a corpus come in an order seeded by the plan, and each goes to the chunk that holds the least audio so
far and has room; one that finds no room begins a new chunk. Then all are dealt again with as many chunks as it took,
since chunks begun late stay small. Filling one chunk after another would need as many and leave rests. Measured on a
million lognormal clips: chunks of one size within 1 to 10 % of each other in audio, 5 to 15 % more of them than the
bounds alone demand.

A batch that breaks a bound by itself (a clip of an hour) is a chunk of its own. The last tenth of each corpus' work
goes into quarter-size chunks, all three bounds divided by four.

Order comes from sorting by splitmix64 (Steele, Lea, Flood 2014) of seed and batch number: integer arithmetic that no
version of numpy can change, unlike the streams of its generators.
"""

import heapq
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .batches import QUARTER, Batches, Int64s
from .limits import CutLimits

TAIL = 0.1
"""Share of a corpus' audio that goes into quarter-size chunks."""
MIN_CHUNKS = 32
"""Where audio seconds bound chunks, a run has at least so many if its batches allow."""
MAX_DEALS = 4
MAX_LOOKS = 16
"""Chunks tried for a batch before a new one is begun: rows or bytes of the one with the least audio may be used up."""
_UNBOUNDED = 1 << 62
_GAMMA = np.uint64(0x9E3779B97F4A7C15)

_Load = tuple[int, int, int, int]
"""What a chunk holds: samples, its number, rows, bytes. Sorts by audio."""
_Room = tuple[int, int, int]
"""Most that a chunk may hold to take a batch: samples, rows, bytes."""
_AT_ONCE = 1 << 16


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
    sizes = np.stack([batches.samples[numbers], batches.rows[numbers], batches.row_bytes[numbers]])
    most = np.asarray([bounds.samples, bounds.rows, bounds.row_bytes])[:, None]
    alone = (sizes > most).any(axis=0)
    chunks = [numbers[place : place + 1] for place in np.flatnonzero(alone)]
    rest, sizes = numbers[~alone], sizes[:, ~alone]
    if len(rest):
        dealt = _deal_evenly(sizes, most, bounds)
        by_chunk = np.argsort(dealt, kind="stable")
        chunks += np.split(rest[by_chunk], np.cumsum(np.bincount(dealt))[:-1])
    return chunks


def _deal_evenly(sizes: Int64s, most: Int64s, bounds: _Bounds) -> Int64s:
    """Chunk of each batch: deal, and deal again with as many chunks as it took, until none is added."""
    dealt, needed = _deal_into(int((-(-sizes.sum(axis=1, keepdims=True) // most)).max()), sizes, bounds)
    for _ in range(MAX_DEALS - 1):
        started = needed
        dealt, needed = _deal_into(started, sizes, bounds)
        if needed == started:
            break
    return dealt


def _deal_into(num_chunks: int, sizes: Int64s, bounds: _Bounds) -> tuple[Int64s, int]:
    """Chunk of each batch of sizes [3, B] = (samples, rows, bytes), and how many chunks there are in the end.

    Nine times in ten the chunk with the least audio has room: one step of the heap then, not two.
    """
    heap = [(0, chunk, 0, 0) for chunk in range(num_chunks)]
    dealt = array("q")
    for samples, rows, row_bytes in _one_by_one(sizes):
        room = (bounds.samples - samples, bounds.rows - rows, bounds.row_bytes - row_bytes)
        first = _has_room(heap[0], room)
        held, chunk, held_rows, held_bytes = heap[0] if first else _pop_with_room(heap, room) or (0, num_chunks, 0, 0)
        place = heapq.heapreplace if first else heapq.heappush
        place(heap, (held + samples, chunk, held_rows + rows, held_bytes + row_bytes))
        num_chunks = max(num_chunks, chunk + 1)
        dealt.append(chunk)
    return np.frombuffer(dealt, np.int64), num_chunks


def _one_by_one(sizes: Int64s) -> Iterator[tuple[int, int, int]]:
    """The columns of [3, B] as Python numbers; never all at once, which would take 300 MB for ten million clips."""
    for first in range(0, sizes.shape[1], _AT_ONCE):
        yield from zip(*sizes[:, first : first + _AT_ONCE].tolist(), strict=True)


def _has_room(load: _Load, room: _Room) -> bool:
    return load[0] <= room[0] and load[2] <= room[1] and load[3] <= room[2]


def _pop_with_room(heap: list[_Load], room: _Room) -> _Load | None:
    """Take the load with the least audio that is within ``room``, if it is among the ``MAX_LOOKS`` least."""
    full: list[_Load] = []
    found = None
    while heap and found is None and len(full) < MAX_LOOKS:
        load = heapq.heappop(heap)
        if _has_room(load, room):
            found = load
        else:
            full.append(load)
    for load in full:
        heapq.heappush(heap, load)
    return found
