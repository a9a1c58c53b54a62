"""``prep inspect``: counts and schema of a finished dataset, or one row of it."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from ..loaders.dataset_facts import DatasetFacts, dataset_facts
from ..loaders.dataset_files import DatasetFiles
from ..loaders.row_view import RowView
from .quantities import count, duration, size

MAX_VALUE_CHARS = 100
"""A list of 500 token ids says less than its beginning and its length."""

FLAG_COLUMNS = {"text_mask", "audio_mask", "loss_mask", "labels"}
"""Lists of 0 and 1, in runs: how many are 1 says all."""


@click.command()
@click.argument("out", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--row", type=click.IntRange(min=0), metavar="N", help="Show row N (as load_from_disk numbers them).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def inspect(out: Path, row: int | None, as_json: bool) -> None:
    """Show what a finished dataset holds.

    OUT is an output folder of `prep svs`.
    """
    files = DatasetFiles.open(out)
    if row is None:
        facts = dataset_facts(files)
        click.echo(json.dumps(asdict(facts), ensure_ascii=False, indent=2) if as_json else facts_text(facts))
    else:
        view = files.row(row)
        click.echo(json.dumps(row_json(view), ensure_ascii=False, indent=2) if as_json else row_text(view))


def facts_text(facts: DatasetFacts) -> str:
    """The counts for people."""
    return "\n".join(_facts_lines(facts))


def _facts_lines(facts: DatasetFacts) -> Iterator[str]:
    rows_per_block = facts.num_rows / max(1, facts.num_blocks)
    yield f"{facts.folder}: {count(facts.num_rows, 'row')}, {duration(facts.audio_seconds)} of audio"
    yield (
        f"{count(facts.num_shards, 'shard')}, {count(facts.num_blocks, 'block')} of {rows_per_block:.1f} rows "
        f"on average, {size(facts.num_bytes)}"
    )
    yield "corpora"
    for corpus in facts.corpora:
        yield f"  {corpus.dataset_name}: {count(corpus.num_rows, 'row')}, {duration(corpus.audio_seconds)}"
    yield f"skipped: {count(sum(facts.skipped.values()), 'clip')}"
    for code, number in facts.skipped.items():
        yield f"  {number:>8,}  {code}"
    yield "columns"
    for column, arrow_type in facts.schema.items():
        yield f"  {column:<20} {arrow_type}"


def row_json(row: RowView) -> dict[str, object]:
    """The row for programs: every column but ``audio_feats``, which is summarised."""
    place = {"row": row.number, "shard": row.shard, "block": row.block}
    return {**place, "audio_feats": asdict(row.latent_summary()), **dict(row.values())}


def row_text(row: RowView) -> str:
    """The row for people, long lists cut."""
    latents = row.latent_summary()
    lines = [f"row {row.number} in {row.shard}, block {row.block}"]
    lines += [f"  {column:<20} {_shown(column, value)}" for column, value in row.values()]
    lines.append(
        f"  {'audio_feats':<20} {' x '.join(map(str, latents.shape))} float16, patches: mean {latents.mean:.4f}, "
        f"std {latents.std:.4f}, min {latents.min:.4f}, max {latents.max:.4f}"
    )
    lines.append("lists are cut here; --json prints them whole")
    return "\n".join(lines)


def _shown(column: str, value: object) -> str:
    if column in FLAG_COLUMNS and isinstance(value, list):
        return f"{sum(value)} of {len(value)} are 1"
    return _shortened(value)


def _shortened(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_VALUE_CHARS:
        return text
    length = f" ({len(value)} values)" if isinstance(value, list) else f" ({len(text)} characters)"
    return text[:MAX_VALUE_CHARS] + " ..." + length
