"""A record batch as the bytes that stand for it in an Arrow IPC stream, and back.

A shard is a stream: schema message, blocks, end mark. The writer of pyarrow can't continue a stream that exists and
emits its schema late, so the three parts are made here and put together by ``ShardWriter``; the result is byte for
byte what ``RecordBatchStreamWriter`` writes (a test compares). Making the bytes runs at some 6 GB/s, hashing them at 19.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import xxhash

from ..core.schema import FORMAT_VERSION, row_schema

END_MARK = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Last bytes of every stream."""

_FORMAT_KEY = "latentprep.format"
_CHUNK_KEY = "latentprep.chunk"
FINGERPRINT_KEY = "latentprep.fingerprint"
_FACTS_KEY = "latentprep.facts"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockMetadata:
    """What a block says of itself in its record batch's ``custom_metadata``, which ``datasets`` ignores."""

    chunk: int
    """Id of the chunk in the plan."""
    fingerprint: str
    """Of the plan."""
    facts: str = ""
    """Facts of the rows, encoded (preprocess/rows/facts.py)."""
    format_version: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A block's bytes."""

    data: pa.Buffer
    """The encapsulated IPC message, a multiple of 8 bytes long."""
    xxh3: str
    """xxh3-128 of ``data``, 32 hexadecimal digits."""
    num_rows: int


def schema_bytes() -> bytes:
    """The first bytes of every shard: the schema message."""
    return row_schema().serialize().to_pybytes()


def encode_block(batch: pa.RecordBatch, metadata: BlockMetadata) -> EncodedBlock:
    """The bytes of one block. Raises ValueError if ``batch`` hasn't exactly the columns of a row."""
    schema = row_schema()
    if not batch.schema.equals(schema, check_metadata=True):
        raise ValueError(f"a block holds rows, not {batch.schema.names}")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch, custom_metadata=_to_arrow(metadata))
    stream = sink.getvalue()
    start = schema.serialize().size
    data = stream.slice(start, stream.size - start - len(END_MARK))
    return EncodedBlock(data, hash_bytes(data), batch.num_rows)


def decode_block(data: pa.Buffer | memoryview | bytes) -> tuple[pa.RecordBatch, BlockMetadata]:
    """Inverse of ``encode_block``; copies the bytes once. Raises ValueError or OSError for bytes that are no block."""
    with pa.ipc.open_stream(b"".join([schema_bytes(), data])) as reader:
        batch, metadata = reader.read_next_batch_with_custom_metadata()
    batch.validate()
    return batch, block_metadata(metadata)


def hash_bytes(data: pa.Buffer | memoryview | bytes) -> str:
    """xxh3-128, 32 hexadecimal digits."""
    return xxhash.xxh3_128_hexdigest(data)


def hash_file(path: Path) -> str:
    """xxh3-128 of a whole file, 32 hexadecimal digits."""
    state = xxhash.xxh3_128()
    with open(path, "rb") as file:
        while data := file.read(1 << 22):
            state.update(data)
    return state.hexdigest()


def _to_arrow(metadata: BlockMetadata) -> dict[str, str]:
    return {
        _FORMAT_KEY: str(metadata.format_version),
        _CHUNK_KEY: str(metadata.chunk),
        FINGERPRINT_KEY: metadata.fingerprint,
        _FACTS_KEY: metadata.facts,
    }


def block_metadata(custom_metadata: pa.KeyValueMetadata | None) -> BlockMetadata:
    """What ``read_next_batch_with_custom_metadata`` returned, as a type. Raises ValueError if it isn't a block's."""
    values = {key.decode(): value.decode() for key, value in (custom_metadata or {}).items()}
    missing = {_FORMAT_KEY, _CHUNK_KEY, FINGERPRINT_KEY, _FACTS_KEY} - values.keys()
    if missing:
        raise ValueError(f"a record batch without {sorted(missing)} in its metadata is not a block of this tool")
    return BlockMetadata(
        chunk=int(values[_CHUNK_KEY]),
        fingerprint=values[FINGERPRINT_KEY],
        facts=values[_FACTS_KEY],
        format_version=int(values[_FORMAT_KEY]),
    )
