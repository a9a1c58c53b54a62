"""``Plan``: every clip of a run in one Arrow IPC file, opened for reading.

    schema metadata       version, identity, limits, geometry, configuration, corpora signature, chunk table
    record batch k < K    chunk k: the clips in plan order, and the number of each one's encode batch
    further batches       clips refused before the run: names and fault, all other columns null
    last batch            no rows; its custom metadata is the seal: the fingerprint of everything before it

A file without a seal, or whose seal has another number of chunks than its table, is no plan. Chunks are read with
pread, not mapped: a worker's resident set stays one chunk small (a map grows to the size of the plan), and a vanished
mount is an error that names the file instead of SIGBUS. Reading a chunk of 1,024 clips takes about 1 ms.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...core.errors import Fault, FaultCode, OutputError, Stage
from ...core.units import LatentSpec, samples_to_seconds
from ..corpora.clip import RefusedClip
from .chunk_table import ChunkTable
from .clip_table import CLIP_SCHEMA, REFUSED_SCHEMA
from .extension import Extension
from .identity import Identity
from .limits import CutLimits
from .signature import CorporaSignature

PLAN_VERSION = 1

BATCH_FIELD = pa.field("batch", pa.int32())
"""Number of the clip's encode batch; rises along the plan."""
CHUNK_SCHEMA = CLIP_SCHEMA.append(BATCH_FIELD)
"""What ``Plan.chunk`` gives."""
PLAN_SCHEMA = pa.schema([*CHUNK_SCHEMA, *(REFUSED_SCHEMA.field(i) for i in range(3, len(REFUSED_SCHEMA)))])
"""What the file holds: fault columns are null for planned clips, most others for refused ones."""

_PREFIX = "latentprep."
SEAL_KEY = _PREFIX + "fingerprint"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanHead:
    """What a plan says about itself."""

    identity: Identity
    limits: CutLimits
    spec: LatentSpec
    config_yaml: str
    """The resolved configuration of the run that made it."""
    corpora_signature: CorporaSignature
    chunks: ChunkTable
    refused_counts: tuple[tuple[str, str, int], ...]
    """(dataset name, fault code, number of clips) of the refused clips."""
    extension: Extension | None = None
    """How it extends an earlier plan; None for the first plan of a dataset."""

    def to_metadata(self) -> dict[str, str]:
        """Schema metadata of the plan's file."""
        values = {
            "version": str(PLAN_VERSION),
            "identity": self.identity.to_json(),
            "limits": self.limits.to_json(),
            "spec": json.dumps(asdict(self.spec)),
            "config": self.config_yaml,
            "corpora": self.corpora_signature.to_json(),
            "chunks": self.chunks.to_json(),
            "refused": json.dumps(self.refused_counts),
        }
        if self.extension is not None:
            values["extension"] = self.extension.to_json()
        return {_PREFIX + key: value for key, value in values.items()}

    @classmethod
    def from_metadata(cls, metadata: dict[bytes, bytes]) -> "PlanHead":
        """The inverse of ``to_metadata``; raises ``KeyError``, ``ValueError`` or ``TypeError`` for anything else."""
        values = {key.decode().removeprefix(_PREFIX): value.decode() for key, value in metadata.items()}
        if values["version"] != str(PLAN_VERSION):
            raise ValueError(f"it has plan version {values['version']}, this is {PLAN_VERSION}")
        return cls(
            identity=Identity.from_json(values["identity"]),
            limits=CutLimits.from_json(values["limits"]),
            spec=LatentSpec(**json.loads(values["spec"])),
            config_yaml=values["config"],
            corpora_signature=CorporaSignature.from_json(values["corpora"]),
            chunks=ChunkTable.from_json(values["chunks"]),
            refused_counts=tuple((name, code, count) for name, code, count in json.loads(values["refused"])),
            extension=Extension.from_json(values["extension"]) if "extension" in values else None,
        )


class Plan:
    """A stored plan. Reading is safe from several threads; several processes may open one file."""

    def __init__(self, path: Path, file: pa.NativeFile, reader: pa.ipc.RecordBatchFileReader) -> None:
        """Use ``open``. Raises what ``PlanHead.from_metadata`` raises."""
        self.path = path
        self._file, self._reader = file, reader
        self.head = PlanHead.from_metadata(reader.schema.metadata or {})
        _, seal = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)
        self.fingerprint: str = seal[SEAL_KEY].decode()
        """xxh3-128 in hex over identity, limits and all clips in plan order."""
        if reader.num_record_batches <= len(self.head.chunks):
            raise ValueError("it has fewer record batches than its table says")

    @classmethod
    def open(cls, path: Path) -> "Plan":
        """Open a stored plan; raises ``OutputError`` if the file is missing, damaged or no plan."""
        try:
            file = pa.OSFile(str(path))
            return cls(path, file, pa.ipc.open_file(file))
        except (OSError, pa.ArrowInvalid, KeyError, ValueError, TypeError, AttributeError) as error:
            raise OutputError(
                f"{path} can't be read as a plan: {error}",
                why="the plan says which clips the run has and which of them are done",
                fix="if its output is worth nothing yet, start anew with --overwrite; else restore the file",
            ) from error

    @property
    def identity(self) -> Identity:
        return self.head.identity

    @property
    def limits(self) -> CutLimits:
        return self.head.limits

    @property
    def spec(self) -> LatentSpec:
        return self.head.spec

    @property
    def chunks(self) -> ChunkTable:
        """Sizes of all chunks."""
        return self.head.chunks

    @property
    def num_chunks(self) -> int:
        return len(self.chunks)

    @property
    def num_clips(self) -> int:
        """Clips that have a place in a chunk."""
        return int(self.chunks.rows.sum())

    @property
    def num_refused(self) -> int:
        """Items that were refused before the run."""
        return sum(count for _, _, count in self.head.refused_counts)

    @property
    def chunk_rows(self) -> npt.NDArray[np.int64]:
        """[K] clips of each chunk."""
        return self.chunks.rows

    @property
    def chunk_samples(self) -> npt.NDArray[np.int64]:
        """[K] expected audio samples of each chunk, at the VAE's rate."""
        return self.chunks.samples

    @property
    def chunk_dataset(self) -> list[str]:
        """[K] name of each chunk's corpus."""
        return [self.chunks.corpora[number] for number in self.chunks.corpus]

    @property
    def audio_seconds(self) -> float:
        """Expected audio of all planned clips."""
        return samples_to_seconds(int(self.chunks.samples.sum()), self.spec.sample_rate)

    def chunk(self, number: int) -> pa.RecordBatch:
        """The clips of a chunk, as a record batch of ``CHUNK_SCHEMA``: encode batches one after another."""
        if not 0 <= number < self.num_chunks:
            raise IndexError(f"chunk {number} of {self.num_chunks}")
        return self._read(number).select(CHUNK_SCHEMA.names)

    def refused(self) -> Iterator[RefusedClip]:
        """The clips that were refused before the run, in reading order."""
        for number in range(self.num_chunks, self._reader.num_record_batches - 1):
            columns = self._read(number).select(REFUSED_SCHEMA.names).to_pydict()
            for name, item, path, stage, code, message in zip(*columns.values(), strict=True):
                fault = Fault(Stage(stage), FaultCode(code), message)
                yield RefusedClip(dataset_name=name, item_name=item, audio_path=path, fault=fault)

    def decoded_bytes(self, clips: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """[N] bytes that decoding each clip of a chunk takes: the waveform, and the samples as stored beside it."""
        samples = clips.column("num_samples").to_numpy()
        stored = clips.column("num_frames").to_numpy() * clips.column("channels").to_numpy()
        return 4 * (samples + np.maximum(stored, samples))

    def _read(self, number: int) -> pa.RecordBatch:
        try:
            return self._reader.get_batch(number)
        except (OSError, pa.ArrowInvalid) as error:
            raise OutputError(
                f"record batch {number} of {self.path} can't be read: {error}",
                why="the plan is damaged, or its file system went away",
                fix="look at the mount; if it is there, restore the file or plan anew with --overwrite",
            ) from error
