"""``scan_shard``: the index's lines about the blocks of one shard, found by walking its messages' headers.

Never by a writer's ``tell()``: the stream writer of pyarrow emits the schema late, so its positions are wrong. A shard
of ours takes four short reads a block; a checksum that nobody knows costs reading the block.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ..core.errors import OutputError
from ..core.index import NO_CHUNK
from ..core.units import LatentSpec
from .block import block_metadata, hash_bytes
from .index_facts import latent_shape, needed_columns, row_facts
from .index_file import BlockLine
from .ipc_message import RECORD_BATCH, SCHEMA, HeaderError, MessageHeader, Read, read_header
from .small_columns import read_batch, read_columns


@dataclass(frozen=True, slots=True)
class KnownBlock:
    """What the journal says of a block."""

    length: int
    xxh3: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanRules:
    """What the shards of one dataset have in common."""

    spec: LatentSpec | None = None
    """Geometry of the latents, if it is known; otherwise patches are counted in the masks."""
    checksums: bool = True
    """Read blocks whose checksum is not known, to make one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardToScan:
    name: str
    size: int
    known: Mapping[int, KnownBlock] = field(default_factory=dict)
    """By offset."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardScan:
    """What one shard holds."""

    schema: pa.Schema
    latent_shape: tuple[int, int] | None
    """(patch size, latent dim); None without rows."""
    lines: tuple[BlockLine, ...]


def scan_shard(shard: ShardToScan, read: Read, rules: ScanRules) -> ShardScan:
    """Raises OutputError, naming the shard and the byte, if it is no whole stream of rows."""
    at = 0
    try:
        schema, at = _schema(read, shard.size)
        names = needed_columns(schema, rules.spec)
        shape: tuple[int, int] | None = None
        lines: list[BlockLine] = []
        for header in _blocks(read, at, shard.size):
            at = header.offset
            shape = shape or _shape(read, header, schema, rules.spec)
            facts = row_facts(read_columns(read, header, schema, names), shape[0], rules.spec)
            if facts.num_rows != header.num_rows:
                raise ValueError(f"a block of {header.num_rows:,} rows has columns of {facts.num_rows:,}")
            lines.append(_line(shard, header, facts, read, rules))
        return ShardScan(schema=schema, latent_shape=shape, lines=tuple(lines))
    except HeaderError as error:
        raise _broken(shard, error.offset, str(error)) from error
    except (OSError, pa.ArrowException, ValueError) as error:
        raise _broken(shard, at, str(error)) from error


def _broken(shard: ShardToScan, offset: int, reason: str) -> OutputError:
    return OutputError(
        f"{shard.name}, byte {offset:,}: {reason}",
        why="an index says of every row where it lies, so every shard must be whole",
        fix="`prep verify` says what is damaged; a cut file of another tool must be made again",
    )


def _schema(read: Read, size: int) -> tuple[pa.Schema, int]:
    """The schema and where its message ends."""
    header = read_header(read, 0, size)
    if header is None or header.kind != SCHEMA:
        raise HeaderError(0, "the file doesn't begin with a schema message, so it is no Arrow stream")
    return pa.ipc.read_schema(pa.py_buffer(read(0, header.end))), header.end


def _blocks(read: Read, offset: int, size: int) -> Iterator[MessageHeader]:
    while (header := read_header(read, offset, size)) is not None:
        if header.kind != RECORD_BATCH:
            raise HeaderError(offset, "a message that is no record batch (dictionaries can't be read by range)")
        if header.num_rows:
            yield header
        offset = header.end
    if size - offset > 8:
        raise HeaderError(offset + 8, f"{size - offset - 8:,} bytes stand behind the end of the stream")


def _shape(read: Read, header: MessageHeader, schema: pa.Schema, spec: LatentSpec | None) -> tuple[int, int]:
    return (spec.patch_size, spec.latent_dim) if spec else latent_shape(read_batch(read, header, schema))


def _line(shard: ShardToScan, header: MessageHeader, facts: pa.RecordBatch, read: Read, rules: ScanRules) -> BlockLine:
    length = header.end - header.offset
    known = shard.known.get(header.offset)
    if known is not None and known.length == length:
        checksum = known.xxh3
    else:
        checksum = hash_bytes(read(header.offset, length)) if rules.checksums else ""
    return BlockLine(
        shard=shard.name,
        offset=header.offset,
        length=length,
        checksum=checksum,
        chunk=_chunk(header),
        rows=facts,
    )


def _chunk(header: MessageHeader) -> int:
    try:
        return block_metadata(pa.KeyValueMetadata(dict(header.custom_metadata))).chunk
    except ValueError:
        return NO_CHUNK
