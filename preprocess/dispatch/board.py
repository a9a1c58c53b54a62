"""A worker's ``Board``: a small mapped file with its stage counters and the clips that it is decoding right now.

The worker writes, the parent reads, also after the worker was killed: the slots name the suspects of a crash, and a slot
that does not change names the clip whose decoder hangs. It lies in the local temporary folder, never on a network
file system, where a mapping isn't shared. Layout: ``NUM_COUNTERS`` float64, then per decode thread (chunk id, row, begin).
"""

import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

COUNTERS: tuple[str, ...] = (
    "decode",
    "encode",
    "rows",
    "write",
    "wait",
    "decoded_clips",
    "encoded_batches",
    "committed_chunks",
    "loading",
    "allowance",
)
"""Busy seconds of the stages, then counts; ``wait`` is the encoder waiting for audio; ``loading`` is 1 until ready;
``allowance`` is how many seconds the call that is on the encoder may take: a long clip moves no other counter."""
_SLOT = np.dtype([("chunk", "<i8"), ("row", "<i8"), ("since", "<f8")])
IDLE = -1


@dataclass(frozen=True, slots=True)
class InFlight:
    """A clip that a decode thread has begun and not ended."""

    chunk_id: int
    row: int
    seconds: float
    """Since its decoding began."""


class Board:
    """One worker's board; ``create`` in the parent, ``open`` in the worker."""

    def __init__(self, path: Path, num_slots: int) -> None:
        self.path = path
        self.num_slots = num_slots
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        counters = np.frombuffer(self._map, "<f8", len(COUNTERS))
        self._counters = dict(zip(COUNTERS, (counters[i : i + 1] for i in range(len(COUNTERS))), strict=True))
        self._all = counters
        self._slots = np.frombuffer(self._map, _SLOT, num_slots, offset=len(COUNTERS) * 8)

    @classmethod
    def create(cls, path: Path, num_slots: int) -> "Board":
        """A new board, all counters 0, all slots idle, ``loading`` set."""
        path.write_bytes(bytes(len(COUNTERS) * 8 + num_slots * _SLOT.itemsize))
        board = cls(path, num_slots)
        board._slots["chunk"] = IDLE
        board._counters["loading"][0] = 1
        return board

    def add(self, counter: str, amount: float) -> None:
        """Add to a counter. Each counter has one writing thread, or a lock of its writers."""
        self._counters[counter][0] += amount

    def allow(self, seconds: float) -> None:
        """State how long what is about to be encoded may take."""
        self._counters["allowance"][0] = seconds

    def ready(self) -> None:
        """Loading is over."""
        self._counters["loading"][0] = 0

    def load_again(self) -> None:
        """The encoder is loaded late, and perhaps compiled: standing still means nothing until ``ready``."""
        self._counters["loading"][0] = 1

    def begin(self, slot: int, chunk_id: int, row: int) -> None:
        """A decode thread is about to open a clip's audio."""
        self._slots[slot] = (chunk_id, row, time.monotonic())

    def end(self, slot: int) -> None:
        """The decode thread is done with its clip."""
        self._slots["chunk"][slot] = IDLE

    def counters(self) -> dict[str, float]:
        """A copy of all counters."""
        return {name: float(value[0]) for name, value in self._counters.items()}

    def pulse(self) -> bytes:
        """Changes whenever any counter changes: what a stalled worker's does not do."""
        return self._all.tobytes()

    @property
    def loading(self) -> bool:
        return bool(self._counters["loading"][0])

    @property
    def allowance(self) -> float:
        return float(self._counters["allowance"][0])

    def in_flight(self) -> list[InFlight]:
        """Clips being decoded, the longest first."""
        now = time.monotonic()
        busy = [
            InFlight(int(s["chunk"]), int(s["row"]), now - float(s["since"])) for s in self._slots if s["chunk"] != IDLE
        ]
        return sorted(busy, key=lambda clip: -clip.seconds)

    def remove(self) -> None:
        """Delete the file; the mapping lives on until the object is gone."""
        os.unlink(self.path)
