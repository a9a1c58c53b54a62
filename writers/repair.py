"""Blocks copied out of one shard into another: for shards whose good blocks have a gap between them, and for shards
that show a chunk which counts elsewhere.

The new shard is complete, and in the journal, before the old one goes: a kill in between leaves blocks twice, which
the ledger sees (one copy is hidden) and the next repair removes. Copying costs a read and a write of the shard, but
happens only after damage or after two runs at once.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from ..core.errors import OutputError
from ..core.paths import OutputPaths, Part
from .atomic import disk_errors, fsync_folder
from .block import hash_bytes
from .ledger import ClosedShard, read_journals
from .lineage import Lineage
from .records import BlockRecord, DroppedRecord
from .shard import ShardLimits, ShardWriter

_NO_LIMITS = ShardLimits(max_rows=1 << 62, max_bytes=1 << 62)


class RepairWriters:
    """One ``ShardWriter`` per rank and part of the plan, made when it is first asked for, all of one repair."""

    def __init__(self, paths: OutputPaths, fingerprint: Lineage) -> None:
        self._paths, self._fingerprint = paths, fingerprint
        self._run_id = f"repair-{time.time_ns():x}-{os.getpid():x}"
        self._writers: dict[tuple[int, Part], ShardWriter] = {}

    def writer(self, rank: int, part: Part) -> ShardWriter:
        if (rank, part) not in self._writers:
            run_id = f"{self._run_id}-p{part.name}"
            self._writers[rank, part] = ShardWriter(
                self._paths, rank, run_id, self._fingerprint, _NO_LIMITS, part=part, salvage=True
            )
        return self._writers[rank, part]

    def __enter__(self) -> "RepairWriters":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        for writer in self._writers.values():
            writer.__exit__(kind, error, trace)


def read_good_block(descriptor: int, record: BlockRecord) -> pa.Buffer | None:
    """The bytes of a block, if they are what its line says.

    Read, not mapped: a mapped page that the disk can't deliver kills the process with SIGBUS.
    """
    data = b"".join(_read(descriptor, record.offset, record.length))
    return pa.py_buffer(data) if len(data) == record.length and hash_bytes(data) == record.xxh3 else None


def _read(descriptor: int, offset: int, length: int):
    end = offset + length
    while offset < end and (data := os.pread(descriptor, min(end - offset, 1 << 30), offset)):
        offset += len(data)
        yield data


def copy_blocks(source: Path, records: Sequence[BlockRecord], writer: ShardWriter) -> int:
    """Copy the blocks that can be read into a new shard, which is closed; returns their number."""
    descriptor = os.open(source, os.O_RDONLY)
    num_copied = 0
    try:
        for record in records:
            with disk_errors(source):
                data = read_good_block(descriptor, record)
            if data is not None:
                writer.copy(data, record)
                num_copied += 1
        writer.close_shard()
    finally:
        os.close(descriptor)
    return num_copied


def drop_hidden_blocks(paths: OutputPaths, fingerprint: Lineage, *, remove: bool = True) -> int:
    """Rewrite every shard that holds blocks which don't count; returns how many shards that were.

    ``remove`` False leaves the old files where they are until ``remove_dropped``: state.json may still name them.
    To be called when no worker is running and before metadata is written. Raises OutputError if a block that counts
    can't be read any more, DiskError if the disk refuses. May be killed and called again at any moment.
    """
    if remove:
        remove_dropped(paths, fingerprint)
    journal = read_journals(paths, fingerprint)
    hidden = [shard for shard in journal.shards if shard.num_hidden]
    with RepairWriters(paths, fingerprint) as writers:
        for shard in hidden:
            _rewrite(paths, shard, writers.writer(shard.rank, shard.part))
            if remove:
                _remove(paths, [shard.name])
    return len(hidden)


def remove_dropped(paths: OutputPaths, fingerprint: Lineage) -> None:
    """Delete the files of shards that repairs have replaced. Raises DiskError if the disk refuses."""
    journal = read_journals(paths, fingerprint)
    _remove(paths, [record.name for record in journal.dropped if record.name in journal.leftovers])


def _rewrite(paths: OutputPaths, shard: ClosedShard, writer: ShardWriter) -> None:
    records = [block.record for block in shard.blocks]
    if records and copy_blocks(paths.root / shard.name, records, writer) != len(records):
        raise OutputError(
            f"{shard.name} is damaged: not all of its blocks are what the journal says",
            why="it also holds blocks that don't count, and has to be rewritten without them",
            fix=f"delete {paths.root / shard.name} and give the same command again; its chunks are then encoded anew",
        )
    rank, run_id, number = shard.key
    writer.journal.append(DroppedRecord(rank=rank, run_id=run_id, number=number))


def _remove(paths: OutputPaths, names: Sequence[str]) -> None:
    for name in names:
        (paths.root / name).unlink(missing_ok=True)
    if names:
        fsync_folder(paths.root)
