"""What a block says of itself, in its header and in its ``custom_metadata``: rows, chunk, plan, facts of its rows."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..core.digest import hash_rows
from ..core.schema import ANNOTATION_COLUMNS, FORMAT_VERSION, IDENTITY_COLUMNS
from .block import BlockMetadata, block_metadata
from .ipc_message import RECORD_BATCH, MessageHeader
from .lineage import Lineage, plans_of
from .records import BlockRecord
from .verify_findings import Finding
from .verify_report import DamageCode, Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockPlace:
    """Which block it is."""

    shard: str
    number: int
    """Position in its shard."""
    offset: int
    """In the file."""


def header_problems(
    header: MessageHeader, place: BlockPlace, record: BlockRecord | None, fingerprint: Lineage | None
) -> Iterator[Problem]:
    """What a block's header alone tells: its kind, its rows, which chunk of which plan it is."""
    where = {"shard": place.shard, "block": place.number, "byte_offset": place.offset}
    if header.kind != RECORD_BATCH:
        yield Problem(code=DamageCode.BLOCK_HEADER, message=f"an Arrow message of kind {header.kind}", **where)
        return
    metadata = _metadata(header)
    if isinstance(metadata, str):
        yield Problem(code=DamageCode.BLOCK_IDENTITY, message=metadata, **where)
        return
    if record is not None and header.num_rows != record.rows:
        message = f"it has {header.num_rows:,} rows, its journal line says {record.rows:,}"
        yield Problem(code=DamageCode.BLOCK_ROWS, message=message, **where)
    if not header.num_rows:
        yield Problem(code=DamageCode.BLOCK_ROWS, message="it has no rows", **where)
    for what, found, expected in (
        ("chunk", metadata.chunk, record.chunk if record else None),
        ("plan", metadata.fingerprint, _expected_plan(metadata.fingerprint, fingerprint)),
        ("format version", metadata.format_version, FORMAT_VERSION),
    ):
        if expected is not None and found != expected:
            message = f"it is of {what} {found}, {expected} belongs here"
            yield Problem(code=DamageCode.BLOCK_IDENTITY, message=message, **where)


def _expected_plan(found: str, lineage: Lineage | None) -> str | None:
    """``found`` if it is one of the lineage's plans, else the last of them."""
    if not lineage:
        return None
    plans = plans_of(lineage)
    return found if found in plans else plans[-1]


def header_chunk(header: MessageHeader) -> int | None:
    """Id of the chunk that a block says it is."""
    metadata = _metadata(header)
    return None if isinstance(metadata, str) else metadata.chunk


def _metadata(header: MessageHeader) -> BlockMetadata | str:
    """What the block says of itself, or why that can't be read."""
    try:
        return block_metadata(pa.KeyValueMetadata(dict(header.custom_metadata)))
    except ValueError as error:
        return str(error)


def facts_problems(batch: pa.RecordBatch, header: MessageHeader, place: BlockPlace) -> Iterator[Problem]:
    """Facts that can't be read, or that aren't one for each row."""
    hashes = _annotation_hashes(header)
    if isinstance(hashes, str):
        message = f"the facts of its rows can't be read: {hashes}"
    elif hashes is not None and len(hashes) != batch.num_rows:
        message = f"facts of {len(hashes):,} rows in a block of {batch.num_rows:,}"
    else:
        return
    yield Problem(
        code=DamageCode.FACTS, message=message, shard=place.shard, block=place.number, byte_offset=place.offset
    )


def facts_findings(batch: pa.RecordBatch, header: MessageHeader) -> Iterator[Finding]:
    """Rows whose identity or annotation isn't what was hashed when they were made."""
    hashes = _annotation_hashes(header)
    if not isinstance(hashes, list) or len(hashes) != batch.num_rows:
        return
    found = [f"{value:032x}" for value in hash_rows(batch, (*IDENTITY_COLUMNS, *ANNOTATION_COLUMNS))]
    rows = np.flatnonzero(np.array(found) != np.array(hashes))
    if len(rows):
        message = "its identity or annotation is not what was hashed when the row was made"
        yield Finding(DamageCode.ROW_ANNOTATION, rows, None, message)


def _annotation_hashes(header: MessageHeader) -> list[str] | str | None:
    """One per row, out of the facts (preprocess/rows/facts.py writes them); why they can't be read; None without."""
    metadata = _metadata(header)
    if isinstance(metadata, str) or not metadata.facts:
        return None
    try:
        with pa.ipc.open_stream(base64.b64decode(metadata.facts, validate=True)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        return table.column("annotation_hash").to_pylist()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        return str(error)
