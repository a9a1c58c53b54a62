"""``Index``: where every block of a dataset lies and what every row of it costs; the file index.arrow.

An Arrow IPC stream with one line a block; what is known of rows stands in list columns, so that row numbers are
positions. It is derived from the shards, so it can be built again at any time.

Opening maps the file and touches neither items nor shards. A sum over all bytes says whether it is whole; which shards
it belongs to, its header says.

B blocks, R rows. Row r is ``datasets.load_from_disk``'s row r.
"""

import base64
import json
import struct
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from .errors import OutputError

INDEX_VERSION = 1
"""Bumped on any change of the columns or the header."""

NO_CHUNK = -1
"""Chunk id of a block that is no chunk of ours."""

ROW_FACTS: dict[str, pa.DataType] = {
    "tokens": pa.uint32(),
    "frames": pa.uint32(),
    "seconds": pa.float32(),
    "has_score": pa.bool_(),
    "corpus": pa.dictionary(pa.int16(), pa.string()),
    "song": pa.dictionary(pa.int32(), pa.string()),
    "item": pa.string(),
}
"""What the index knows of a row: total_length, latent frames of the patches, audio_duration, and its names."""

BLOCK_FACTS: dict[str, pa.DataType] = {
    "shard": pa.string(),
    "offset": pa.int64(),
    "length": pa.int64(),
    "rows": pa.int32(),
    "checksum": pa.string(),
    "chunk": pa.int64(),
}
"""What it knows of a block: the byte range is that of the whole message; the checksum is xxh3-128, "" if unknown."""

INDEX_COLUMNS = {**BLOCK_FACTS, **{name: pa.list_(kind) for name, kind in ROW_FACTS.items()}}

_HEADER_KEY, _SUM_KEY = b"latentprep.index", b"latentprep.sum"


@dataclass(frozen=True, slots=True)
class IndexedShard:
    """A shard that the index is about."""

    name: str
    """File name."""
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexHeader:
    """What the index says of the dataset as a whole."""

    shards: tuple[IndexedShard, ...]
    """In the dataset's order, those without rows included."""
    fingerprint: str
    """``_fingerprint`` of state.json; "" for a folder without one."""
    num_blocks: int
    num_rows: int
    patch_size: int
    """Latent frames per patch."""
    latent_dim: int
    row_schema: str
    """Arrow schema of the shards' rows, serialized, in base64."""
    version: int = INDEX_VERSION

    @property
    def schema(self) -> pa.Schema:
        """Of the shards' rows."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.row_schema)))

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> "IndexHeader":
        """Raises ValueError, KeyError or TypeError for what is no header."""
        content: dict[str, Any] = json.loads(text)
        if content["version"] != INDEX_VERSION:
            raise ValueError(f"it is of version {content['version']}, this one reads {INDEX_VERSION}")
        shards = tuple(IndexedShard(**shard) for shard in content.pop("shards"))
        return cls(shards=shards, **content)


def index_schema(header: IndexHeader, checksum: str) -> pa.Schema:
    """Arrow schema of the file; ``checksum`` is ``content_sum`` of the rest of it."""
    return pa.schema(INDEX_COLUMNS, metadata={_HEADER_KEY: header.to_json().encode(), _SUM_KEY: checksum.encode()})


def content_sum(header: IndexHeader) -> "xxhash.xxh3_128":
    """A hash to feed with all bytes behind the schema message; its hexadecimal digits are the file's sum."""
    return xxhash.xxh3_128(header.to_json().encode())


@dataclass(frozen=True, eq=False)
class Index:
    """An index that was opened. Arrays are views on the map where the file has one batch of lines."""

    header: IndexHeader
    digest: str
    """The file's sum, 32 hexadecimal digits: names the content."""
    table: pa.Table

    @property
    def num_rows(self) -> int:
        return self.header.num_rows

    @property
    def num_blocks(self) -> int:
        return self.header.num_blocks

    @cached_property
    def block_starts(self) -> npt.NDArray[np.int64]:
        """[B + 1] number of each block's first row, and R."""
        return np.concatenate([[0], np.cumsum(self.table.column("rows").to_numpy(), dtype=np.int64)])

    @cached_property
    def block_shards(self) -> npt.NDArray[np.int64]:
        """[B] position in ``header.shards``."""
        names = pa.array([shard.name for shard in self.header.shards], pa.string())
        return (
            pc.call_function("index_in", [self.table.column("shard")], pc.SetLookupOptions(names))
            .to_numpy()
            .astype(np.int64)
        )

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """[B] first byte of each block in its shard."""
        return self.table.column("offset").to_numpy()

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """[B] bytes of each block."""
        return self.table.column("length").to_numpy()

    @cached_property
    def chunks(self) -> npt.NDArray[np.int64]:
        """[B] chunk id, or ``NO_CHUNK``."""
        return self.table.column("chunk").to_numpy()

    def checksum(self, block: int) -> str:
        """xxh3-128 of a block's bytes, 32 hexadecimal digits; "" if nobody knows it."""
        return self.table.column("checksum")[block].as_py()

    def blocks_of(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """[n] the block that each of these rows lies in."""
        return np.searchsorted(self.block_starts, rows, side="right") - 1

    @cached_property
    def tokens(self) -> npt.NDArray[np.uint32]:
        """[R] positions of each row (``total_length``)."""
        return self._flat("tokens")

    @cached_property
    def frames(self) -> npt.NDArray[np.uint32]:
        """[R] latent frames of each row's patches."""
        return self._flat("frames")

    @property
    def patches(self) -> npt.NDArray[np.uint32]:
        """[R] audio patches of each row."""
        return self.frames // np.uint32(self.header.patch_size)

    @cached_property
    def seconds(self) -> npt.NDArray[np.float32]:
        """[R] seconds of audio, padded to whole patches."""
        return self._flat("seconds")

    @cached_property
    def songs(self) -> npt.NDArray[np.uint64]:
        """[R] a hash of (corpus, song): equal for the rows of one song, in every index and every process."""
        song, corpus = (self._codes(name).astype(np.int64) for name in ("song", "corpus"))
        of_song, of_corpus = (_text_hashes(self.values(name)) for name in ("song", "corpus"))
        return _mix(of_song[song] ^ _mix(of_corpus)[corpus])

    def values(self, name: str) -> pa.StringArray:
        """The different texts of the column ``corpus`` or ``song``."""
        return self.column(name).chunk(0).dictionary if self.num_blocks else pa.array([], pa.string())

    def column(self, name: str) -> pa.ChunkedArray:
        """[R] a column of rows, without its lists."""
        lists = self.table.column(name)
        return pa.chunked_array([chunk.flatten() for chunk in lists.chunks], ROW_FACTS[name])

    def item(self, row: int) -> str:
        """Name of a row's item."""
        return self.column("item")[row].as_py()

    def _flat(self, name: str) -> npt.NDArray[Any]:
        chunks = [chunk.to_numpy(zero_copy_only=True) for chunk in self.column(name).chunks]
        return chunks[0] if len(chunks) == 1 else np.concatenate([*chunks, np.zeros(0, self._dtype(name))])

    def _codes(self, name: str) -> npt.NDArray[Any]:
        chunks = [chunk.indices.to_numpy(zero_copy_only=True) for chunk in self.column(name).chunks]
        return chunks[0] if len(chunks) == 1 else np.concatenate([*chunks, np.zeros(0, np.int16)])

    @staticmethod
    def _dtype(name: str) -> npt.DTypeLike:
        return ROW_FACTS[name].to_pandas_dtype()


def _text_hashes(texts: pa.StringArray) -> npt.NDArray[np.uint64]:
    return np.array([xxhash.xxh3_64_intdigest(text) for text in texts.cast(pa.binary()).to_pylist()], np.uint64)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit of the result hangs on every bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def open_index(path: Path) -> Index:
    """Map the index file at ``path``. Raises FileNotFoundError, and OutputError if it is damaged or no index."""
    try:
        header, found = _read_header(path)
        if _sum_of(path, header) != found:
            raise ValueError("its sum is wrong: bytes of it changed, or it was cut")
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
            table = reader.read_all()
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise unusable(path, str(error)) from error
    return Index(header=header, digest=found, table=table)


def unusable(path: Path | str, reason: str) -> OutputError:
    """The error for an index that can't be used."""
    return OutputError(
        f"the index {path} can't be used: {reason}",
        why="rows would be looked for in the wrong places",
        fix="delete it: it holds nothing that the shards don't",
    )


def _read_header(path: Path) -> tuple[IndexHeader, str]:
    """The header and the sum that the file claims."""
    with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
        schema = reader.schema
    metadata = schema.metadata or {}
    if _HEADER_KEY not in metadata or _SUM_KEY not in metadata:
        raise ValueError("it is no index of this tool")
    header = IndexHeader.from_json(metadata[_HEADER_KEY])
    if dict(zip(schema.names, schema.types, strict=True)) != INDEX_COLUMNS:
        raise ValueError(f"its columns are {schema.names}")
    return header, metadata[_SUM_KEY].decode()


def _sum_of(path: Path, header: IndexHeader) -> str:
    """``content_sum`` of a file. Read, not mapped, so that it doesn't count as this process' memory."""
    total = content_sum(header)
    with open(path, "rb") as file:
        _, length = struct.unpack("<II", file.read(8))  # of the schema message's metadata; it has no body
        file.seek(8 + length)
        while piece := file.read(1 << 22):
            total.update(piece)
    return total.hexdigest()
