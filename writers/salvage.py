"""What a run that ended early left in ``.prep/open`` becomes finished shards, or goes.

A stream that is torn at a block's border opens without an error and has fewer rows, so what is in the file proves
nothing: a block is kept if its journal line is readable and the xxh3-128 in it is that of the bytes. Mostly these
blocks stand at the head of the file, without a gap: then the torn rest is cut, the end mark written and the file
published in place, at the cost of one read. Otherwise (a line in the midst is damaged) the good blocks are copied.

Nothing an earlier run wrote into its journal is touched: the salvage writes "closed" lines of its own. Each step
can be repeated, so a salvage that is killed is simply done again.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..core.paths import OutputPaths, Part, shard_name
from ..core.schema import row_schema
from .atomic import disk_errors, write_all
from .block import END_MARK, hash_file
from .ledger import OpenShard, read_journals
from .lineage import Lineage
from .part import publish
from .records import BlockRecord, ClosedRecord
from .repair import RepairWriters, copy_blocks, read_good_block
from .shard import ShardWriter


@dataclass(frozen=True, kw_only=True, slots=True)
class SalvageReport:
    """What a salvage found."""

    num_shards: int
    """Open shards that were finished."""
    num_blocks: int
    """Blocks in them."""
    num_removed: int
    """Open shards without a block that could be kept."""
    num_bad_blocks: int
    """Blocks that the journal speaks of and that were not there as it says."""


def salvage_open_shards(paths: OutputPaths, fingerprint: Lineage, *, part: Part | None = None) -> SalvageReport:
    """Finish the open shards of earlier runs of the plan ``fingerprint``.

    The caller holds the lock of ``part``, and no worker of it is running. ``part`` None: it holds the locks of all
    parts; then open shards of which no readable journal speaks are removed, too. Shards of other plans are left alone.
    Raises DiskError if the disk refuses.
    """
    journal = read_journals(paths, fingerprint)
    ours = [shard for shard in journal.open if part is None or shard.part == part]
    outcomes: list[_Outcome] = []
    with RepairWriters(paths, fingerprint) as writers:
        for shard in ours:
            outcomes.append(_salvage(paths, shard, writers))
    if part is None:
        for path in journal.orphans:
            path.unlink(missing_ok=True)
    return SalvageReport(
        num_shards=sum(outcome.num_good > 0 for outcome in outcomes),
        num_blocks=sum(outcome.num_good for outcome in outcomes),
        num_removed=sum(outcome.num_good == 0 for outcome in outcomes),
        num_bad_blocks=sum(outcome.num_bad for outcome in outcomes),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    num_good: int
    num_bad: int


def _salvage(paths: OutputPaths, shard: OpenShard, writers: RepairWriters) -> _Outcome:
    if shard.closed is not None and _is_complete(shard, shard.closed):
        publish(paths, writers.writer(shard.key[0], shard.part).journal, shard.path, shard.closed)
        return _Outcome(len(shard.closed.offsets), 0)
    good, head = _examine(shard)
    if not good:
        shard.path.unlink()
    elif good == head:
        _finish_in_place(paths, shard, good, writers.writer(shard.key[0], shard.part))
    else:
        copy_blocks(shard.path, good, writers.writer(shard.key[0], shard.part))
        shard.path.unlink()
    return _Outcome(len(good), len(shard.records) - len(good))


def _is_complete(shard: OpenShard, closed: ClosedRecord) -> bool:
    """It was killed between the "closed" line and the rename."""
    with disk_errors(shard.path):
        return shard.path.stat().st_size == closed.size and hash_file(shard.path) == closed.xxh3


def _examine(shard: OpenShard) -> tuple[list[BlockRecord], list[BlockRecord]]:
    """The blocks that can be kept, and those of them that follow the schema message without a gap."""
    good: list[BlockRecord] = []
    with disk_errors(shard.path), open(shard.path, "rb") as file:
        end = _schema_end(file.fileno())
        good = [record for record in shard.records if read_good_block(file.fileno(), record) is not None]
    head: list[BlockRecord] = []
    for record in good:
        if record.offset == end:
            head.append(record)
            end += record.length
    return good, head


def _schema_end(descriptor: int) -> int:
    """Where the schema message ends, or -1 if the file doesn't begin with that of a row.

    Compared as a schema, not byte for byte: another version of pyarrow may have written it.
    """
    start = os.pread(descriptor, 8, 0)
    end = 8 + int.from_bytes(start[4:8], "little")
    if len(start) < 8 or start[:4] != END_MARK[:4] or end > 1 << 20:
        return -1
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(os.pread(descriptor, end, 0)))
    except (pa.ArrowInvalid, OSError):
        return -1
    return end if schema.equals(row_schema(), check_metadata=True) else -1


def _finish_in_place(paths: OutputPaths, shard: OpenShard, good: Sequence[BlockRecord], writer: ShardWriter) -> None:
    end = good[-1].offset + good[-1].length
    with disk_errors(shard.path), open(shard.path, "r+b", buffering=0) as file:
        file.truncate(end)
        file.seek(end)
        write_all(file.fileno(), END_MARK)
        os.fsync(file.fileno())
    rank, run_id, number = shard.key
    closed = ClosedRecord(
        rank=rank,
        run_id=run_id,
        number=number,
        name=shard_name(rank, number),
        size=end + len(END_MARK),
        xxh3=hash_file(shard.path),
        rows=sum(record.rows for record in good),
        offsets=tuple(record.offset for record in good),
    )
    publish(paths, writer.journal, shard.path, closed)
