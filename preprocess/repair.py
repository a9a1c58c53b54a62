"""What is damaged in an output folder before a run goes on there, and how it becomes work for the run.

    journal made anew where it is gone ─► find damage ─► names put right ─► good blocks of damaged shards copied
        ─► (the run: damaged chunks encoded, metadata written, state.json last, old shards deleted)

A finished dataset is read whole, at about the speed of the disk: nothing else finds a flipped bit, and giving the
command again is the request to have the dataset complete. ``check=False`` looks at names, sizes and headers only (1 ms
a shard), and so does a run that isn't finished yet: its next worker should not wait for a check that its end repeats.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import yaml

from ..core.errors import OutputError
from ..core.paths import OutputPaths, parse_shard_name
from ..writers.atomic import atomic_file
from ..writers.journal import JournalFile, put_aside, read_journal
from ..writers.ledger import Journal, read_journals
from ..writers.mend import MendedShard, mend_shards
from ..writers.misplaced import bring_home, find_misplaced, move_shards
from ..writers.provenance import Provenance, ShardFacts, read_provenance
from ..writers.records import encode_line
from ..writers.skipped import SkippedLine, read_skipped
from ..writers.verify import find_damage
from ..writers.verify_report import VerifyReport
from . import events
from .adopt import Adoption, Skips
from .plan.checksum import checksum_path
from .plan.plans import Plans

_STEPS = 200
"""Progress events of a check, at most."""
_MAX_SHOWN = 20
"""Problems that are named one by one."""
_SETTINGS = ("datasets", "audio", "score", "max_samples", "limits")
"""Of the configuration: those that a plan depends on."""


def repair(paths: OutputPaths, plan: Plans, tell: events.EventSink, *, check: bool = True) -> None:
    """Find damage and leave a folder whose journal speaks of good blocks only; the run encodes what is open then.

    No worker may be running, and the caller holds the lock. May be killed and called again at any moment. Raises
    OutputError if the plan was made anew and isn't that of the shards, DiskError if the disk refuses.
    """
    bring_home(paths.root)
    made_by = _provenance(paths, tell)
    has_journal = bool((found := read_journals(paths, plan.fingerprints)).done or found.open or found.lost)
    if made_by is not None and made_by.fingerprint != plan.fingerprint and not has_journal:
        _refuse_other_plan(paths, plan, made_by)
    if made_by is None and not has_journal and found.leftovers and (other := _other_plans(paths, plan)):
        _refuse_unfinished(paths, plan, other)
    is_ours = made_by is not None and made_by.fingerprint == plan.fingerprint
    if made_by is not None and is_ours:
        _adopt(paths, plan, made_by, tell)
    _clean_journals(paths, plan, tell, headers_too=is_ours)
    if not any(paths.journal_dir.glob("*.jsonl")):
        return
    finished = paths.state.exists() or paths.provenance.exists()
    is_extending = made_by is not None and made_by.fingerprint in plan.fingerprints[:-1]
    report = _find(paths, tell, full=check and finished and not is_extending)
    damaged = {shard.name for shard in report.damaged if parse_shard_name(shard.name)}
    damaged |= {record.name for record in read_journals(paths, plan.fingerprints).lost}
    if damaged:
        damaged -= _put_names_right(paths, plan, damaged, tell)
        if mended := mend_shards(paths, plan.fingerprints, damaged):
            tell(events.Notice("warning", _mended_text(mended)))


def _refuse_other_plan(paths: OutputPaths, plan: Plans, made_by: Provenance) -> NoReturn:
    """The new plan goes, so that the next try makes another one of what the corpora are then."""
    error = OutputError(
        f"{paths.root} holds a finished dataset of plan {made_by.fingerprint[:12]}, and the plan made now is"
        f" {plan.fingerprint[:12]}: {_why_other(made_by, plan)}",
        why=f"{paths.work.name} was deleted, and without its plan nobody knows which clips a block of a shard holds",
        fix="restore the corpora and settings of that run, use another output_dir, or start anew with --overwrite",
    )
    _forget(paths)
    raise error


def _forget(paths: OutputPaths) -> None:
    paths.plan.unlink()
    checksum_path(paths.plan).unlink(missing_ok=True)


def _other_plans(paths: OutputPaths, plan: Plans) -> set[str]:
    """Plans that journals here speak of, and that aren't this run's."""
    headers = [read_journal(path).header for path in paths.journal_dir.glob("*.jsonl")]
    return {header.fingerprint for header in headers if header is not None} - set(plan.fingerprints)


def _refuse_unfinished(paths: OutputPaths, plan: Plans, other: set[str]) -> NoReturn:
    error = OutputError(
        f"{paths.root} holds an unfinished run of plan {min(other)[:12]}, and the plan made now is"
        f" {plan.fingerprint[:12]}: corpora or settings have changed",
        why="its plan was lost, and without it nobody knows which clips a block of a shard holds",
        fix="restore the corpora and settings of that run, use another output_dir, or start anew with --overwrite",
    )
    _forget(paths)
    raise error


def _why_other(made_by: Provenance, plan: Plans) -> str:
    """The first thing that is known to differ."""
    encoder, identity, planned = made_by.encoder, plan.identity.values, plan.num_clips + plan.num_refused
    if encoder.weights_hash != identity["encoder.weights"]:
        return "the encoder has other weights"
    if encoder.tokenizer_hash != identity["tokenizer"]:
        return "the tokenizer is another one"
    if encoder.precision != identity["encoder.precision"]:
        return f"precision was {encoder.precision}, is {identity['encoder.precision']}"
    now = yaml.safe_load(plan.head.config_yaml)
    if other := [key for key in _SETTINGS if made_by.config.get(key) != now.get(key)]:
        return f"other settings than then: {', '.join(other)}"
    if len(made_by.plans) > 1:
        return "it was extended since it was first planned, which a single plan can't repeat"
    if made_by.counts.planned != planned:
        return f"the corpora had {made_by.counts.planned:,} clips, now they have {planned:,}"
    return "clips have changed since"


def _provenance(paths: OutputPaths, tell: events.EventSink) -> Provenance | None:
    """None if the run isn't finished, and if the file is damaged."""
    try:
        return read_provenance(paths.provenance)
    except FileNotFoundError:
        return None
    except (OSError, OutputError) as error:
        tell(events.Notice("warning", f"{paths.provenance.name} can't be read and is written anew: {error}"))
        return None


def _adopt(paths: OutputPaths, plan: Plans, made_by: Provenance, tell: events.EventSink) -> None:
    """Write journal lines about the shards, and the chunks without rows, of which no journal speaks."""
    journal = read_journals(paths, plan.fingerprints)
    unknown = _unclaimed(journal, made_by.shards)
    open_chunks = set(plan.live) - journal.committed_chunks
    if not open_chunks:
        return
    with Adoption(paths, plan, plan.fingerprints, _skips(paths, tell)) as adoption:
        if unknown:
            tell(events.Notice("info", f"no journal speaks of {len(unknown)} shards: it is made anew from them"))
            dropped = {record.name for record in journal.dropped}
            candidates = {shard.name for shard in unknown} | set(journal.leftovers) - dropped
            move_shards(paths.root, find_misplaced(paths.root, made_by.shards, candidates))
        for shard in unknown:
            if not adoption.adopt(shard):
                text = f"{shard.name} is damaged, and no checksums of its blocks are left: all of it is encoded again"
                tell(events.Notice("warning", text))
        for chunk in sorted(open_chunks - read_journals(paths, plan.fingerprints).committed_chunks):
            adoption.adopt_without_rows(chunk)


def _unclaimed(journal: Journal, shards: Sequence[ShardFacts]) -> list[ShardFacts]:
    """The shards of which no journal speaks."""
    there = {shard.name for shard in journal.shards}
    gone = {(shard.name, shard.xxh3) for shard in (*journal.lost, *journal.dropped)}
    return [shard for shard in shards if shard.name not in there and (shard.name, shard.xxh3) not in gone]


def _skips(paths: OutputPaths, tell: events.EventSink) -> Skips:
    """A clip that a worker skipped stands behind an item of the same name that was refused as its duplicate."""
    skips: dict[tuple[str, str], SkippedLine] = {}
    try:
        for line in read_skipped(paths.skipped):
            skips[line.dataset, line.item] = line
    except (OSError, ValueError) as error:
        text = f"{paths.skipped.name} can't be read ({error}): chunks with skipped clips are encoded again"
        tell(events.Notice("warning", text))
    return skips


def _clean_journals(paths: OutputPaths, plan: Plans, tell: events.EventSink, *, headers_too: bool) -> None:
    """Take damaged lines out of journals: they count no more, and would be found again by every check."""
    for path in sorted(paths.journal_dir.glob("*.jsonl")):
        journal = read_journal(path)
        if not journal.damaged_lines:
            continue
        if journal.header is not None and journal.header.fingerprint in plan.fingerprints:
            _write_again(journal)
            text = f"{journal.damaged_lines} damaged lines taken out of {path.name}; their chunks are encoded again"
        elif journal.header is None and headers_too:
            put_aside(path)
            text = f"the journal {path.name} has a damaged first line and is put aside"
        else:
            continue
        tell(events.Notice("warning", text))


def _write_again(journal: JournalFile) -> None:
    assert journal.header is not None
    with atomic_file(journal.path) as file:
        for record in (journal.header, *journal.records):
            file.write(encode_line(record))


def _find(paths: OutputPaths, tell: events.EventSink, *, full: bool) -> VerifyReport:
    shown = -1

    def on_progress(done: int, total: int) -> None:
        nonlocal shown
        step = done * _STEPS // max(1, total)
        if step > shown:
            shown = step
            tell(events.Checking(done, total))

    report = find_damage(paths, quick=not full, on_progress=on_progress if full else None)
    for problem in report.problems[:_MAX_SHOWN]:
        tell(events.Notice("warning", f"{problem.shard}: {problem.message}" if problem.shard else problem.message))
    if len(report.problems) > _MAX_SHOWN:
        text = f"and {len(report.problems) - _MAX_SHOWN:,} problems more; see `prep verify {Path(report.folder)}`"
        tell(events.Notice("warning", text))
    return report


def _put_names_right(paths: OutputPaths, plan: Plans, damaged: set[str], tell: events.EventSink) -> set[str]:
    """Give damaged names their own files back, where these lie under other names; returns the names that are right."""
    journal = read_journals(paths, plan.fingerprints)
    wanted = [shard for shard in (*journal.shards, *journal.lost) if shard.name in damaged]
    dropped = {record.name for record in journal.dropped}
    moves = find_misplaced(paths.root, wanted, damaged | (set(journal.leftovers) - dropped))
    for name, target in moves.items():
        tell(events.Notice("info", f"{name} holds the bytes of {target} and gets that name"))
    move_shards(paths.root, moves)
    return set(moves.values())


def _mended_text(mended: Sequence[MendedShard]) -> str:
    kept, chunks = sum(shard.num_kept for shard in mended), {chunk for shard in mended for chunk in shard.chunks}
    return f"{len(mended)} damaged shards: {kept} good blocks are kept, {len(chunks)} chunks are encoded again"
