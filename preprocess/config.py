"""The configuration: one tree of frozen models, every default once, with its reason.

Unknown keys are errors (preprocess/config_file.py says which key was meant). Three kinds of settings, see
docs/architecture.md: *identity* (a resume with another value is refused), *shape* (taken from the stored plan) and
*run-time* (free at any time).

Types are strict: YAML reads ``no`` as false and ``1e6`` as text, so a corpus called ``no`` or a count of ``true`` must
be an error, not the text "False" or a 1 that nobody wrote.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

MIB = 1 << 20
MAX_BYTES = 1 << 40
"""Beyond this it is a typing error, and no longer fits what it is compared with."""
MAX_PROCESSES = 65_536


class Settings(BaseModel):
    """Base of all settings: frozen, unknown keys refused, types strict."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _refuse_empty(path: Any) -> Any:
    # Path("") is the current folder: an output_dir left blank would fill it.
    if path == "":
        raise ValueError("an empty path")
    if isinstance(path, str) and ("\0" in path or (not path.isprintable() and _has_half_characters(path))):
        raise ValueError(f"a path that no file can have: {path!r}")
    return path


def _has_half_characters(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _expand_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"no home folder is known for {str(path)!r}") from error


UserPath = Annotated[Path, Field(strict=False), BeforeValidator(_refuse_empty), AfterValidator(_expand_home)]
"""A path as a user writes it: relative to the current folder, ``~`` expanded, ``$NAME`` taken literally."""


class CorpusSettings(Settings):
    """What all corpora share."""

    name: str = Field(min_length=1)
    """Name of the corpus; becomes the column ``dataset_name``."""


class JsonFileCorpus(CorpusSettings):
    """A JSON array with one object per clip."""

    type: Literal["json_file"]
    json_path: UserPath
    audio_root: UserPath
    song_id_indices: Annotated[tuple[int, ...], Field(strict=False, min_length=1)] | None = None
    """Parts of ``item_name``, split at the separator, that are joined to the song's name."""
    song_id_slice: Annotated[tuple[int, int], Field(strict=False)] | None = None
    """[start, end] cuts characters out of ``item_name`` instead."""
    song_id_separator: str = Field(default="#", min_length=1)

    @model_validator(mode="after")
    def _one_way_to_the_song(self) -> "JsonFileCorpus":
        if self.song_id_indices is not None and self.song_id_slice is not None:
            raise ValueError("give song_id_indices or song_id_slice, not both")
        return self


class FolderCorpus(CorpusSettings):
    """One folder a song, with metadata.json and one audio file a segment."""

    type: Literal["folder_based"] = "folder_based"
    dataset_root: UserPath
    solo_singer_only: bool = False
    """Keep only songs with exactly one artist of type 男歌手 or 女歌手."""


class WeakJsonCorpus(CorpusSettings):
    """A JSON array of {audio_path, transcription, confidence}: words only."""

    type: Literal["weak_json_file"]
    json_path: UserPath
    audio_root: UserPath
    min_confidence: Literal["high", "medium", "low"] | None = None


DEFAULT_CORPUS_TYPE = "folder_based"


def corpus_type(corpus: Any) -> Any:
    """The ``type`` of a corpus' settings, parsed or not; upstream's default where there is none."""
    if isinstance(corpus, dict):
        return corpus.get("type", DEFAULT_CORPUS_TYPE)
    return getattr(corpus, "type", None)


Corpus = Annotated[
    Annotated[JsonFileCorpus, Tag("json_file")]
    | Annotated[FolderCorpus, Tag("folder_based")]
    | Annotated[WeakJsonCorpus, Tag("weak_json_file")],
    Discriminator(corpus_type),
]


class EncoderSettings(Settings):
    """Which VAE, and how it computes. Identity."""

    name: Literal["voxcpm", "tiny", "dummy"] = "voxcpm"
    path: UserPath | None = None
    """Checkpoint folder of ``voxcpm``; tiny and dummy are bundled."""
    precision: Literal["tf32", "float32", "bf16"] = "tf32"
    """On a GPU; a CPU always computes in float32. PyTorch's own default for convolutions on NVIDIA cards is TF32."""
    compile: Literal["auto", "always", "never"] = "auto"
    """Whether the VAE is compiled (needs g++ and Python's headers). ``auto``: on a CPU, from ten minutes of work; what a
    plan decided stays."""

    @model_validator(mode="after")
    def _voxcpm_needs_its_checkpoint(self) -> "EncoderSettings":
        if self.name == "voxcpm" and self.path is None:
            raise ValueError("voxcpm needs the path of a checkpoint folder")
        return self


class AudioSettings(Settings):
    """What audio is accepted. Identity."""

    max_duration: float | None = Field(default=None, gt=0, allow_inf_nan=False)
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

    max_batch_clips: int | None = Field(default=None, ge=1, le=MAX_BYTES)
    """Upper bound on clips per encoder call (upstream: vae_batch_size)."""
    max_batch_samples: int | None = Field(default=None, ge=1, le=MAX_BYTES)
    """Upper bound on padded samples per encoder call (upstream: vae_max_tokens)."""
    max_chunk_rows: int = Field(default=1024, ge=1, le=MAX_BYTES)
    """Rows per record batch: beyond about 1,000 opening a dataset gets no cheaper."""
    max_chunk_bytes: int = Field(default=32 * MIB, ge=1, le=MAX_BYTES)
    """Bytes of rows per record batch."""


class ShardSettings(Settings):
    """When a shard is closed and the next one begun. Run-time."""

    max_rows: int = Field(default=50_000, ge=1, le=MAX_BYTES)
    max_bytes: int = Field(default=1024 * MIB, ge=1, le=MAX_BYTES)


class SupervisionSettings(Settings):
    """Time-outs in seconds, each with the failure that it ends. Run-time."""

    decode_timeout_s: float = Field(default=120.0, gt=0)
    """A decoder that does not return: a lying header, a loop on a truncated file, a dead mount."""
    stall_s: float = Field(default=300.0, gt=0)
    """A worker none of whose counters move: a hung driver, a dead lock."""
    load_s: float = Field(default=1800.0, gt=0)
    """A worker that does not get ready: a driver or a file system that hangs. Imports and a checkpoint from a cold network
    file system take minutes."""
    drain_s: float = Field(default=30.0, ge=0)
    """Rest of the chunk on the encoder that a draining worker still finishes."""
    stop_s: float = Field(default=55.0, gt=0)
    """A draining worker is killed after this; schedulers give 30 to 120 s of warning."""


class RunConfig(Settings):
    """Everything ``prep svs`` needs."""

    datasets: Annotated[tuple[Corpus, ...], Field(strict=False, min_length=1)]
    encoder: EncoderSettings
    output_dir: UserPath
    sample_rate: int | None = Field(default=None, ge=1)
    """Only checked: it must be the checkpoint's input rate, which is what is used."""
    max_samples: int | None = Field(default=None, ge=1)
    """Take only the first N clips of the run (a trial). Identity."""
    audio: AudioSettings = AudioSettings()
    score: ScoreSettings = ScoreSettings()
    limits: LimitSettings = LimitSettings()
    shards: ShardSettings = ShardSettings()
    supervision: SupervisionSettings = SupervisionSettings()
    reuse: UserPath | None = None
    """A finished dataset whose latents are taken for audio files of the same bytes. Run-time."""
    device: Literal["cuda", "cpu"] | None = None
    """None: all visible GPUs; none visible is an error, never silently the CPU."""
    gpus: Annotated[int, Field(ge=1)] | Literal["all"] | None = None
    """GPUs to use; None = all visible."""
    workers: int | None = Field(default=None, ge=1, le=MAX_PROCESSES)
    """Worker processes on a CPU; None = the cores this process may use."""
    decode_threads: int | None = Field(default=None, ge=1, le=MAX_PROCESSES)
    """Decode threads of all workers together; None = from the cores."""
    prefetch_bytes: int = Field(default=512 * MIB, ge=MIB, le=MAX_BYTES)
    """Decoded audio a worker holds ahead of its encoder."""
    max_skip_rate: float | None = Field(default=None, ge=0, le=1)
    """End with exit code 4 if a larger share of the clips was skipped. No limit by default."""

    @field_validator("datasets")
    @classmethod
    def _names_are_unique(cls, datasets: tuple[Corpus, ...]) -> tuple[Corpus, ...]:
        counts = Counter(corpus.name for corpus in datasets)
        if twice := [name for name, count in counts.items() if count > 1]:
            raise ValueError(
                f"the name {twice[0]!r} is given to {counts[twice[0]]} datasets; rows could not be told apart"
            )
        return datasets
