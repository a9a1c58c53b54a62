"""What a run tells whoever listens: typed events, from the parent process only.

Core code never prints. One sink draws a bar or prints lines (cli/progress.py), one writes events.jsonl.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Reading:
    """A corpus is about to be read."""

    dataset_name: str


@dataclass(frozen=True, slots=True)
class CorpusRead:
    """A corpus has been read."""

    dataset_name: str
    num_clips: int
    num_refused: int


@dataclass(frozen=True, slots=True)
class Scanning:
    """Audio headers read so far. ``total`` grows while corpora are still being read."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Checking:
    """Bytes of a finished dataset's shards compared with their checksums so far."""

    done: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanReady:
    """The plan is made or taken from the output folder."""

    fingerprint: str
    num_clips: int
    """Clips that have a place in a chunk."""
    num_refused: int
    num_chunks: int
    audio_seconds: float
    done_chunks: int = 0
    """Chunks that earlier runs committed."""
    done_audio_seconds: float = 0.0
    done_rows: int = 0
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker has loaded its encoder."""

    rank: int
    device: str
    load_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkDone:
    """A chunk is committed: its block and its journal line are on disk."""

    rank: int
    chunk_id: int
    num_rows: int
    num_skipped: int
    audio_seconds: float
    """Of all its clips, the skipped ones included: the sum over all chunks is the plan's."""


@dataclass(frozen=True, slots=True)
class ShardClosed:
    """A shard has its final name."""

    rank: int
    name: str
    num_rows: int
    num_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSeconds:
    """What one worker's stages did since its start: seconds busy and waiting, items, bytes. Restarts are summed."""

    rank: int
    span: float = 0.0
    """Seconds since the worker was ready: what the shares are shares of."""
    threads: int = 0
    """Decode threads that are active now."""
    thread_seconds: float = 0.0
    """``span`` times the active decode threads: what ``decode`` is a share of."""
    decode: float = 0.0
    """Busy, summed over the decode threads."""
    decode_cpu: float = 0.0
    """Of ``decode``: on a core. The rest is waiting: for a disk, for a core, for Python's lock."""
    read: float = 0.0
    """Of ``decode``: opening, reading and hashing files."""
    encode: float = 0.0
    rows: float = 0.0
    write: float = 0.0
    wait: float = 0.0
    """The encoder without audio, which was being decoded."""
    no_work: float = 0.0
    """The encoder without audio, since the worker had no chunk to decode."""
    blocked: float = 0.0
    """The encoder, done with a chunk that the write thread could not take yet."""
    write_idle: float = 0.0
    """The write thread without a chunk."""
    held_bytes: float = 0.0
    """Reading ahead, held up by ``prefetch_bytes``."""
    held_chunks: float = 0.0
    """Reading ahead, held up by the number of chunks in hand."""
    no_task: float = 0.0
    """Reading ahead, without a chunk to read."""
    decoded_clips: int = 0
    encoded_clips: int = 0
    encoded_batches: int = 0
    committed_rows: int = 0
    committed_chunks: int = 0
    read_bytes: int = 0
    decoded_bytes: int = 0
    """float32 samples at the encoder's rate."""
    encoded_bytes: int = 0
    """The same, of what was encoded."""
    written_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Bottleneck:
    """What limits a worker, or the run, over the last half minute; in a summary, over the whole run."""

    rank: int | None = None
    """None: all workers together."""
    limit: str
    """decode, disk, cores, prefetch, encode, rows, write, parent, end."""
    facts: str
    advice: str

    @property
    def text(self) -> str:
        """One line for people."""
        return f"{self.limit}: {self.facts}; {self.advice}"


@dataclass(frozen=True, slots=True)
class DecodeAdapted:
    """A worker tries another number of decode threads or chunks ahead, or goes back to what was faster."""

    rank: int
    threads: int
    chunks_ahead: int
    trial: bool
    """False: the trial before was not faster, this is the setting before it."""


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker process ended before it was told to."""

    rank: int
    cause: str
    clips: tuple[str, ...]
    """Clips it was decoding."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for people."""

    level: Literal["info", "warning", "error"]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    """What a run did. planned = written + skipped + remaining, always."""

    output_dir: str
    planned: int
    """Every item of the corpora, the refused ones included."""
    written: int
    skipped: Mapping[str, int]
    """Number of clips without a row, by fault code."""
    remaining: int
    warnings: Mapping[str, int]
    """Rows with a warning, by code."""
    audio_seconds: float
    """Of the written rows."""
    encoded_seconds: float
    """Audio seconds encoded by this run (an earlier run's are not speed)."""
    wall_seconds: float
    """From the first worker's readiness to the last commit."""
    num_chunks: int
    num_shards: int
    num_bytes: int
    digest: str
    """Sum over all rows of a hash of all 23 columns; with the row count."""
    content_digest: str
    """The same without audio_feats: equal on every device and batch size."""
    fingerprint: str
    stages: tuple[StageSeconds, ...] = field(default=())
    reused: int = 0
    """Rows whose latents were taken from another dataset."""
    num_batches: int = 0
    """Encode batches of the plan; 0 = not counted."""
    bottleneck: Bottleneck | None = None
    """Of this run; None if it had nothing to do."""

    @property
    def num_skipped(self) -> int:
        return sum(self.skipped.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Interrupted:
    """The run ends early; planned = written + skipped + remaining. The same command goes on."""

    planned: int
    written: int
    """Rows on disk with a journal line, from this run and earlier ones."""
    skipped: int
    remaining: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PartEnded:
    """A task of a cluster ends, be its part done or not; clips of the part: planned = written + skipped + remaining."""

    number: int
    """Of the part, from 1."""
    count: int
    """Of the parts."""
    num_chunks: int
    num_left: int
    """Chunks that are not done."""
    planned: int
    written: int
    skipped: int
    remaining: int
    wall_seconds: float
    """From its first worker's readiness to the last one's end."""
    precision_error: float | None = None
    """See ``Dispatched``."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The dataset is complete and can be opened."""

    summary: RunSummary


Event = (
    Reading
    | CorpusRead
    | Scanning
    | Checking
    | PlanReady
    | WorkerReady
    | ChunkDone
    | ShardClosed
    | StageSeconds
    | Bottleneck
    | DecodeAdapted
    | WorkerLost
    | Notice
    | Interrupted
    | PartEnded
    | Finished
)
EventSink = Callable[[Event], None]
