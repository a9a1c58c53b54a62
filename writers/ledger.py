"""All journals of an output folder together: which chunks are done, where their rows lie, what is still open.

Reading costs one pass over the journals and one listing of the output folder; no shard is opened. What counts:

- A block counts if it is listed in the "closed" line of a shard whose file is there with the size that line says.
  A shard that someone deleted, or cut, is *lost*: its chunks are not done.
- A chunk counts once. Two blocks of one chunk come only from a run that was believed dead and wasn't, from a kill in
  the midst of a repair, or from a damaged line; then the first by (rank, number, offset) counts, the others are *hidden*.
- A chunk that an extension superseded never counts: its blocks are hidden.
- A file named like a shard that no line claims is a *leftover* and never taken in.

Hidden blocks would show in ``load_from_disk``, so ``repair.drop_hidden_blocks`` runs before metadata is written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..core.digest import Digests, sum_digests
from ..core.paths import OutputPaths, Part, parse_open_shard_name, parse_shard_name
from .block import hash_file
from .journal import JournalFile, read_journal
from .journal_lines import JournalLines, ShardKey, sort_lines
from .lineage import Lineage, plans_of
from .records import BlockRecord, ClosedRecord, SkippedClip


@dataclass(frozen=True, slots=True)
class CommittedBlock:
    """The block, or the line without rows, that counts for a chunk."""

    record: BlockRecord
    rank: int
    shard: str
    """File name of its shard; "" without rows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedShard:
    """A shard that is complete and there."""

    name: str
    rank: int
    number: int
    """In its file name."""
    size: int
    xxh3: str
    blocks: tuple[CommittedBlock, ...]
    """Those that count, in file order."""
    num_hidden: int
    """Blocks in the file that don't count."""
    key: ShardKey
    part: Part
    """Part of the plan that it belongs to."""

    @property
    def num_rows(self) -> int:
        return sum(block.record.rows for block in self.blocks)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenShard:
    """A shard without its final name: being written, or left by a run that ended early."""

    path: Path
    key: ShardKey
    part: Part
    """Part of the plan that it belongs to."""
    records: tuple[BlockRecord, ...]
    """Lines about its blocks, by offset; what is in the file is another question."""
    closed: ClosedRecord | None
    """Its "closed" line, if it only wants its final name."""


@dataclass(frozen=True, kw_only=True)
class Journal:
    """What the journals of one plan say, held against the files that are there."""

    done: Mapping[int, CommittedBlock]
    """By chunk: what is in closed shards, and chunks without rows."""
    shards: tuple[ClosedShard, ...]
    """By (rank, number)."""
    open: tuple[OpenShard, ...]
    lost: tuple[ClosedRecord, ...]
    """Closed shards whose file is gone or has another size."""
    superseded: frozenset[int]
    """Chunks that extensions have replaced."""
    extensions: frozenset[str]
    """Fingerprints of the extensions that are complete."""
    dropped: tuple[ClosedRecord, ...]
    """Closed shards that a repair has replaced."""
    leftovers: tuple[str, ...]
    """Names in the output folder that look like shards and are none of ``shards``."""
    orphans: tuple[Path, ...]
    """Open shards of which no readable journal speaks."""
    num_damaged_lines: int
    num_torn_journals: int
    num_foreign_journals: int
    """Of another plan, or without a readable header."""

    @cached_property
    def committed_chunks(self) -> frozenset[int]:
        """Chunks done, with those in shards that are still open."""
        return frozenset(self.done) | {record.chunk for shard in self.open for record in shard.records}

    @cached_property
    def num_rows(self) -> int:
        return sum(block.record.rows for block in self.done.values())

    @cached_property
    def audio_seconds(self) -> float:
        """Of the rows."""
        return sum(block.record.audio_seconds for block in self.done.values())

    @cached_property
    def num_reused(self) -> int:
        """Rows whose latents were taken from another dataset."""
        return sum(block.record.reused.rows for block in self.done.values())

    @cached_property
    def num_bytes(self) -> int:
        return sum(shard.size for shard in self.shards)

    @cached_property
    def digests(self) -> Digests:
        return sum_digests(block.record.digests for block in self.done.values())

    @cached_property
    def warnings(self) -> Mapping[str, int]:
        """Rows with a warning, by code."""
        return sum((Counter(block.record.warnings) for block in self.done.values()), Counter())

    def skipped(self) -> Iterator[tuple[int, SkippedClip]]:
        """(chunk, clip) of every clip of a done chunk that has no row, by chunk and position."""
        for chunk in sorted(self.done):
            for clip in sorted(self.done[chunk].record.skipped, key=lambda clip: clip.position):
                yield chunk, clip


def read_journals(paths: OutputPaths, fingerprint: Lineage) -> Journal:
    """Read the journals of the plans ``fingerprint``; those of other plans are counted and left alone."""
    plans = plans_of(fingerprint)
    files = [read_journal(path) for path in sorted(paths.journal_dir.glob("*.jsonl"))]
    ours = [file for file in files if file.header is not None and file.header.fingerprint in plans]
    lines = sort_lines(ours)
    parts_there = _parts(paths)  # first: a shard that gets its name meanwhile is seen twice, not never
    shards_there = {path.name: path.stat().st_size for path in paths.root.glob("data-*.arrow")}
    present, lost = _hold_against_files(paths, lines, shards_there, parts_there)
    done: dict[int, CommittedBlock] = {}
    shards = tuple(
        _closed_shard(key, present[key], lines, done) for key in sorted(present, key=lambda key: _place(present[key]))
    )
    for rank, record in lines.without_rows:
        if record.chunk in lines.superseded:
            continue
        done.setdefault(record.chunk, CommittedBlock(record, rank, ""))
    return Journal(
        done=done,
        shards=shards,
        open=tuple(_open_shard(key, path, lines) for key, path in parts_there.items() if key[:2] in lines.headers),
        lost=lost,
        superseded=frozenset(lines.superseded),
        extensions=frozenset(lines.extensions),
        dropped=tuple(lines.closed[key] for key in sorted(lines.dropped) if key in lines.closed),
        leftovers=tuple(sorted(shards_there.keys() - {shard.name for shard in shards})),
        orphans=tuple(path for key, path in parts_there.items() if not _has_header(files, key)),
        num_damaged_lines=sum(file.damaged_lines for file in ours),
        num_torn_journals=sum(file.torn_tail for file in ours),
        num_foreign_journals=len(files) - len(ours),
    )


def _parts(paths: OutputPaths) -> dict[ShardKey, Path]:
    parts: dict[ShardKey, Path] = {}
    for path in sorted(paths.open_dir.glob("*.part")):
        name = parse_open_shard_name(path.name)
        if name is not None:
            rank, number, run_id = name
            parts[rank, run_id, number] = path
    return parts


def _has_header(files: Iterable[JournalFile], key: ShardKey) -> bool:
    return any(file.header is not None and (file.header.rank, file.header.run_id) == key[:2] for file in files)


def _hold_against_files(
    paths: OutputPaths, lines: JournalLines, sizes: Mapping[str, int], parts: Mapping[ShardKey, Path]
) -> tuple[dict[ShardKey, ClosedRecord], tuple[ClosedRecord, ...]]:
    """The closed shards that are there, and those that are lost."""
    closed = {key: record for key, record in lines.closed.items() if key not in lines.dropped}
    claims: dict[str, list[ShardKey]] = {}
    for key, record in closed.items():
        if sizes.get(record.name) == record.size:
            claims.setdefault(record.name, []).append(key)
    owners = (_owner(paths.root / name, keys, closed) for name, keys in claims.items())
    present = {key: closed[key] for key in owners if key is not None}
    lost = tuple(record for key, record in closed.items() if key not in present and key not in parts)
    return present, lost


def _owner(path: Path, keys: Sequence[ShardKey], closed: Mapping[ShardKey, ClosedRecord]) -> ShardKey | None:
    """Whose shard it is. Two lines claim one name if a shard was lost and another one has got its number since."""
    if len(keys) == 1:
        return keys[0]
    found = hash_file(path)
    return next((key for key in keys if closed[key].xxh3 == found), None)


def _place(closed: ClosedRecord) -> tuple[int, int]:
    """(rank, number) of its final name."""
    return parse_shard_name(closed.name) or (closed.rank, closed.number)


def _closed_shard(
    key: ShardKey, closed: ClosedRecord, lines: JournalLines, done: dict[int, CommittedBlock]
) -> ClosedShard:
    """The shard with its blocks that count, which are entered into ``done``."""
    rank, number = _place(closed)
    records = lines.blocks.get(key, {})
    counting: list[CommittedBlock] = []
    for offset in closed.offsets:
        record = records.get(offset)
        if record is not None and record.chunk not in done and record.chunk not in lines.superseded:
            done[record.chunk] = CommittedBlock(record, rank, closed.name)
            counting.append(done[record.chunk])
    return ClosedShard(
        name=closed.name,
        rank=rank,
        number=number,
        size=closed.size,
        xxh3=closed.xxh3,
        blocks=tuple(counting),
        num_hidden=len(closed.offsets) - len(counting),
        key=key,
        part=lines.part(key),
    )


def _open_shard(key: ShardKey, path: Path, lines: JournalLines) -> OpenShard:
    records = lines.blocks.get(key, {})
    return OpenShard(
        path=path,
        key=key,
        part=lines.part(key),
        records=tuple(records[offset] for offset in sorted(records)),
        closed=lines.closed.get(key),
    )
