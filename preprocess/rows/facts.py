"""What is known of each row beyond its columns, small enough to travel inside its block.

A block's ``custom_metadata`` holds these as text: an Arrow stream, zstd-compressed, in base64 (metadata values are
strings). A row costs 45 to 80 bytes there, most of them its two hashes, which don't compress.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...core.digest import hash_rows
from ...core.errors import WarningCode
from ...core.schema import ANNOTATION_COLUMNS, IDENTITY_COLUMNS


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFacts:
    """Facts of one row."""

    audio_hash: str
    """xxh3-128 of the audio file's bytes, 32 hexadecimal digits."""
    audio_bytes: int
    """Size of the audio file."""
    sample_rate: int
    """Hz, as stored in the file."""
    channels: int
    num_samples: int
    """Decoded samples per channel, before resampling."""
    peak: float
    """Largest absolute sample, 1.0 = full scale."""
    rms: float
    """Root mean square of the mono waveform."""
    annotation_hash: str
    """See ``annotation_hashes``."""
    warnings: tuple[WarningCode, ...] = ()
    encode_batch: int
    """Index of the encode batch in the plan."""
    rank: int
    device: str
    """Name of the device that encoded it."""


FACTS_SCHEMA = pa.schema(
    {
        "audio_hash": pa.string(),
        "audio_bytes": pa.int64(),
        "sample_rate": pa.int32(),
        "channels": pa.int32(),
        "num_samples": pa.int64(),
        "peak": pa.float32(),
        "rms": pa.float32(),
        "annotation_hash": pa.string(),
        "warnings": pa.list_(pa.string()),
        "encode_batch": pa.int64(),
        "rank": pa.int32(),
        "device": pa.string(),
    }
)
"""Columns of the table of facts, one row each in the order of the block's rows."""


def facts_table(facts: Sequence[RowFacts]) -> pa.Table:
    """The facts as an Arrow table with ``FACTS_SCHEMA``."""
    columns = {name: [getattr(fact, name) for fact in facts] for name in FACTS_SCHEMA.names}
    return pa.table(columns, schema=FACTS_SCHEMA)


def encode_facts(facts: Sequence[RowFacts]) -> str:
    """The facts as text for a block's metadata."""
    return encode_facts_table(facts_table(facts))


def encode_facts_table(facts: pa.Table) -> str:
    """The same of a table of facts, such as ``decode_facts`` gives."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, facts.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(facts.combine_chunks())
    return base64.b64encode(sink.getvalue()).decode("ascii")


def decode_facts(text: str) -> pa.Table:
    """Inverse of ``encode_facts``; the table has whatever columns were stored. Raises ValueError if it is damaged."""
    with pa.ipc.open_stream(base64.b64decode(text, validate=True)) as reader:
        return reader.read_all()


def annotation_hashes(annotations: pa.RecordBatch) -> list[str]:
    """Per clip the xxh3-128 of its identity and annotation columns, 32 hexadecimal digits.

    ``annotations`` holds at least those columns with a row's types. A clip whose hash and whose audio's hash are
    unchanged gives the same row.
    """
    return [f"{value:032x}" for value in hash_rows(annotations, (*IDENTITY_COLUMNS, *ANNOTATION_COLUMNS))]
