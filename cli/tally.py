"""``Tally``: what is known of a run from its events so far, and the one line of text made of it.

No terminal here and no clock of its own: ``now`` is handed in, so that rates and ETAs are tested with a clock that
stands still. Progress is counted in audio seconds, since clips differ in length by two orders of magnitude and a
chunk is a fixed amount of audio. Work of earlier runs counts as done and never as speed: the rate is this run's
audio over the time since its first worker was ready.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..preprocess.events import Bottleneck, ChunkDone, Event, PlanReady, ShardClosed, WorkerReady
from .quantities import clock, count, duration, rate, times_real_time


@dataclass(slots=True)
class WorkerTally:
    """One worker so far."""

    device: str
    ready_at: float
    num_chunks: int = 0
    encoded_seconds: float = 0.0
    limit: str = ""
    """The stage that limits it now."""


@dataclass(slots=True)
class Tally:
    """Sums over the events of one run."""

    now: Callable[[], float]
    total_seconds: float = 0.0
    done_seconds: float = 0.0
    """Earlier runs' included."""
    encoded_seconds: float = 0.0
    """This run's alone."""
    num_rows: int = 0
    num_skipped: int = 0
    num_shards: int = 0
    first_ready: float | None = None
    limit: str = ""
    """What limits the run now, with figures, and what to change; empty while nothing is known."""
    workers: dict[int, WorkerTally] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        match event:
            case PlanReady():
                self.total_seconds, self.done_seconds = event.audio_seconds, event.done_audio_seconds
            case WorkerReady():
                self.first_ready = self.now() if self.first_ready is None else self.first_ready
                self.workers[event.rank] = WorkerTally(event.device, self.now())
            case ChunkDone():
                self._add_chunk(event)
            case ShardClosed():
                self.num_shards += 1
            case Bottleneck(rank=None):
                self.limit = event.text
            case Bottleneck(rank=int(rank)) if rank in self.workers:
                self.workers[rank].limit = event.limit

    def _add_chunk(self, event: ChunkDone) -> None:
        self.done_seconds += event.audio_seconds
        self.encoded_seconds += event.audio_seconds
        self.num_rows += event.num_rows
        self.num_skipped += event.num_skipped
        if worker := self.workers.get(event.rank):
            worker.num_chunks += 1
            worker.encoded_seconds += event.audio_seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the first worker was ready."""
        return 0.0 if self.first_ready is None else self.now() - self.first_ready

    @property
    def speed(self) -> float | None:
        """This run's audio seconds per second; None before the first chunk."""
        return times_real_time(self.encoded_seconds, self.elapsed) if self.encoded_seconds else None

    @property
    def eta(self) -> float | None:
        """Seconds until all audio is done at this run's speed."""
        return (self.total_seconds - self.done_seconds) / self.speed if self.speed else None

    def line(self) -> str:
        """Hours done, speed, rows a second, ETA and what limits the run."""
        if not self.encoded_seconds:
            return f"{duration(self.done_seconds)} of {duration(self.total_seconds)}, no chunk done yet in this run"
        rows = times_real_time(self.num_rows, self.elapsed) if self.num_rows else None
        parts = [
            f"{duration(self.done_seconds)} of {duration(self.total_seconds)}",
            f"{rate(self.speed)} x real time",
            f"{rate(rows)} rows/s",
            f"ETA {clock(self.eta)}",
        ]
        if self.num_skipped:
            parts.append(f"{self.num_skipped:,} skipped")
        if self.limit:
            parts.append(f"limit: {self.limit}")
        return ", ".join(parts)

    def worker_line(self, rank: int) -> str:
        """One worker: its device, what it has done and how fast."""
        worker = self.workers[rank]
        speed = times_real_time(worker.encoded_seconds, self.now() - worker.ready_at) if worker.num_chunks else None
        limit = f", limit: {worker.limit}" if worker.limit else ""
        return f"worker {rank} {worker.device}: {count(worker.num_chunks, 'chunk')}, {rate(speed)} x{limit}"
