"""The metadata files held against the shards: state.json, dataset_info.json, provenance.json, skipped.jsonl.

Compared with what a run would write of these shards today, so that any edit shows that changes what is loaded or what
is claimed. Free texts (license, citation, description, command, configuration) may be edited.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..core.digest import Digests, sum_digests
from ..core.paths import OutputPaths
from .hf_dataset import info_content, state_content
from .ledger import Journal
from .provenance import Counts, ShardFacts
from .records import BlockRecord
from .skipped import read_skipped
from .verify_expect import Expected
from .verify_report import DamageCode, Problem
from .verify_shard import ShardResult

_INFO_KEYS = ("features", "splits", "dataset_size")


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """What the metadata should say; None where nobody knows."""

    shards: tuple[ShardFacts, ...]
    digests: Digests | None
    audio_seconds: float | None
    chunks: int | None
    """With those that have no rows."""
    warnings: Mapping[str, int] | None
    skipped: Counter[str] | None
    """By skipped.jsonl."""

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def size(self) -> int:
        return sum(shard.size for shard in self.shards)


def totals(expected: Expected, results: tuple[ShardResult, ...], skipped: Counter[str] | None) -> Totals:
    """By the journal, where it is there; else by what was found, where nothing was wrong with it."""
    shards = tuple(_facts(result) for result in results if not result.shard.is_open)
    if expected.journal is None:
        digests, seconds = _found(results)
        return Totals(
            shards=shards, digests=digests, audio_seconds=seconds, chunks=None, warnings=None, skipped=skipped
        )
    records = _records(expected, expected.journal)
    if records is None:
        return Totals(shards=shards, digests=None, audio_seconds=None, chunks=None, warnings=None, skipped=skipped)
    return Totals(
        shards=shards,
        digests=sum_digests(record.digests for record in records),
        audio_seconds=math.fsum(record.audio_seconds for record in records),
        chunks=len(records),
        warnings=sum((Counter(record.warnings) for record in records), Counter()),
        skipped=skipped,
    )


def _records(expected: Expected, journal: Journal) -> list[BlockRecord] | None:
    """Of all chunks, also of those in shards that are gone; None if a line of one is damaged."""
    records = {chunk: block.record for chunk, block in journal.done.items()}
    for shard in expected.shards:
        for block in shard.blocks or ():
            if block.record is None:
                return None
            records.setdefault(block.record.chunk, block.record)
    return list(records.values())


def _facts(result: ShardResult) -> ShardFacts:
    shard = result.shard
    rows = sum(block.num_rows for block in result.blocks) if shard.rows is None else shard.rows
    size = result.size if shard.size is None else shard.size
    return ShardFacts(name=shard.name, size=size, rows=rows, xxh3=shard.xxh3 or result.xxh3 or "")


def _found(results: Sequence[ShardResult]) -> tuple[Digests | None, float | None]:
    blocks = [block for result in results for block in result.blocks]
    digests = [block.digests for block in blocks if block.digests is not None]
    if any(result.damaged for result in results) or len(digests) != len(blocks):
        return None, None
    return sum_digests(digests), math.fsum(block.audio_seconds for block in blocks)


def metadata_problems(expected: Expected, results: tuple[ShardResult, ...]) -> Iterator[Problem]:
    """What is wrong with the metadata of a finished dataset; nothing, if the run has not finished."""
    if expected.state is None and expected.provenance is None:
        return
    problems: list[Problem] = []
    skipped = _count_skipped(expected.paths, problems)
    yield from problems
    facts = totals(expected, results, skipped)
    for check in METADATA_CHECKS:
        yield from check(expected, facts)


def _count_skipped(paths: OutputPaths, problems: list[Problem]) -> Counter[str] | None:
    try:
        return Counter(line.code for line in read_skipped(paths.skipped))
    except FileNotFoundError:
        message = "the file is not there"
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        message = f"it can't be read: {error}"
    problems.append(Problem(code=DamageCode.SKIPPED, shard=paths.skipped.name, message=message))
    return None


def _check_state(expected: Expected, facts: Totals) -> Iterator[Problem]:
    def problem(message: str) -> Problem:
        return Problem(code=DamageCode.STATE, shard=expected.paths.state.name, message=message)

    if expected.state is None:
        if not _is_reported(expected, DamageCode.STATE):
            yield problem("the file is not there, so the folder can't be loaded")
        return
    names = tuple(shard.name for shard in facts.shards)
    if expected.state.names != names:
        yield problem(_names_message(expected.state.names, names))
    elif expected.fingerprint and (digests := _digests(expected, facts)) and _have_hashes(facts):
        wanted = state_content(facts.shards, expected.fingerprint, digests)
        yield from (problem(text) for text in _differences(expected.state.content, wanted, tuple(wanted)))


def _digests(expected: Expected, facts: Totals) -> Digests | None:
    """Of all rows: as found, else (the shards are damaged, and there is no journal) as provenance.json has them."""
    if facts.digests is not None or expected.journal is not None or expected.provenance is None:
        return facts.digests
    provenance = expected.provenance
    return Digests.from_hex(provenance.digest, provenance.content_digest, provenance.counts.written)


def _have_hashes(facts: Totals) -> bool:
    return all(shard.xxh3 for shard in facts.shards)


def _names_message(listed: tuple[str, ...], there: tuple[str, ...]) -> str:
    unknown, absent = sorted(set(listed) - set(there)), sorted(set(there) - set(listed))
    if unknown:
        return f"it lists {unknown[0]}, which is no shard of this run"
    if absent:
        return f"it doesn't list {absent[0]}"
    return "it lists a shard twice" if len(listed) != len(there) else "it lists the shards in another order"


def _differences(content: Mapping[str, Any], wanted: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        if key not in content:
            yield f"it has no {key}"
        elif content[key] != wanted[key]:
            found, expected = (json.dumps(value)[:80] for value in (content[key], wanted[key]))
            yield f"{key} is {found}, a run writes {expected}"


def _check_dataset_info(expected: Expected, facts: Totals) -> Iterator[Problem]:
    path = expected.paths.dataset_info
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("not an object")
    except FileNotFoundError:
        yield Problem(code=DamageCode.DATASET_INFO, shard=path.name, message="the file is not there")
        return
    except (OSError, ValueError) as error:
        yield Problem(code=DamageCode.DATASET_INFO, shard=path.name, message=f"it can't be read: {error}")
        return
    wanted = info_content(facts.shards, Digests(full=0, content=0, num_rows=facts.rows))
    for text in _differences(content, wanted, _INFO_KEYS):
        yield Problem(code=DamageCode.DATASET_INFO, shard=path.name, message=text)


def _check_provenance(expected: Expected, facts: Totals) -> Iterator[Problem]:
    def problem(message: str) -> Problem:
        return Problem(code=DamageCode.PROVENANCE, shard=expected.paths.provenance.name, message=message)

    provenance = expected.provenance
    if provenance is None:
        if not _is_reported(expected, DamageCode.PROVENANCE):
            yield problem("the file is not there")
        return
    for name, found, wanted in _claims(expected, provenance.counts, facts):
        if wanted is not None and found != wanted:
            yield problem(f"{name} is {found}, the shards say {wanted}")
    counts = provenance.counts
    if counts.planned != counts.written + sum(counts.skipped.values()) + counts.remaining:
        yield problem(
            f"planned {counts.planned} is not written {counts.written} + skipped {sum(counts.skipped.values())}"
            f" + remaining {counts.remaining}"
        )
    if provenance.shards != facts.shards:
        yield problem(_table_message(provenance.shards, facts.shards))


def _claims(expected: Expected, counts: Counts, facts: Totals) -> Iterator[tuple[str, object, object]]:
    """(name, what provenance.json says, what it should say or None)."""
    assert expected.provenance is not None
    digests, seconds = facts.digests, facts.audio_seconds
    agree = seconds is not None and math.isclose(counts.audio_seconds, seconds, rel_tol=1e-9)
    yield "counts.written", counts.written, facts.rows
    yield "counts.remaining", counts.remaining, 0
    yield "counts.shards", counts.shards, len(facts.shards)
    yield "counts.bytes", counts.bytes, facts.size
    yield "counts.chunks", counts.chunks, facts.chunks
    yield "counts.warnings", counts.warnings, facts.warnings
    yield "counts.audio_seconds", counts.audio_seconds, counts.audio_seconds if agree else seconds
    yield "digest", expected.provenance.digest, digests and digests.full_hex
    yield "content_digest", expected.provenance.content_digest, digests and digests.content_hex
    yield "fingerprint", expected.provenance.fingerprint, expected.fingerprint


def _table_message(listed: tuple[ShardFacts, ...], there: tuple[ShardFacts, ...]) -> str:
    for a, b in zip(listed, there, strict=False):
        if a != b:
            return f"its table of shards has {msgspec.structs.asdict(a)}, the shard is {msgspec.structs.asdict(b)}"
    return f"its table has {len(listed)} shards, there are {len(there)}"


def _check_skipped(expected: Expected, facts: Totals) -> Iterator[Problem]:
    if facts.skipped is None or expected.provenance is None:
        return
    counted = expected.provenance.counts.skipped
    for code in sorted(counted.keys() | facts.skipped.keys()):
        listed = facts.skipped[code]
        if counted.get(code, 0) != listed:
            message = (
                f"it lists {listed:,} clips as {code}, {expected.paths.provenance.name} counts {counted.get(code, 0):,}"
            )
            yield Problem(code=DamageCode.SKIPPED, shard=expected.paths.skipped.name, message=message)


def _is_reported(expected: Expected, code: DamageCode) -> bool:
    return any(problem.code == code for problem in expected.problems)


MetadataCheck = Callable[[Expected, Totals], Iterator[Problem]]

METADATA_CHECKS: tuple[MetadataCheck, ...] = (_check_state, _check_dataset_info, _check_provenance, _check_skipped)
"""One for each file of text; verify_index.py looks at index.arrow."""
