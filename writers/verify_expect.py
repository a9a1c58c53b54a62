"""What an output folder should hold, out of the best witness that is left.

1. The journal in ``.prep``: every block's place, checksum and digest, every shard's size and hash.
2. After ``.prep`` was deleted from a finished run: provenance.json's table of shards. Blocks then speak for themselves.
3. Otherwise state.json's list of names, and nothing is known of any byte.

Only the journal knows chunks apart, so only it can say which few of them to encode again.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..core.errors import OutputError
from ..core.paths import OutputPaths, parse_shard_name
from ..core.units import LatentSpec
from .block import END_MARK
from .journal import JournalFile, read_journal
from .journal_lines import JournalLines, ShardKey, sort_lines
from .ledger import Journal, read_journals
from .lineage import lineage_of
from .provenance import Provenance, read_provenance
from .records import BlockRecord, ClosedRecord
from .verify_report import DamageCode, Problem
from .verify_state import StateFile, read_state


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedBlock:
    """One block of a shard, as the journal has it."""

    offset: int
    length: int
    record: BlockRecord | None
    """None if its journal line is damaged: then only its place is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedShard:
    """One shard; what nobody knows any more is None."""

    path: Path
    size: int | None = None
    xxh3: str | None = None
    """xxh3-128 of the whole file."""
    rows: int | None = None
    blocks: tuple[ExpectedBlock, ...] | None = None
    is_open: bool = False
    """It is being written, or was left open: what the journal speaks of is looked at, the rest of the file isn't."""

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What should be there."""

    paths: OutputPaths
    checksums: Literal["journal", "provenance", "none"]
    fingerprint: str | None
    """Of the plan; of the last one of an extended dataset."""
    plans: tuple[str, ...]
    """Fingerprints of all plans that made the dataset, oldest first."""
    shards: tuple[ExpectedShard, ...]
    """In the dataset's order."""
    journal: Journal | None
    provenance: Provenance | None
    state: StateFile | None
    spec: LatentSpec | None
    problems: tuple[Problem, ...]
    """Met on the way: files that can't be read, shards that nothing speaks of."""


def expect(paths: OutputPaths, fingerprint: str | None = None) -> Expected:
    """Gather what is known of the folder. ``fingerprint`` picks the plan; by default that of the journals.

    Raises OutputError if the folder is none of this tool's.
    """
    there = sorted(path.name for path in paths.root.glob("data-*.arrow"))  # first: the journal then knows them all
    problems: list[Problem] = []
    state, provenance = read_state(paths, problems), _provenance(paths, problems)
    files = _read_journals(paths, problems)
    fingerprint = fingerprint or _fingerprint(files, provenance)
    plans = _plans(files, provenance, fingerprint)
    ours = [file for file in files if file.header is not None and file.header.fingerprint in plans]
    if not (ours or provenance or state or there or paths.work.is_dir()):
        raise OutputError(
            f"{paths.root} is not an output folder of prep: it has no {paths.state.name}, no shards and no .prep",
            fix="name the folder that `prep svs` wrote to",
        )
    journal = read_journals(paths, plans) if ours else None
    problems += _journal_problems(paths, files, ours, there)
    if journal is not None:
        shards = tuple(_journaled(paths, journal, sort_lines(ours)))
    else:
        shards = _listed(paths, provenance, state)
    problems += _extra(there, {*_names(shards), *_coming(files, fingerprint)})
    return Expected(
        paths=paths,
        checksums="journal" if journal else "provenance" if provenance and provenance.shards else "none",
        fingerprint=fingerprint,
        plans=plans,
        shards=shards,
        journal=journal,
        provenance=provenance,
        state=state,
        spec=_spec(provenance),
        problems=tuple(problems),
    )


def _read_journals(paths: OutputPaths, problems: list[Problem]) -> list[JournalFile]:
    files: list[JournalFile] = []
    for path in sorted(paths.journal_dir.glob("*.jsonl")):
        try:
            files.append(read_journal(path))
        except OSError as error:
            problems.append(Problem(code=DamageCode.JOURNAL, shard=path.name, message=f"can't be read: {error}"))
    return files


def _provenance(paths: OutputPaths, problems: list[Problem]) -> Provenance | None:
    try:
        return read_provenance(paths.provenance)
    except FileNotFoundError:
        return None
    except (OSError, OutputError) as error:
        what = error.what if isinstance(error, OutputError) else str(error)
        problems.append(Problem(code=DamageCode.PROVENANCE, shard=paths.provenance.name, message=what))
        return None


def _fingerprint(files: Sequence[JournalFile], provenance: Provenance | None) -> str | None:
    """That of the journals; if they are of several plans, the dataset's, else that which extends the others."""
    headers = [file.header for file in files if file.header is not None]
    counts = Counter(header.fingerprint for header in headers)
    if provenance is not None and (not counts or provenance.fingerprint in counts):
        return provenance.fingerprint
    return (
        max(headers, key=lambda header: (len(header.extends), counts[header.fingerprint])).fingerprint
        if counts
        else None
    )


def _plans(files: Sequence[JournalFile], provenance: Provenance | None, fingerprint: str | None) -> tuple[str, ...]:
    """The lineage that ends with ``fingerprint``: as provenance.json lists it, else as journals tell it.

    An extension that is under way is no part of it: until it is complete, the dataset is what it was.
    """
    if fingerprint is None:
        return ()
    if provenance is not None and provenance.fingerprint == fingerprint and provenance.plans:
        return tuple(plan.fingerprint for plan in provenance.plans)
    return lineage_of(fingerprint, (file.header for file in files if file.header is not None))


def _spec(provenance: Provenance | None) -> LatentSpec | None:
    if provenance is None:
        return None
    encoder = provenance.encoder
    return LatentSpec(
        sample_rate=encoder.sample_rate,
        hop_length=encoder.hop_length,
        patch_size=encoder.patch_size,
        latent_dim=encoder.latent_dim,
    )


def _journal_problems(
    paths: OutputPaths, files: Sequence[JournalFile], ours: Sequence[JournalFile], there: Sequence[str]
) -> Iterator[Problem]:
    for file in files:
        if file.header is None and file.damaged_lines:
            yield Problem(
                code=DamageCode.JOURNAL,
                shard=file.path.name,
                message="its first line is damaged, so nothing it says counts",
            )
        elif file.damaged_lines:
            yield Problem(
                code=DamageCode.JOURNAL, shard=file.path.name, message=f"{file.damaged_lines} of its lines are damaged"
            )
    opened = any(paths.open_dir.glob("*.part"))
    if not ours and paths.work.is_dir() and (there or opened):
        yield Problem(
            code=DamageCode.JOURNAL,
            shard=paths.journal_dir.name,
            message="there are shards and .prep, but no journal of their run: the next `prep svs` would encode all anew",
        )


def _journaled(paths: OutputPaths, journal: Journal, lines: JournalLines) -> Iterator[ExpectedShard]:
    """Closed shards by their final place, then open ones."""
    gone = {key: record for key in lines.closed if (record := _gone(key, journal, lines)) is not None}
    present = {shard.key: lines.closed[shard.key] for shard in journal.shards}
    by_name = {record.name: key for key, record in {**gone, **present}.items()}
    for name in sorted(by_name, key=lambda name: parse_shard_name(name) or (0, 0)):
        key = by_name[name]
        yield _closed(paths, lines.closed[key], lines.blocks.get(key, {}))
    for shard in journal.open:
        blocks = tuple(_block(record) for record in shard.records)
        if shard.closed is None and blocks:
            yield ExpectedShard(path=shard.path, blocks=blocks, is_open=True)


def _gone(key: ShardKey, journal: Journal, lines: JournalLines) -> ClosedRecord | None:
    """The "closed" line of a shard that the ledger counts as lost, unless all of its chunks were done again since."""
    record = lines.closed[key]
    if record not in journal.lost:
        return None
    chunks = {block.chunk for block in lines.blocks.get(key, {}).values()}
    return record if chunks - journal.done.keys() else None


def _closed(paths: OutputPaths, closed: ClosedRecord, records: Mapping[int, BlockRecord]) -> ExpectedShard:
    ends = (*closed.offsets[1:], closed.size - len(END_MARK))
    return ExpectedShard(
        path=paths.root / closed.name,
        size=closed.size,
        xxh3=closed.xxh3,
        rows=closed.rows,
        blocks=tuple(
            _block(records[offset])
            if offset in records
            else ExpectedBlock(offset=offset, length=end - offset, record=None)
            for offset, end in zip(closed.offsets, ends, strict=True)
        ),
    )


def _block(record: BlockRecord) -> ExpectedBlock:
    return ExpectedBlock(offset=record.offset, length=record.length, record=record)


def _listed(paths: OutputPaths, provenance: Provenance | None, state: StateFile | None) -> tuple[ExpectedShard, ...]:
    """Shards as the metadata lists them; provenance.json wins, since it knows sizes and hashes."""
    if provenance is not None and provenance.shards:
        return tuple(
            ExpectedShard(path=paths.root / shard.name, size=shard.size, xxh3=shard.xxh3, rows=shard.rows)
            for shard in provenance.shards
        )
    return tuple(ExpectedShard(path=paths.root / name) for name in (state.names if state else ()))


def _names(shards: Sequence[ExpectedShard]) -> Iterator[str]:
    return (shard.name for shard in shards)


def _coming(files: Sequence[JournalFile], fingerprint: str | None) -> Iterator[str]:
    """Shards of extensions that are under way."""
    for file in files:
        if file.header is not None and fingerprint in file.header.extends:
            yield from (record.name for record in file.records if isinstance(record, ClosedRecord))


def _extra(there: Sequence[str], known: Collection[str]) -> Iterator[Problem]:
    for name in there:
        if name not in known:
            yield Problem(
                code=DamageCode.SHARD_EXTRA,
                shard=name,
                message="neither the journal nor the metadata speaks of it; its rows are not part of the dataset",
            )
