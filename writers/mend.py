"""A damaged shard becomes a new one of its good blocks: what a repair does before it encodes anything.

Good is a block whose bytes have the checksum of its journal line, so damage to one block, to the schema message or to
the end mark costs a copy of the others. The old shard then counts no more (a "dropped" line), and its damaged chunks
are open again. Its file stays until ``repair.remove_dropped``: state.json names it until the repair is complete.

The new shard is complete, and in the journal, before the line about the old one. Killed in between, the next repair
finds the good blocks in the new shard, copies none of them again, and writes that line.
"""

import errno
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.paths import OutputPaths
from .atomic import disk_errors
from .journal import read_journal
from .journal_lines import JournalLines, ShardKey, sort_lines
from .ledger import Journal, read_journals
from .lineage import Lineage, plans_of
from .records import BlockRecord, DroppedRecord
from .repair import RepairWriters, read_good_block
from .shard import ShardWriter


@dataclass(frozen=True, kw_only=True, slots=True)
class MendedShard:
    """What became of one damaged shard."""

    name: str
    num_kept: int
    """Blocks that were good: copied, or in another shard already."""
    chunks: tuple[int, ...]
    """Chunks to encode again."""


def mend_shards(paths: OutputPaths, fingerprint: Lineage, names: Collection[str]) -> tuple[MendedShard, ...]:
    """Copy the good blocks of the shards ``names``, and make these count no more.

    The caller holds the locks of all parts, and no worker is running. Names that the journal doesn't know are passed
    over. Raises DiskError if the disk refuses to open or to write; a block that it can't read is a damaged block.
    """
    journal = read_journals(paths, fingerprint)
    lines = _lines(paths, fingerprint)
    held = set(_held(journal, lines, names)) | lines.superseded
    mended: list[MendedShard] = []
    with RepairWriters(paths, fingerprint) as writers:
        for key in _keys(journal, lines, names):
            writer = writers.writer(key[0], lines.part(key))
            mended.append(_mend(paths, lines, key, held, writer))
    return tuple(mended)


def _lines(paths: OutputPaths, fingerprint: Lineage) -> JournalLines:
    plans = plans_of(fingerprint)
    files = [read_journal(path) for path in sorted(paths.journal_dir.glob("*.jsonl"))]
    return sort_lines(file for file in files if file.header is not None and file.header.fingerprint in plans)


def _held(journal: Journal, lines: JournalLines, names: Collection[str]) -> Iterator[int]:
    """The chunks that have a block in a shard which isn't damaged."""
    for shard in journal.shards:
        if shard.name not in names:
            yield from (record.chunk for record in _records(lines, shard.key))


def _records(lines: JournalLines, key: ShardKey) -> list[BlockRecord]:
    """The readable lines of a closed shard's blocks, in file order."""
    blocks = lines.blocks.get(key, {})
    return [blocks[offset] for offset in lines.closed[key].offsets if offset in blocks]


def _keys(journal: Journal, lines: JournalLines, names: Collection[str]) -> list[ShardKey]:
    """The shards of these names, whether the ledger finds them there or not."""
    there = [shard.key for shard in journal.shards if shard.name in names]
    lost = [(record.rank, record.run_id, record.number) for record in journal.lost if record.name in names]
    return sorted({*there, *lost} - lines.dropped)


def _mend(paths: OutputPaths, lines: JournalLines, key: ShardKey, held: set[int], writer: ShardWriter) -> MendedShard:
    """``held`` grows by the chunks whose blocks are copied."""
    name, records = lines.closed[key].name, _records(lines, key)
    copied = _copy_good(paths.root / name, [record for record in records if record.chunk not in held], writer)
    held.update(copied)
    rank, run_id, number = key
    writer.journal.append(DroppedRecord(rank=rank, run_id=run_id, number=number))
    lost = tuple(sorted({record.chunk for record in records} - held))
    return MendedShard(name=name, num_kept=len(records) - len(lost), chunks=lost)


def _copy_good(source: Path, records: Sequence[BlockRecord], writer: ShardWriter) -> list[int]:
    """Copy the good ones of these blocks into a shard of their own; returns their chunks."""
    if not records or not source.exists():
        return []
    copied: list[int] = []
    with disk_errors(source):
        descriptor = os.open(source, os.O_RDONLY)
    try:
        for record in records:
            data = _read_if_possible(descriptor, source, record)
            if data is not None:
                writer.copy(data, record)
                copied.append(record.chunk)
        writer.close_shard()
    finally:
        os.close(descriptor)
    return copied


def _read_if_possible(descriptor: int, source: Path, record: BlockRecord):
    """The bytes of a good block; None for a damaged one, also if the disk can't read it back."""
    with disk_errors(source):
        try:
            return read_good_block(descriptor, record)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return None
