"""``FleetReport``: what happens to the workers, as events for people and programs, with names in place of numbers."""

import time
from typing import Literal

from ...core.units import samples_to_seconds
from ...writers.journal import CommittedChunk
from .. import events
from ..plan.plans import Plans
from .death import Death
from .messages import Adapted, Closed, FromWorker, Measured, Ready, Remark
from .moves import ClipKey, Exclude, LeaveOut

FLOAT16_ROUNDING = 5e-4
"""Largest relative error of the cast that follows: what a precision's own error is to be seen against."""


class FleetReport:
    """Tells a sink; keeps what the summary needs."""

    def __init__(self, plan: Plans, precision: str, on_event: events.EventSink) -> None:
        self._plan, self._precision, self.tell = plan, precision, on_event
        self._topics: set[str] = set()
        self.ready_at: float | None = None
        """Monotonic time of the first worker's readiness."""
        self.adapted = 0
        """How often a worker changed its decode threads or how far it reads ahead."""
        self.precision_error: float | None = None
        """The largest that a worker measured; None if none did."""

    def heard(self, rank: int, message: FromWorker) -> None:
        """A message of a worker, if it is one for people."""
        match message:
            case Ready(device, seconds):
                self.ready_at = self.ready_at or time.monotonic()
                self.tell(events.WorkerReady(rank, device, seconds))
            case Measured(error):
                self._measured(rank, error)
            case Adapted(threads, chunks_ahead, trial):
                self.adapted += 1
                self.tell(events.DecodeAdapted(rank, threads, chunks_ahead, trial))
            case Closed(name, num_rows, num_bytes):
                self.tell(events.ShardClosed(rank, name, num_rows, num_bytes))
            case Remark(text, topic) if not topic or topic not in self._topics:
                self._topics.add(topic)
                self.notice("warning", f"rank {rank}: {text}")

    def _measured(self, rank: int, error: float) -> None:
        text = f"rank {rank}: {self._precision} latents differ from strict float32 by {error:.1e} relative"
        self.notice("info", f"{text} (rounding to float16: {FLOAT16_ROUNDING:.0e})")
        self.precision_error = max(self.precision_error or 0.0, error)

    def committed(self, rank: int, chunk: CommittedChunk) -> None:
        """A chunk is on disk."""
        samples = int(self._plan.chunk_samples[chunk.chunk_id])
        done = events.ChunkDone(
            rank=rank,
            chunk_id=chunk.chunk_id,
            num_rows=chunk.num_rows,
            num_skipped=chunk.num_skipped,
            audio_seconds=samples_to_seconds(samples, self._plan.spec.sample_rate),
        )
        self.tell(done)

    def lost(self, rank: int, death: Death) -> None:
        """A worker died."""
        self.tell(events.WorkerLost(rank, death.cause, tuple(map(self._name, death.clips))))

    def left_out(self, action: LeaveOut) -> None:
        self.notice("error", f"rank {action.rank} is left out, it can't start: {action.cause}")

    def excluded(self, action: Exclude) -> None:
        self.notice("warning", f"{self._name(action.clip)} is skipped: {action.code}")

    def notice(self, level: Literal["info", "warning", "error"], text: str) -> None:
        self.tell(events.Notice(level, text))

    def _name(self, clip: ClipKey) -> str:
        chunk_id, row = clip
        fields = self._plan.chunk(chunk_id).slice(row, 1).to_pylist()[0]
        return f"{fields['dataset_name']}/{fields['item_name']} ({fields['audio_path']})"
