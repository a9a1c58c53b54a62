"""What the stages of a worker hand to each other: a chunk under way, and one encode batch of it."""

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ...core.errors import Fault
from ..audio.decode import DecodedAudio
from ..audio.header import AudioHeader
from ..encode.protocol import Latents
from ..plan.clip_table import UNKNOWN_FRAMES
from .messages import Task


@dataclass(frozen=True, slots=True)
class Reused:
    """Latents that were taken from a row of the same audio."""

    audio: DecodedAudio
    """Without a waveform."""
    latents: Latents
    device: str
    """Name of the device that encoded them."""


Decoded = DecodedAudio | Reused
"""What becomes of an audio file that can be used."""


@dataclass(frozen=True, slots=True)
class ClipAudio:
    """Where a clip's audio lies, and what the plan knows of the file."""

    path: str
    root: str
    """Folder of its corpus' audio."""
    planned: AudioHeader


@dataclass(slots=True)
class ClipOutcome:
    """What has become of one clip so far: a fault, or audio facts and latents."""

    fault: Fault | None = None
    audio: DecodedAudio | None = None
    """Its waveform is dropped once it is encoded."""
    latents: Latents | None = None
    encoded_by: str | None = None
    """Device that made the latents, if they were reused; None if it is this worker's."""


@dataclass(slots=True)
class ChunkWork:
    """A chunk under way in a worker."""

    task: Task
    clips: pa.RecordBatch
    """The plan's record batch: one row a clip, column ``batch`` the encode batch."""
    outcomes: list[ClipOutcome] = field(default_factory=list)
    audio: list[ClipAudio] = field(default_factory=list)
    """One per row; taken out of the columns at once, since one cell at a time costs 20 us a clip and Python's lock."""

    def __post_init__(self) -> None:
        self.outcomes = [ClipOutcome() for _ in range(self.clips.num_rows)]
        self.audio = _clip_audio(self.clips)

    @property
    def chunk_id(self) -> int:
        return self.task.chunk_id

    def batches(self) -> Iterator[range]:
        """Rows of each encode batch, in order."""
        numbers = self.clips.column("batch").to_numpy()
        borders = np.flatnonzero(np.diff(numbers)) + 1
        starts = [0, *borders.tolist(), len(numbers)]
        for start, stop in itertools.pairwise(starts):
            yield range(start, stop)


def _clip_audio(clips: pa.RecordBatch) -> list[ClipAudio]:
    names = ("audio_path", "audio_root", "file_size", "mtime_ns", "num_frames", "source_rate", "channels")
    columns = (clips.column(name).to_pylist() for name in names)
    return [
        ClipAudio(
            path,
            root,
            AudioHeader(
                file_size=file_size,
                mtime_ns=mtime_ns,
                num_frames=None if num_frames == UNKNOWN_FRAMES else num_frames,
                sample_rate=sample_rate,
                channels=channels,
            ),
        )
        for path, root, file_size, mtime_ns, num_frames, sample_rate, channels in zip(*columns, strict=True)
    ]


@dataclass(slots=True)
class BatchWork:
    """One encode batch whose clips are being decoded."""

    chunk: ChunkWork
    rows: Sequence[int]
    audio: list[Future[Decoded | Fault]]
    """One per row."""
    reserved: int
    """Bytes of the budget that its waveforms hold until it is encoded."""
    last: bool
    """It is its chunk's last batch."""
