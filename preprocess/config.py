"""The configuration: one tree of frozen models, every default once, with its reason.

Unknown keys are errors (preprocess/config_file.py says which key was meant). Three kinds of settings, see
docs/architecture.md: *identity* (a resume with another value is refused), *shape* (taken from the stored plan) and
*run-time* (free at any time).
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MIB = 1 << 20


class Settings(BaseModel):
    """Base of all settings: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class CorpusSettings(Settings):
    """What all corpora share."""

    name: str = Field(min_length=1)
    """Name of the corpus; becomes the column ``dataset_name``."""


class JsonFileCorpus(CorpusSettings):
    """A JSON array with one object per clip."""

    type: Literal["json_file"]
    json_path: Path
    audio_root: Path
    song_id_indices: tuple[int, ...] | None = None
    """Parts of ``item_name``, split at the separator, that are joined to the song's name."""
    song_id_slice: tuple[int, int] | None = None
    """[start, end] cuts characters out of ``item_name`` instead."""
    song_id_separator: str = "#"


class FolderCorpus(CorpusSettings):
    """One folder a song, with metadata.json and one audio file a segment."""

    type: Literal["folder_based"] = "folder_based"
    dataset_root: Path
    solo_singer_only: bool = False
    """Keep only songs with exactly one artist of type 男歌手 or 女歌手."""


class WeakJsonCorpus(CorpusSettings):
    """A JSON array of {audio_path, transcription, confidence}: words only."""

    type: Literal["weak_json_file"]
    json_path: Path
    audio_root: Path
    min_confidence: Literal["high", "medium", "low"] | None = None


Corpus = Annotated[JsonFileCorpus | FolderCorpus | WeakJsonCorpus, Field(discriminator="type")]


class EncoderSettings(Settings):
    """Which VAE, and how it computes. Identity."""

    name: Literal["voxcpm", "tiny", "dummy"] = "voxcpm"
    path: Path | None = None
    """Checkpoint folder of ``voxcpm``; tiny and dummy are bundled."""
    precision: Literal["tf32", "float32", "bf16"] = "tf32"
    """On a GPU; a CPU always computes in float32. PyTorch's own default for convolutions on NVIDIA cards is TF32."""


class AudioSettings(Settings):
    """What audio is accepted. Identity."""

    max_duration: float | None = Field(default=None, gt=0)
    """Seconds; longer clips are skipped as ``too_long``. No limit by default: long clips are encoded in windows."""
    allow_symlinks: bool = True
    """Hub caches consist of symbolic links."""
    allow_outside_root: bool = False
    """Let annotation paths leave audio_root (absolute paths, ``..``)."""


class ScoreSettings(Settings):
    """How strict annotations are taken. Identity."""

    word_without_note: Literal["error", "warn"] = "error"
    """``warn`` keeps such a clip as upstream does: the word stays in the column, not in the prompt."""


class LimitSettings(Settings):
    """Sizes of encode batches and chunks. Shape: a resume takes the stored plan's."""

    max_batch_clips: int | None = Field(default=None, ge=1)
    """Upper bound on clips per encoder call (upstream: vae_batch_size)."""
    max_batch_samples: int | None = Field(default=None, ge=1)
    """Upper bound on padded samples per encoder call (upstream: vae_max_tokens)."""
    max_chunk_rows: int = Field(default=1024, ge=1)
    """Rows per record batch: beyond about 1,000 opening a dataset gets no cheaper."""
    max_chunk_bytes: int = Field(default=32 * MIB, ge=1)
    """Bytes of rows per record batch."""


class ShardSettings(Settings):
    """When a shard is closed and the next one begun. Run-time."""

    max_rows: int = Field(default=50_000, ge=1)
    max_bytes: int = Field(default=1024 * MIB, ge=1)


class RunConfig(Settings):
    """Everything ``prep svs`` needs."""

    datasets: tuple[Corpus, ...] = Field(min_length=1)
    encoder: EncoderSettings
    output_dir: Path
    sample_rate: int | None = None
    """Only checked: it must be the checkpoint's input rate, which is what is used."""
    max_samples: int | None = Field(default=None, ge=1)
    """Take only the first N clips of the run (a trial). Identity."""
    audio: AudioSettings = AudioSettings()
    score: ScoreSettings = ScoreSettings()
    limits: LimitSettings = LimitSettings()
    shards: ShardSettings = ShardSettings()
    device: Literal["cuda", "cpu"] | None = None
    """None: all visible GPUs; none visible is an error, never silently the CPU."""
    gpus: int | Literal["all"] | None = None
    """GPUs to use; None = all visible."""
    workers: int | None = Field(default=None, ge=1)
    """Worker processes on a CPU; None = the cores this process may use."""
    decode_threads: int | None = Field(default=None, ge=1)
    """Decode threads of all workers together; None = from the cores."""
    prefetch_bytes: int = Field(default=512 * MIB, ge=MIB)
    """Decoded audio a worker holds ahead of its encoder."""
    max_skip_rate: float | None = Field(default=None, ge=0, le=1)
    """End with exit code 4 if a larger share of the clips was skipped. No limit by default."""
