"""Before and after the workers: what earlier runs committed, and what makes the shards a dataset.

All numbers come from the journals, which the workers wrote block by block; of the shards only headers and some small
columns are read back, for the index. ``state.json`` is
written only when nothing remains: a folder that opens is a folder that is complete.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from ..core.errors import OutputError, PrepError, TooManySkipped
from ..core.paths import OutputPaths
from ..core.units import samples_to_seconds
from ..writers.card import CardFacts, write_card
from ..writers.hf_dataset import dataset_fingerprint, write_hf_metadata
from ..writers.index_build import write_index
from ..writers.journal import put_aside, read_journal
from ..writers.ledger import Journal, read_journals
from ..writers.leftovers import set_aside
from ..writers.provenance import (
    Counts,
    EncoderFacts,
    PlanFacts,
    Provenance,
    Timings,
    describe_environment,
    read_provenance,
    shard_facts,
    write_provenance,
)
from ..writers.repair import drop_hidden_blocks, remove_dropped
from ..writers.salvage import salvage_open_shards
from ..writers.skipped import SkippedLine, by_code, skipped_line, write_skipped
from . import events
from .config import RunConfig
from .dispatch.stages import SUMMED, total
from .dispatched import Dispatched
from .encode.protocol import EncoderInfo
from .latent_settings import latent_settings
from .plan.identity import effective_precision
from .plan.plans import Plans
from .progress_so_far import committed_records
from .setup import RunSetup
from .supersede import supersede


def recover(paths: OutputPaths, plan: Plans, tell: events.EventSink) -> Journal:
    """Finish the open shards of earlier runs and read what is done. No worker may be running.

    Raises DiskError if the disk refuses.
    """
    report = salvage_open_shards(paths, plan.fingerprints)
    if report.num_shards or report.num_removed:
        text = f"an earlier run left shards open: {report.num_shards}; blocks kept of them: {report.num_blocks}"
        tell(events.Notice("info", text))
    drop_hidden_blocks(paths, plan.fingerprints, remove=False)
    journal = read_journals(paths, plan.fingerprints)
    for shard in journal.lost:
        tell(events.Notice("warning", f"{shard.name} is gone or cut; its rows are encoded again: {shard.rows}"))
    dropped = {shard.name for shard in journal.dropped}
    for name in (name for name in journal.leftovers if name not in dropped):
        tell(events.Notice("warning", f"{name} is no shard of this run: it is left alone and not taken in"))
    return journal


def interrupted(paths: OutputPaths, plan: Plans) -> events.Interrupted:
    """The numbers of a run that ends early, by its journals; nothing is written, since the disk may be full."""
    blocks = committed_records(read_journals(paths, plan.fingerprints))
    records = [record for chunk, record in blocks.items() if chunk not in plan.superseded]
    planned, written = plan.num_clips + plan.num_refused, sum(record.rows for record in records)
    skipped = plan.num_refused + sum(len(record.skipped) for record in records)
    return events.Interrupted(planned=planned, written=written, skipped=skipped, remaining=planned - written - skipped)


def finalize(
    setup: RunSetup,
    plan: Plans,
    work: Dispatched,
    command: Sequence[str],
    tell: events.EventSink,
) -> events.RunSummary:
    """Write skipped.jsonl, provenance.json, the card, the index and the Hugging Face metadata of a finished run.

    Raises OutputError if chunks remain or there is no row, TooManySkipped beyond ``max_skip_rate``, DiskError if the
    disk refuses.
    """
    paths = setup.paths
    journal = recover(paths, plan, tell)
    remaining = len(set(plan.live) - journal.done.keys())
    if remaining:
        raise OutputError(
            f"{remaining} chunks were reported done and are not in {paths.root}",
            why="something deletes or cuts files there",
            fix="see what else writes to that folder, then run the same command to go on",
        )
    if supersede(paths, plan, journal):
        journal = recover(paths, plan, tell)
    _put_damaged_journals_aside(paths, tell)
    _set_leftovers_aside(paths, plan, journal, tell)
    skipped = write_skipped(paths, _skipped_lines(plan, journal))
    summary = _summary(paths, plan, journal, skipped, work)
    if not summary.written:
        raise PrepError(
            f"not one of {summary.planned} clips gave a row: {_counts_text(skipped)}",
            why="a dataset without rows can't be opened",
            fix=f"see {paths.skipped} for the reason of each clip",
        )
    provenance = _provenance(setup, plan, journal, summary, work, command)
    write_provenance(paths, provenance if work.todo else _with_story_kept(paths, provenance))
    write_card(paths, _card(plan, setup.info, journal, summary))
    write_index(
        paths, journal.shards, dataset_fingerprint(journal.shards, plan.fingerprint, journal.digests), plan.spec
    )
    write_hf_metadata(paths, journal.shards, plan.fingerprint, journal.digests)
    remove_dropped(paths, plan.fingerprints)
    tell(events.Finished(summary))
    _refuse_too_many_skipped(setup.config, summary, paths)
    return summary


def _put_damaged_journals_aside(paths: OutputPaths, tell: events.EventSink) -> None:
    """Those without a readable first line: all chunks are done without them, and every check would name them again."""
    for path in sorted(paths.journal_dir.glob("*.jsonl")):
        journal = read_journal(path)
        if journal.header is None and journal.damaged_lines:
            put_aside(path)
            tell(events.Notice("warning", f"the journal {path.name} has a damaged first line and is put aside"))


def _set_leftovers_aside(paths: OutputPaths, plan: Plans, journal: Journal, tell: events.EventSink) -> None:
    dropped = {shard.name for shard in journal.dropped}
    for name in set_aside(paths, (name for name in journal.leftovers if name not in dropped), plan.fingerprints):
        text = f"{name} is of this dataset, but its journal was lost and its rows are in other shards: it is moved to"
        tell(events.Notice("warning", f"{text} {paths.leftover_dir}"))


def _skipped_lines(plan: Plans, journal: Journal) -> Iterator[SkippedLine]:
    for clip in plan.refused():
        yield SkippedLine(
            dataset=clip.dataset_name,
            item=clip.item_name,
            path=clip.audio_path,
            stage=clip.fault.stage,
            code=clip.fault.code,
            message=clip.fault.message,
        )
    for _, lost in journal.skipped():
        yield skipped_line(lost)


def _summary(
    paths: OutputPaths, plan: Plans, journal: Journal, skipped: Counter[str], work: Dispatched
) -> events.RunSummary:
    planned = plan.num_clips + plan.num_refused
    audio = samples_to_seconds(int(plan.chunk_samples[list(work.todo)].sum()), plan.spec.sample_rate)
    reused = sum(journal.done[chunk].record.reused.seconds for chunk in work.todo)
    return events.RunSummary(
        output_dir=str(paths.root),
        planned=planned,
        written=journal.num_rows,
        skipped=by_code(skipped),
        remaining=planned - journal.num_rows - skipped.total(),
        warnings=by_code(journal.warnings),
        audio_seconds=journal.audio_seconds,
        encoded_seconds=max(0.0, audio - reused),
        wall_seconds=work.wall_seconds,
        num_chunks=len(plan.live),
        num_shards=len(journal.shards),
        num_bytes=journal.num_bytes,
        digest=journal.digests.full_hex,
        content_digest=journal.digests.content_hex,
        fingerprint=plan.fingerprint,
        stages=work.stages,
        reused=journal.num_reused,
        bottleneck=work.bottleneck,
        num_batches=int(plan.chunks.batches[list(plan.live)].sum()),
    )


def _provenance(
    setup: RunSetup,
    plan: Plans,
    journal: Journal,
    summary: events.RunSummary,
    work: Dispatched,
    command: Sequence[str],
) -> Provenance:
    config = setup.config
    return Provenance(
        environment=describe_environment(),
        command=tuple(command),
        config=config.model_dump(mode="json"),
        fingerprint=plan.fingerprint,
        encoder=_encoder_facts(setup, plan, work),
        plans=tuple(
            PlanFacts(fingerprint=part.fingerprint, chunks=part.num_chunks, clips=part.num_clips) for part in plan.parts
        ),
        latents=latent_settings(plan.identity, setup.info),
        reused_from=str(config.reuse) if config.reuse is not None and summary.reused else None,
        devices=setup.devices.names,
        counts=Counts(
            planned=summary.planned,
            written=summary.written,
            skipped=dict(summary.skipped),
            remaining=summary.remaining,
            warnings=dict(summary.warnings),
            audio_seconds=summary.audio_seconds,
            chunks=summary.num_chunks,
            shards=summary.num_shards,
            bytes=summary.num_bytes,
            reused=summary.reused,
        ),
        digest=summary.digest,
        content_digest=summary.content_digest,
        timings=_timings(work, summary.encoded_seconds),
        shards=shard_facts(journal.shards),
    )


def _timings(work: Dispatched, encoded_seconds: float) -> Timings:
    whole = total(work.stages)
    sums = {name: getattr(whole, name) for name in SUMMED}
    return Timings(
        started=work.started.isoformat(timespec="seconds"),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        wall_seconds=round(work.wall_seconds, 3),
        encoded_seconds=encoded_seconds,
        stage_seconds={name: round(value, 3) for name, value in sums.items() if isinstance(value, float)},
        stage_counts={name: value for name, value in sums.items() if isinstance(value, int)},
        bottleneck=work.bottleneck.text if work.bottleneck else "",
        adapted=work.adapted,
        decode_threads=tuple(one.threads for one in work.stages),
    )


def _with_story_kept(paths: OutputPaths, provenance: Provenance) -> Provenance:
    """A run that had nothing to do is not what made the dataset: the story of the one that did is kept."""
    try:
        made = read_provenance(paths.provenance)
    except (OSError, OutputError):
        return provenance
    if made.digest != provenance.digest:
        return provenance
    return msgspec.structs.replace(
        provenance,
        command=made.command,
        environment=made.environment,
        encoder=made.encoder,
        devices=made.devices,
        timings=made.timings,
    )


def _encoder_facts(setup: RunSetup, plan: Plans, work: Dispatched) -> EncoderFacts:
    info = setup.info
    return EncoderFacts(
        name=info.name,
        checkpoint=info.checkpoint,
        weights_hash=info.weights_hash,
        tokenizer_hash=str(plan.identity.values["tokenizer"]),
        sample_rate=info.spec.sample_rate,
        hop_length=info.spec.hop_length,
        patch_size=info.spec.patch_size,
        latent_dim=info.spec.latent_dim,
        precision=effective_precision(setup.config, setup.devices.kind),
        precision_error=work.precision_error,
    )


def _card(plan: Plans, info: EncoderInfo, journal: Journal, summary: events.RunSummary) -> CardFacts:
    corpora: Counter[str] = Counter()
    for chunk, block in journal.done.items():
        corpora[plan.chunk_dataset[chunk]] += block.record.rows
    return CardFacts(
        corpora=corpora,
        audio_seconds=summary.audio_seconds,
        num_shards=summary.num_shards,
        num_bytes=summary.num_bytes,
        skipped=summary.skipped,
        warnings=summary.warnings,
        digests=journal.digests,
        encoder=f"{info.name}, weights {info.weights_hash}",
        spec=info.spec,
        tool_version=describe_environment().tool_version,
    )


def _refuse_too_many_skipped(config: RunConfig, summary: events.RunSummary, paths: OutputPaths) -> None:
    if config.max_skip_rate is None or summary.num_skipped <= config.max_skip_rate * summary.planned:
        return
    raise TooManySkipped(
        f"{summary.num_skipped} of {summary.planned} clips have no row ({_counts_text(summary.skipped)}),"
        f" more than max_skip_rate {config.max_skip_rate:g} allows",
        why="so many faults usually have one cause, such as a wrong audio_root",
        fix=f"see {paths.skipped}; the dataset itself is complete and can be used as it is",
    )


def _counts_text(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{code} {count}" for code, count in by_code(skipped).items())
