"""The journal of a finished dataset, made anew from its shards after ``.prep`` (or a journal) was deleted.

provenance.json knows the size and the hash of every shard, a block knows its chunk, its plan and the facts of its rows,
skipped.jsonl knows the clips without a row. Together they are what a journal says, provided that the plan is the same
one: chunk ids mean nothing otherwise. A shard whose hash is wrong gives nothing, since its blocks have no checksum of
their own; only where schema message or end mark alone are damaged the hash of the rest proves the blocks.

Costs two reads of every shard, and some 12 us a row for its digest.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from ..core.digest import digest_batch
from ..core.paths import OutputPaths, parse_shard_name
from ..writers.atomic import disk_errors
from ..writers.block import END_MARK, decode_block, hash_bytes, schema_bytes
from ..writers.ipc_message import RECORD_BATCH, read_header
from ..writers.journal import JournalWriter, journal_header
from ..writers.lineage import Lineage
from ..writers.provenance import ShardFacts
from ..writers.records import BlockRecord, ClosedRecord, DroppedRecord, ReusedRows, SkippedClip
from ..writers.skipped import SkippedLine
from .plan.plans import Plans
from .rows.facts import decode_facts

Skips = Mapping[tuple[str, str], SkippedLine]
"""By (corpus, item): why a clip has no row."""

_PIECE = 1 << 24


class Adoption:
    """Journals that one repair writes about shards that it did not write, one per rank. Use as a context manager."""

    def __init__(self, paths: OutputPaths, plan: Plans, lineage: Lineage, skips: Skips) -> None:
        self._paths, self._plan, self._lineage, self._skips = paths, plan, lineage, skips
        self._run_id = f"adopted-{time.time_ns():x}-{os.getpid():x}"
        self._journals: dict[int, JournalWriter] = {}

    def __enter__(self) -> "Adoption":
        return self

    def __exit__(self, *error: object) -> None:
        for journal in self._journals.values():
            journal.close()

    def adopt(self, shard: ShardFacts) -> bool:
        """Write the lines of a shard; False if its bytes can't be trusted: then it is written down as dropped.

        Raises DiskError if the disk refuses.
        """
        place = parse_shard_name(shard.name)
        if place is None:
            return False
        rank, number = place
        path, journal = self._paths.root / shard.name, self._journal(rank)
        with disk_errors(path):
            first = _first_block(path, shard)
            records = [] if first is None else list(self._records(path, number, first, shard.size))
        closed = ClosedRecord(
            rank=rank,
            run_id=self._run_id,
            number=number,
            name=shard.name,
            size=shard.size,
            xxh3=shard.xxh3,
            rows=shard.rows,
            offsets=tuple(found.offset for found in records),
        )
        for found in records:
            if found.record is not None:
                journal.append(found.record)
        if first is None:  # before the line that it is about: a kill between the two must not leave an empty shard
            journal.append(DroppedRecord(rank=rank, run_id=self._run_id, number=number))
        journal.append(closed)
        return first is not None

    def adopt_without_rows(self, chunk: int) -> bool:
        """Write the line of a chunk none of whose clips has a row, if skipped.jsonl has the reason for each."""
        clips = self._plan.chunk(chunk)
        skipped = self._skipped(clips, set())
        if skipped is None:
            return False
        self._journal(0).append(BlockRecord(chunk=chunk, number=None, skipped=skipped))
        return True

    def _journal(self, rank: int) -> JournalWriter:
        if rank not in self._journals:
            header = journal_header(rank, self._run_id, self._lineage, salvage=True)
            self._journals[rank] = JournalWriter(self._paths.journal(rank, self._run_id), header)
        return self._journals[rank]

    def _records(self, path: Path, number: int, first: int, size: int) -> Iterator["_Found"]:
        with open(path, "rb", buffering=0) as file:
            descriptor = file.fileno()
            for offset, end in _block_places(descriptor, first, size):
                data = os.pread(descriptor, end - offset, offset)
                yield _Found(offset, self._record(data, number, offset))

    def _record(self, data: bytes, number: int, offset: int) -> BlockRecord | None:
        """None if the plan, or skipped.jsonl, does not account for its rows: then its chunk is encoded again."""
        batch, metadata = decode_block(data)
        if not 0 <= metadata.chunk < self._plan.num_chunks:
            return None
        clips = self._plan.chunk(metadata.chunk)
        skipped = self._skipped(clips, set(_names(batch)))
        if metadata.fingerprint != self._plan.fingerprint_of(metadata.chunk) or skipped is None:
            return None
        if batch.num_rows + len(skipped) != clips.num_rows:
            return None
        digests = digest_batch(batch)
        return BlockRecord(
            chunk=metadata.chunk,
            number=number,
            offset=offset,
            length=len(data),
            rows=batch.num_rows,
            xxh3=hash_bytes(data),
            digest=digests.full_hex,
            content_digest=digests.content_hex,
            audio_seconds=float(np.sum(batch.column("audio_duration").to_numpy())),
            skipped=skipped,
            warnings=_warnings(metadata.facts),
            reused=ReusedRows(),
        )

    def _skipped(self, clips: pa.RecordBatch, rows: set[tuple[str, str]]) -> tuple[SkippedClip, ...] | None:
        """The clips of a chunk that have no row, with their reasons; None if one has no reason."""
        skipped: list[SkippedClip] = []
        for position, key in enumerate(_names(clips)):
            if key in rows:
                continue
            line = self._skips.get(key)
            if line is None:
                return None
            skipped.append(_skipped_clip(position, line))
        return tuple(skipped)


@dataclass(frozen=True, slots=True)
class _Found:
    """A block of a shard."""

    offset: int
    record: BlockRecord | None


def _names(batch: pa.RecordBatch) -> list[tuple[str, str]]:
    """(corpus, item) of every row."""
    datasets, items = (batch.column(name).to_pylist() for name in ("dataset_name", "item_name"))
    return list(zip(datasets, items, strict=True))


def _skipped_clip(position: int, line: SkippedLine) -> SkippedClip:
    return SkippedClip(
        position=position,
        dataset=line.dataset,
        item=line.item,
        path=line.path,
        stage=line.stage,
        code=line.code,
        message=line.message,
    )


def _warnings(facts: str) -> dict[str, int]:
    codes = decode_facts(facts).column("warnings").to_pylist()
    return dict(Counter(code for row in codes for code in row))


def _block_places(descriptor: int, first: int, size: int) -> Iterator[tuple[int, int]]:
    """(first byte, end) of every block of a shard of ``size`` bytes whose blocks, from ``first`` on, are good."""
    while first < size - len(END_MARK):
        header = read_header(lambda at, length: os.pread(descriptor, length, at), first, size)
        assert header is not None
        assert header.kind == RECORD_BATCH
        yield first, header.end
        first = header.end


def _first_block(path: Path, shard: ShardFacts) -> int | None:
    """Where the blocks begin, if the hash in provenance.json proves them; else None.

    It does if it is that of the file as it is, or would be with schema message and end mark restored.
    """
    if not path.is_file():
        return None
    whole, restored = xxhash.xxh3_128(), xxhash.xxh3_128()
    head, left = schema_bytes(), shard.size - len(END_MARK)
    with open(path, "rb") as file:
        whole.update(start := file.read(len(head)))
        restored.update(head)
        left -= len(start)
        while left > 0 and (piece := file.read(min(_PIECE, left))):
            whole.update(piece)
            restored.update(piece)
            left -= len(piece)
        whole.update(file.read(len(END_MARK)))
        restored.update(END_MARK)
        if left == 0 and whole.hexdigest() == shard.xxh3:
            file.seek(0)
            return 8 + int.from_bytes(file.read(8)[4:], "little")
    return len(head) if left == 0 and restored.hexdigest() == shard.xxh3 else None
