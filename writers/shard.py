"""``ShardWriter``: blocks into shards of bounded size, with a journal line for each.

The order of a commit is what makes it safe to kill the process at any moment:

    block   bytes, fdatasync, journal line, fdatasync
    shard   end mark, fsync, "closed" line (size and hash of the whole file), fdatasync, rename, fsync of the folders

So a line never speaks of bytes that are not on disk, and a final name never stands for a shard that is not complete.
A block of 33 MiB and its line take at most 25 ms on a local disk.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

import msgspec
import pyarrow as pa

from ..core.digest import digest_batch
from ..core.errors import OutputError
from ..core.paths import WHOLE, OutputPaths, Part, shard_name
from .block import END_MARK, BlockMetadata, encode_block
from .journal import JournalWriter, journal_header
from .lineage import Lineage
from .part import PartFile, publish
from .records import BlockRecord, ClosedRecord, ReusedRows, SkippedClip


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardLimits:
    """When a shard is closed and the next one begun: before a block would exceed one of these."""

    max_rows: int
    max_bytes: int
    """Of the whole file. A block that is larger gets a shard of its own."""


class ShardWriter:
    """Writes the shards and the journal of one worker incarnation. For use by one thread at a time.

    As a context manager it closes at the end, and abandons if the block raises: then the open shard is left to
    ``salvage_open_shards``, which keeps what was committed.
    """

    def __init__(
        self,
        paths: OutputPaths,
        rank: int,
        run_id: str,
        fingerprint: Lineage,
        limits: ShardLimits,
        *,
        part: Part = WHOLE,
        salvage: bool = False,
        on_closed: Callable[[ClosedRecord], None] | None = None,
    ) -> None:
        """``run_id`` (letters, digits, ``_``, ``-``) must be unique to this incarnation. No shard is opened yet."""
        self._paths, self._rank, self._run_id, self._limits = paths, rank, run_id, limits
        self._on_closed = on_closed
        self._open: PartFile | None = None
        self._blocks: list[BlockRecord] = []
        header = journal_header(rank, run_id, fingerprint, part=part, salvage=salvage)
        self.journal = JournalWriter(paths.journal(rank, run_id), header)
        self._broken = False
        self._released = False

    def write(
        self,
        batch: pa.RecordBatch | None,
        metadata: BlockMetadata,
        *,
        skipped: Sequence[SkippedClip] = (),
        warnings: Mapping[str, int] | None = None,
        reused: ReusedRows | None = None,
    ) -> BlockRecord:
        """Commit the rows of one chunk; it is on disk when this returns. None, or no rows: only the journal line.

        Raises DiskError if the disk refuses, and ValueError for a batch that is not of rows.
        """
        record = BlockRecord(
            chunk=metadata.chunk,
            number=None,
            skipped=tuple(skipped),
            warnings=dict(warnings or {}),
            reused=reused or ReusedRows(),
        )
        if batch is None or not batch.num_rows:
            return self._commit_line(record)
        block, digests = encode_block(batch, metadata), digest_batch(batch)
        record = msgspec.structs.replace(
            record,
            rows=batch.num_rows,
            xxh3=block.xxh3,
            digest=digests.full_hex,
            content_digest=digests.content_hex,
            audio_seconds=float(batch.column("audio_duration").to_numpy().sum()),
        )
        return self.copy(block.data, record)

    def copy(self, data: pa.Buffer, record: BlockRecord) -> BlockRecord:
        """Commit the bytes of a block that exists; ``record`` is its line, but for the place, which is a new one."""
        self._refuse_if_broken()
        self._broken = True
        part = self._part_for(len(data), record.rows)
        offset = part.append(data)
        record = msgspec.structs.replace(record, number=part.number, offset=offset, length=len(data))
        self._commit_line(record)
        self._blocks.append(record)
        self._broken = False
        return record

    def close_shard(self) -> None:
        """Close the open shard, if there is one; the next block begins a new one. Raises DiskError."""
        self._refuse_if_broken()
        self._broken = True
        self._close_shard()
        self._broken = False

    def close(self) -> None:
        """Close the open shard, if there is one, and the journal. Raises DiskError if the disk refuses."""
        self.close_shard()
        self._broken = True
        self._release()

    def abandon(self) -> None:
        """Let go of the files as they are."""
        self._broken = True
        if self._open is not None:
            self._open.close()
            self._open = None
        self._release()

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        try:
            if kind is None:
                self.close()
        finally:
            if not self._released:
                self.abandon()

    def _release(self) -> None:
        self.journal.close()
        self._released = True

    def _commit_line(self, record: BlockRecord) -> BlockRecord:
        self.journal.append(record)
        return record

    def _part_for(self, num_bytes: int, num_rows: int) -> PartFile:
        if self._open is not None and self._is_full(self._open, num_bytes, num_rows):
            self._close_shard()
        if self._open is None:
            self._open = PartFile(self._paths, self._rank, self._run_id)
        return self._open

    def _is_full(self, part: PartFile, num_bytes: int, num_rows: int) -> bool:
        rows = sum(block.rows for block in self._blocks) + num_rows
        return rows > self._limits.max_rows or part.size + num_bytes + len(END_MARK) > self._limits.max_bytes

    def _close_shard(self) -> None:
        if self._open is None:
            return
        part = self._open
        closed = ClosedRecord(
            rank=self._rank,
            run_id=self._run_id,
            number=part.number,
            name=shard_name(self._rank, part.number),
            xxh3=part.finish(),
            size=part.size,
            rows=sum(block.rows for block in self._blocks),
            offsets=tuple(block.offset for block in self._blocks),
        )
        closed = publish(self._paths, self.journal, part.path, closed)
        self._open, self._blocks = None, []
        if self._on_closed is not None:
            self._on_closed(closed)

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise OutputError(f"the shards of rank {self._rank} can't be written any further after an earlier error")
