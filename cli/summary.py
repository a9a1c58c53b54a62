"""What ``prep svs`` prints at its end: a ``RunSummary`` as text. Pure, so that every line is tested without a run."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote

from ..core.paths import OutputPaths
from ..preprocess.events import RunSummary
from ..writers.skipped import by_code
from .quantities import count, duration, rate, size, times_real_time

SMALL_BLOCK_ROWS = 64
"""Opening a dataset takes 140 MiB for 5 rows a block, 8 MiB for 200 (113 MB of rows); 64 lie between."""
SMALL_BATCH_CLIPS = 1.5
"""Below this most encoder calls hold one clip, which leaves a GPU idle."""
NOTED_ROWS = 2_000
"""Up to here a dataset opens at once however it is cut, and a trial run has small blocks and batches by design."""


def summary_text(summary: RunSummary) -> str:
    """The numbers, what was skipped, where the time went, and what to try next."""
    parts = (_numbers(summary), _skipped(summary), _stages(summary), _notes(summary), _next(summary))
    return "\n".join(line for part in parts for line in part)


def account(planned: int, written: int, skipped: int, remaining: int) -> str:
    """The line that says that nothing was lost in silence."""
    return f"planned {planned:,} = written {written:,} + skipped {skipped:,} + remaining {remaining:,}"


def _numbers(summary: RunSummary) -> Iterator[str]:
    yield account(summary.planned, summary.written, summary.num_skipped, summary.remaining)
    yield f"audio    {duration(summary.audio_seconds)} in rows; {_this_run(summary)}"
    yield (
        f"rows     {summary.written:,} of {count(summary.num_chunks, 'chunk')} in {count(summary.num_shards, 'shard')}, "
        f"{size(summary.num_bytes)}, in {summary.output_dir}"
    )
    if summary.reused:
        yield f"reused   {count(summary.reused, 'row')} took latents that were made before and were not encoded"
    yield f"digest   {summary.digest} ({count(summary.written, 'row')}, all columns)"
    yield f"content  {summary.content_digest} (without audio_feats: equal on every device)"


def _this_run(summary: RunSummary) -> str:
    """What this run did, apart from earlier ones. Clips that were read and then skipped count: they took time, too."""
    if not summary.wall_seconds:
        return f"nothing to encode: all {count(summary.planned, 'clip')} are done"
    verb = "encoded" if summary.reused else "read"
    text = f"this run {verb} {duration(summary.encoded_seconds)} of clips in {duration(summary.wall_seconds)}"
    speed = times_real_time(summary.encoded_seconds, summary.wall_seconds)
    return f"{text}: {rate(speed)} x real time" if summary.encoded_seconds else text


def _skipped(summary: RunSummary) -> Iterator[str]:
    if summary.num_skipped:
        yield f"skipped  {count(summary.num_skipped, 'clip')}, each listed in {OutputPaths(Path(summary.output_dir)).skipped}"
        yield from _by_code(summary.skipped)
    if summary.warnings:
        yield "warnings (these clips have rows)"
        yield from _by_code(summary.warnings)


def _by_code(counts: Mapping[str, int]) -> Iterator[str]:
    for code, number in by_code(counts).items():
        yield f"  {number:>8,}  {code}"


def _stages(summary: RunSummary) -> Iterator[str]:
    if summary.bottleneck is not None:
        yield f"limit    {summary.bottleneck.text}"
    if not summary.stages:
        return
    yield "busy seconds (decode: all threads of the worker; wait: its encoder without audio)"
    yield f"  {'rank':>4} {'decode':>9} {'encode':>9} {'rows':>9} {'write':>9} {'wait':>9}"
    for stage in sorted(summary.stages, key=lambda stage: stage.rank):
        seconds = (stage.decode, stage.encode, stage.rows, stage.write, stage.wait)
        yield f"  {stage.rank:>4} " + " ".join(f"{value:>9,.1f}" for value in seconds)


def _notes(summary: RunSummary) -> Iterator[str]:
    if summary.written <= NOTED_ROWS:
        return
    rows_per_block = summary.written / summary.num_chunks
    if rows_per_block < SMALL_BLOCK_ROWS:
        yield (
            f"note     blocks are small ({rows_per_block:.1f} rows on average), as short runs, slow encoders and low "
            "limits.max_chunk_rows or limits.max_chunk_bytes make them; a large dataset of such blocks opens slowly"
        )
    clips_per_batch = summary.written / summary.num_batches if summary.num_batches else SMALL_BATCH_CLIPS
    if clips_per_batch < SMALL_BATCH_CLIPS:
        yield (
            f"note     encode batches hold about one clip ({clips_per_batch:.1f} on average), which is slow on a GPU; "
            "limits.max_batch_samples (upstream: vae_max_tokens) and limits.max_batch_clips bound them"
        )


def _next(summary: RunSummary) -> Iterator[str]:
    if summary.remaining or not summary.written:
        return
    out = quote(summary.output_dir)
    yield "next"
    yield f"  prep inspect {out}"
    yield f"  prep verify {out}"
    yield f"  prep decode {out} --row 0 --wav row0.wav"
    yield f"  python -c {quote(f'import datasets; print(datasets.load_from_disk({json.dumps(summary.output_dir)}))')}"
