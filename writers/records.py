"""The records of the journal and how one becomes a line.

A line is a JSON object that holds the record and the xxh3-64 of the record's bytes:

    {"sum":"3f0c...","record":{"type":"block","chunk":7,"number":0,"offset":1752,...}}

A line that was torn by a kill or a full disk, or damaged later, is recognised by its sum and counts as not there.
"""

import msgspec
import xxhash

from ..core.digest import Digests

JOURNAL_VERSION = 1

_PREFIX = b'{"sum":"'
_MIDDLE = b'","record":'
_START = len(_PREFIX) + 16 + len(_MIDDLE)


class JournalHeader(msgspec.Struct, frozen=True, kw_only=True, tag="journal"):
    """First line of every journal: who wrote it."""

    rank: int
    run_id: str
    """Unique to one incarnation of a worker."""
    fingerprint: str
    """Of the plan."""
    extends: tuple[str, ...] = ()
    """Fingerprints of the plans that it extends, oldest first."""
    part: int = 1
    """Number of the part of the plan (a single-node run is part 1 of 1)."""
    parts: int = 1
    """Into how many parts the plan was divided then."""
    host: str
    pid: int
    started: float
    """Unix time in seconds."""
    salvage: bool = False
    """Written by a salvage or a repair, not by a worker."""
    version: int = JOURNAL_VERSION


class SkippedClip(msgspec.Struct, frozen=True, kw_only=True):
    """A clip of a chunk that has no row."""

    position: int
    """Among the clips of its chunk, in plan order."""
    dataset: str
    item: str
    path: str
    stage: str
    code: str
    message: str


class ReusedRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a block whose latents were taken from another dataset."""

    rows: int = 0
    seconds: float = 0.0
    """Of their audio, before padding."""


class BlockRecord(msgspec.Struct, frozen=True, kw_only=True, tag="block"):
    """A chunk is committed: its bytes are on disk. With ``rows`` 0 (every clip was skipped) there are no bytes."""

    chunk: int
    number: int | None
    """Number of its shard as it was opened; None without rows."""
    offset: int = 0
    length: int = 0
    rows: int = 0
    xxh3: str = ""
    """xxh3-128 of the block's bytes."""
    digest: str = "0" * 32
    """Sum of row digests over all columns."""
    content_digest: str = "0" * 32
    """The same without audio_feats."""
    audio_seconds: float = 0.0
    """Of the rows."""
    skipped: tuple[SkippedClip, ...] = ()
    warnings: dict[str, int] = {}
    """Rows with a warning, by code."""
    reused: ReusedRows = ReusedRows()

    @property
    def digests(self) -> Digests:
        return Digests.from_hex(self.digest, self.content_digest, self.rows)


class ClosedRecord(msgspec.Struct, frozen=True, kw_only=True, tag="closed"):
    """A shard is complete: it has, or is about to get, its final name. The last such line about a shard counts."""

    rank: int
    run_id: str
    """Of the incarnation that opened it; a salvage writes this line for another one's shard."""
    number: int
    """As it was opened."""
    name: str
    """Final file name."""
    size: int
    xxh3: str
    """xxh3-128 of the whole file."""
    rows: int
    offsets: tuple[int, ...]
    """Of its blocks, in file order."""


class DroppedRecord(msgspec.Struct, frozen=True, kw_only=True, tag="dropped"):
    """A closed shard does not count any more; its blocks that do were copied into another one."""

    rank: int
    run_id: str
    number: int


class SupersededRecord(msgspec.Struct, frozen=True, kw_only=True, tag="superseded"):
    """Blocks of these chunks don't count any more: an extension has made others of what they held.

    The one line that turns the old dataset into the extended one; written when all of the extension's chunks are done.
    """

    plan: str
    """Fingerprint of the extension."""
    chunks: tuple[int, ...]


Record = JournalHeader | BlockRecord | ClosedRecord | DroppedRecord | SupersededRecord

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def encode_line(record: Record) -> bytes:
    """The record as one line, with its line end."""
    payload = _encoder.encode(record)
    return b"".join([_PREFIX, _sum(payload), _MIDDLE, payload, b"}\n"])


def decode_line(line: bytes) -> Record | None:
    """The record of a line without its line end, or None if the line is torn, damaged or of an unknown kind."""
    payload = line[_START:-1]
    if line != b"".join([_PREFIX, _sum(payload), _MIDDLE, payload, b"}"]):
        return None
    try:
        return _decoder.decode(payload)
    except msgspec.MsgspecError:
        return None


def _sum(payload: bytes) -> bytes:
    return xxhash.xxh3_64_hexdigest(payload).encode()
