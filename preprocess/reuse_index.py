"""``ReuseIndex``: where the latents of an audio file lie in finished blocks, by the hash of the file's bytes.

The parent makes it out of the facts in the blocks' headers (45 to 80 bytes a row; no latents are read) and stores it as
one Arrow file, which every worker maps: 24 bytes a row, sorted, so a look-up costs a few page reads. Where one audio
has several rows, the first in the dataset's order counts.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..core.errors import OutputError
from ..writers.ipc_message import RECORD_BATCH, HeaderError, walk_headers
from .stored_facts import block_facts

_BLOCKS_KEY = b"latentprep.blocks"
_SCHEMA = pa.schema({"high": pa.uint64(), "low": pa.uint64(), "block": pa.int32(), "row": pa.int32()})


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """A block of a shard."""

    shard: Path
    offset: int
    """Of its message in the file."""


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row of a block."""

    block: BlockPlace
    row: int


class ReuseIndex:
    """A stored index, mapped. Reading is safe from several threads."""

    def __init__(self, path: Path) -> None:
        self._map = pa.memory_map(str(path))
        reader = pa.ipc.open_file(self._map)
        rows = reader.get_batch(0)
        self._high, self._low, self._block, self._row = (column.to_numpy() for column in rows.columns)
        listed = json.loads((reader.schema.metadata or {})[_BLOCKS_KEY])
        self._blocks = [BlockPlace(Path(shard), offset) for shard, offset in listed]

    def __len__(self) -> int:
        return len(self._high)

    def find(self, audio_hash: str) -> RowPlace | None:
        """Where the latents of the audio with this hash (32 hexadecimal digits) lie."""
        high, low = int(audio_hash[:16], 16), int(audio_hash[16:], 16)
        at = int(np.searchsorted(self._high, np.uint64(high)))
        while at < len(self._high) and self._high[at] == high:
            if self._low[at] == low:
                return RowPlace(self._blocks[self._block[at]], int(self._row[at]))
            at += 1
        return None


def write_reuse_index(path: Path, blocks: Iterable[BlockPlace]) -> int:
    """Store the index of these blocks as ``path``; returns the number of different audio files.

    A block whose facts can't be read is passed over: its clips are encoded. Raises OSError if the disk refuses.
    """
    listed, parts = [], []
    for place in blocks:
        facts = block_facts(place.shard, place.offset)
        if facts is not None:
            parts.append(_entries(facts, len(listed)))
            listed.append([str(place.shard), place.offset])
    entries = _sorted(np.concatenate([np.zeros((4, 0), np.uint64), *parts], axis=1))
    columns = [
        pa.array(values.astype(field.type.to_pandas_dtype())) for values, field in zip(entries, _SCHEMA, strict=True)
    ]
    schema = _SCHEMA.with_metadata({_BLOCKS_KEY: json.dumps(listed)})
    with pa.ipc.new_file(str(path), schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))
    return entries.shape[1]


def _entries(facts: pa.Table, block: int) -> npt.NDArray[np.uint64]:
    """[4, rows]: high and low half of the hash, block, row."""
    hashes = b"".join(bytes.fromhex(text) for text in facts.column("audio_hash").to_pylist())
    halves = np.frombuffer(hashes, ">u8").astype(np.uint64).reshape(-1, 2).T
    rows = np.arange(facts.num_rows, dtype=np.uint64)
    return np.stack([*halves, np.full_like(rows, block), rows])


def _sorted(entries: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """By hash, the first of equal ones alone."""
    entries = entries[:, np.lexsort((entries[1], entries[0]))]
    first = np.ones(entries.shape[1], np.bool_)
    first[1:] = (entries[:2, 1:] != entries[:2, :-1]).any(axis=0)
    return entries[:, first]


def dataset_blocks(shards: Iterable[Path]) -> Iterator[BlockPlace]:
    """The blocks of closed shards, in file order. Raises OutputError for one that is no shard."""
    for shard in shards:
        try:
            with open(shard, "rb", buffering=0) as file:
                for header in walk_headers(partial(_read, file.fileno()), os.fstat(file.fileno()).st_size):
                    if header.kind == RECORD_BATCH:
                        yield BlockPlace(shard, header.offset)
        except (OSError, HeaderError) as error:
            raise OutputError(
                f"{shard} can't be read as a shard: {error}",
                why="its latents were to be reused",
                fix="see what `prep verify` says of that dataset; without --reuse everything is encoded",
            ) from error


def _read(descriptor: int, offset: int, length: int) -> bytes:
    return os.pread(descriptor, length, offset)
