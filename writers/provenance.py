"""``provenance.json``: what made this dataset, so that it can be explained, or made again, a year later."""

import os
import platform
import socket
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import OutputError
from ..core.paths import OutputPaths
from ..core.schema import FORMAT_VERSION
from .atomic import atomic_write
from .ledger import ClosedShard

_DISTRIBUTION = "latentprep"
_LIBRARIES = (
    "torch",
    "torchaudio",
    "transformers",
    "tokenizers",
    "datasets",
    "pyarrow",
    "numpy",
    "soundfile",
    "xxhash",
)
_GIT_TIMEOUT_S = 10  # a checkout on a stalled network disk must not keep a finished run from ending


class GitState(msgspec.Struct, frozen=True, kw_only=True):
    """The checkout that the tool ran from."""

    commit: str
    dirty: bool
    """Files that git follows were changed."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The software and the machine of a run."""

    tool_version: str
    git: GitState | None
    """None if the tool was installed from a package."""
    python: str
    libraries: dict[str, str]
    host: str
    platform: str
    num_cpus: int
    """That this process may use."""
    folder: str = ""
    """The current folder: relative paths of the command and the configuration start there."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """planned = written + skipped + remaining."""

    planned: int
    written: int
    skipped: dict[str, int]
    """By fault code."""
    remaining: int
    warnings: dict[str, int]
    """Rows with a warning, by code."""
    audio_seconds: float
    """Of the rows."""
    chunks: int
    shards: int
    bytes: int
    reused: int = 0
    """Rows whose latents were taken from another dataset."""


class PlanFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One of the plans that made the dataset."""

    fingerprint: str
    chunks: int
    """Its own, those that a later plan superseded included."""
    clips: int


class EncoderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The VAE and the tokenizer."""

    name: str
    checkpoint: str
    weights_hash: str
    tokenizer_hash: str
    sample_rate: int
    """Hz of the waveform that the VAE takes."""
    hop_length: int
    patch_size: int
    latent_dim: int
    precision: str
    precision_error: float | None = None
    """Largest relative error against strict float32 on the probe clips of this run; None if none was measured."""


class ShardFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One shard: what it is checked against once ``.prep`` is deleted."""

    name: str
    size: int
    """Bytes."""
    rows: int
    xxh3: str
    """xxh3-128 of the whole file."""


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Of the run that finished the dataset; earlier ones are in .prep/events.jsonl."""

    started: str
    """ISO 8601 with time zone."""
    finished: str
    wall_seconds: float
    encoded_seconds: float
    """Audio seconds that this run encoded."""
    stage_seconds: dict[str, float] = {}
    """Seconds of the stages, busy and waiting, over all workers; ``span`` is the workers' time."""
    stage_counts: dict[str, int] = {}
    """Items and bytes of the stages, over all workers."""
    bottleneck: str = ""
    """What limited the run, with figures, and what to change."""
    decode_threads: tuple[int, ...] = ()
    """Active in each worker at the end."""
    adapted: int = 0
    """How often a worker changed them, or how far it reads ahead; each change is in .prep/events.jsonl."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    environment: Environment
    command: tuple[str, ...]
    config: Any
    """The resolved configuration as JSON."""
    fingerprint: str
    """Of the plan; of the last one of an extended dataset."""
    plans: tuple[PlanFacts, ...] = ()
    """All plans, oldest first."""
    encoder: EncoderFacts
    latents: dict[str, str | int | float | bool | None] = {}
    """What, beside the audio, decided the latents; another run may take them if it would decide the same."""
    reused_from: str | None = None
    """The dataset that ``reused`` rows took their latents from."""
    devices: tuple[str, ...]
    counts: Counts
    digest: str
    """Sum of the row digests over all columns."""
    content_digest: str
    """The same without audio_feats."""
    timings: Timings
    shards: tuple[ShardFacts, ...] = ()
    """In the order of state.json; ``shard_facts`` makes them of the ledger's."""
    format_version: int = FORMAT_VERSION


def shard_facts(shards: Iterable[ClosedShard]) -> tuple[ShardFacts, ...]:
    """The shards of a ledger, in the order (rank, number)."""
    ordered = sorted(shards, key=lambda shard: (shard.rank, shard.number))
    return tuple(
        ShardFacts(name=shard.name, size=shard.size, rows=shard.num_rows, xxh3=shard.xxh3) for shard in ordered
    )


def write_provenance(paths: OutputPaths, provenance: Provenance) -> None:
    """Raises DiskError if the disk refuses."""
    atomic_write(paths.provenance, msgspec.json.format(msgspec.json.encode(provenance)) + b"\n")


def read_provenance(path: Path) -> Provenance:
    """Raises OutputError if the file isn't one, OSError if it can't be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Provenance)
    except msgspec.MsgspecError as error:
        raise OutputError(
            f"{path} is not a provenance file of this tool: {error}",
            fix="if it was edited, restore it; shards and state.json don't depend on it",
        ) from error


def describe_environment() -> Environment:
    """Of this process. Imports none of the libraries that it names."""
    return Environment(
        tool_version=_version(_DISTRIBUTION) or "unknown",
        git=_git_state(Path(__file__).resolve().parents[1]),
        python=platform.python_version(),
        libraries={name: version for name in _LIBRARIES if (version := _version(name))},
        host=socket.gethostname(),
        platform=platform.platform(),
        num_cpus=len(os.sched_getaffinity(0)),
        folder=os.getcwd(),
    )


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _git_state(folder: Path) -> GitState | None:
    """None if ``folder`` is no checkout itself, or git isn't there to ask."""
    if not (folder / ".git").exists():
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if commit is None or status is None else GitState(commit=commit, dirty=bool(status))


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_GIT_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
