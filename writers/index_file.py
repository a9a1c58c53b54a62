"""``IndexBuilder``: lines about blocks become index.arrow (core/index.py has its columns).

Lines are kept compressed until the names of all songs are known, which the file's first bytes hold: about 10 bytes a
row of a parent's memory, whatever the length of its names. The file is written with a sum of zeros, hashed on its way,
then its schema message, which is as long with the right sum, is written once more.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..core.index import BLOCK_FACTS, ROW_FACTS, IndexedShard, IndexHeader, content_sum, index_schema
from .atomic import atomic_file

GROUP_ROWS = 1 << 20
"""Rows after which a batch of lines ends: what is held in memory while it is made."""

_NAMES = {"corpus": pa.int16(), "song": pa.int32()}
"""Columns whose texts are kept once, and the type of the numbers that stand for them."""
PLAIN_ROW_FACTS = pa.schema({name: pa.string() if name in _NAMES else kind for name, kind in ROW_FACTS.items()})
"""Facts of rows as a line has them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockLine:
    """What the index says of one block."""

    shard: str
    offset: int
    length: int
    checksum: str
    """xxh3-128, 32 hexadecimal digits; "" if unknown."""
    chunk: int
    """``core.index.NO_CHUNK`` if it is none of ours."""
    rows: pa.RecordBatch
    """Of ``PLAIN_ROW_FACTS``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexedRows:
    """What the index says of the rows of all shards."""

    schema: pa.Schema
    patch_size: int
    latent_dim: int


class IndexBuilder:
    """Takes the lines of all blocks in the dataset's order, then writes the file."""

    def __init__(self) -> None:
        self._lines: list[BlockLine] = []
        self._waiting = 0
        self._groups: list[tuple[pa.RecordBatch, pa.Buffer]] = []
        """(blocks, their rows as a compressed stream)"""
        self._names: dict[str, dict[str, None]] = {name: {} for name in _NAMES}
        self._num_blocks = self._num_rows = 0

    def add(self, line: BlockLine) -> None:
        """The next block. Raises ValueError if its rows are not ``PLAIN_ROW_FACTS``."""
        if line.rows.schema != PLAIN_ROW_FACTS:
            raise ValueError(f"not the facts of rows: {line.rows.schema.names}")
        self._lines.append(line)
        self._waiting += line.rows.num_rows
        self._num_blocks, self._num_rows = self._num_blocks + 1, self._num_rows + line.rows.num_rows
        if self._waiting >= GROUP_ROWS:
            self._end_group()

    def write(self, path: Path, shards: Sequence[IndexedShard], fingerprint: str, rows: IndexedRows) -> IndexHeader:
        """Write the file, whole or not at all. Raises DiskError if the disk refuses."""
        self._end_group()
        header = IndexHeader(
            shards=tuple(shards),
            fingerprint=fingerprint,
            num_blocks=self._num_blocks,
            num_rows=self._num_rows,
            patch_size=rows.patch_size,
            latent_dim=rows.latent_dim,
            row_schema=base64.b64encode(rows.schema.serialize().to_pybytes()).decode(),
        )
        with atomic_file(path) as file:
            self._write(file, header)
        return header

    def _write(self, file: BinaryIO, header: IndexHeader) -> None:
        schema = index_schema(header, "0" * 32)
        sink = _SummingSink(file, schema.serialize().size, header)
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in self._batches(schema):
                writer.write_batch(batch)
        file.seek(0)
        file.write(index_schema(header, sink.total.hexdigest()).serialize())

    def _end_group(self) -> None:
        if not self._lines:
            return
        blocks = pa.RecordBatch.from_pydict(
            {
                name: [line.rows.num_rows if name == "rows" else getattr(line, name) for line in self._lines]
                for name in BLOCK_FACTS
            },
            schema=pa.schema(BLOCK_FACTS),
        )
        rows = pa.Table.from_batches([line.rows for line in self._lines]).combine_chunks()
        for name, known in self._names.items():
            known.update(dict.fromkeys(rows.column(name).unique().to_pylist()))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(rows)
        self._groups.append((blocks, sink.getvalue()))
        self._lines, self._waiting = [], 0

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = {name: pa.array(list(known), pa.string()) for name, known in self._names.items()}
        for blocks, stream in self._groups:
            with pa.ipc.open_stream(stream) as reader:
                rows = reader.read_all().combine_chunks()
            ends = np.cumsum(blocks.column("rows").to_numpy(), dtype=np.int32)
            bounds = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
            columns = {name: _flat(rows.column(name)) for name in ROW_FACTS}
            for name, texts in names.items():
                numbers = pc.call_function("index_in", [columns[name]], pc.SetLookupOptions(texts)).cast(_NAMES[name])
                columns[name] = pa.DictionaryArray.from_arrays(numbers, texts)
            lists = [pa.ListArray.from_arrays(bounds, values) for values in columns.values()]
            yield pa.RecordBatch.from_arrays([*blocks.columns, *lists], schema=schema)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


class _SummingSink:
    """Hands on what is written, and hashes what comes behind the schema message."""

    closed = False

    def __init__(self, file: BinaryIO, schema_size: int, header: IndexHeader) -> None:
        self._file, self._skip = file, schema_size
        self.total = content_sum(header)

    def write(self, data: bytes) -> int:
        self._file.write(data)
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self.total.update(memoryview(data)[skipped:])
        return len(data)

    def flush(self) -> None:
        self._file.flush()
