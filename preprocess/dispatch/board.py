"""A worker's ``Board``: a small mapped file with its stage counters and the clips that it is decoding right now.

The worker writes, the parent reads, also after the worker was killed: the slots name the suspects of a crash, and a slot
that does not change names the clip whose decoder hangs. It lies in the local temporary folder, never on a network
file system, where a mapping isn't shared. Layout: one float64 per counter, then per decode thread (chunk id, row, begin).
"""

import contextlib
import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..events import StageSeconds

SECONDS: tuple[str, ...] = (
    "decode",
    "decode_cpu",
    "read",
    "encode",
    "rows",
    "write",
    "wait",
    "no_work",
    "blocked",
    "write_idle",
    "held_bytes",
    "held_chunks",
    "no_task",
)
"""Of ``events.StageSeconds``, which says what each is."""
COUNTS: tuple[str, ...] = (
    "decoded_clips",
    "encoded_clips",
    "encoded_batches",
    "committed_rows",
    "committed_chunks",
    "read_bytes",
    "decoded_bytes",
    "encoded_bytes",
    "written_bytes",
)
STATE: tuple[str, ...] = ("loading", "allowance")
"""``loading`` is 1 until ready; ``allowance`` is how many seconds the call that is on the encoder may take: a long clip
moves no other counter."""
ROOM: tuple[str, ...] = ("ready_at", "threads", "threads_since", "thread_seconds")
"""Monotonic time of readiness; active decode threads, since when, and thread seconds up to then. No sign of life."""
COUNTERS = SECONDS + COUNTS + STATE + ROOM
_LIFE = len(SECONDS + COUNTS + STATE)
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
        self._counters: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {
            name: counters[i : i + 1] for i, name in enumerate(COUNTERS)
        }
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
        if not self._counters["ready_at"][0]:
            self._counters["ready_at"][0] = time.monotonic()
        self._counters["loading"][0] = 0

    @contextlib.contextmanager
    def timed(self, counter: str) -> Iterator[None]:
        """Add the seconds that the block takes."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(counter, time.perf_counter() - began)

    def set_threads(self, number: int) -> None:
        """From now on so many decode threads are active."""
        now = time.monotonic()
        self._counters["thread_seconds"][0] = self._thread_seconds(now)
        self._counters["threads_since"][0] = now
        self._counters["threads"][0] = number

    def _thread_seconds(self, now: float) -> float:
        since = max(self._counters["threads_since"][0], self._counters["ready_at"][0])
        running = max(0.0, now - float(since)) if self._counters["ready_at"][0] else 0.0
        return float(self._counters["thread_seconds"][0]) + float(self._counters["threads"][0]) * running

    def load_again(self) -> None:
        """The encoder is loaded late, and perhaps compiled: standing still means nothing until ``ready``."""
        self._counters["loading"][0] = 1

    def begin(self, slot: int, chunk_id: int, row: int) -> None:
        """A decode thread is about to open a clip's audio."""
        self._slots[slot] = (chunk_id, row, time.monotonic())

    def end(self, slot: int) -> None:
        """The decode thread is done with its clip."""
        self._slots["chunk"][slot] = IDLE

    def stages(self, rank: int) -> StageSeconds:
        """All that was counted, up to now."""
        now, ready_at = time.monotonic(), float(self._counters["ready_at"][0])
        return StageSeconds(
            rank=rank,
            **{name: float(self._counters[name][0]) for name in SECONDS},
            **{name: int(self._counters[name][0]) for name in COUNTS},
            threads=int(self._counters["threads"][0]),
            thread_seconds=self._thread_seconds(now),
            span=now - ready_at if ready_at else 0.0,
        )

    def pulse(self) -> bytes:
        """Changes whenever a stage has done something: what a stalled worker's does not do."""
        return self._all[:_LIFE].tobytes()

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
