"""``prep verify``: is a dataset what was written? The checks are writers/verify.py's; here they are shown."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click
from tqdm import tqdm

from ..core.errors import ExitCode
from ..core.paths import OutputPaths
from ..writers.verify import OnProgress, find_damage
from ..writers.verify_report import Problem, VerifyReport
from .quantities import count, size

MAX_SHOWN = 20
"""Problems printed one by one: the first tell what happened, --json has them all."""

_CHECKSUMS = {
    "journal": "each block against the journal's checksums",
    "provenance": "each shard against provenance.json's checksums (.prep is gone)",
    "none": "without checksums, since neither journal nor provenance.json has any: a flipped bit may not show",
}


@click.command()
@click.argument("out", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--quick", is_flag=True, help="Sizes, headers and metadata only; finds no flipped bit.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Shards read at once; at most 8 by default.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON for programs.")
@click.pass_context
def verify(context: click.Context, out: Path, quick: bool, threads: int | None, as_json: bool) -> None:
    """Check that a dataset is what was written, byte by byte and row by row.

    OUT is an output folder of `prep svs`, finished or not. Exits with 3 if there is damage; docs/verify.md says what
    each code means and what to do.
    """
    with _progress() as on_progress:
        report = find_damage(OutputPaths(out), quick=quick, threads=threads, on_progress=on_progress)
    click.echo(json.dumps(report_json(report), ensure_ascii=False, indent=2) if as_json else report_text(report))
    if report.problems:
        context.exit(ExitCode.DAMAGED)


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """A bar in bytes on a terminal, nothing elsewhere."""
    with tqdm(unit="B", unit_scale=True, leave=False, dynamic_ncols=True, disable=not sys.stderr.isatty()) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield advance


def report_json(report: VerifyReport) -> dict[str, object]:
    """The report for programs; digests as hexadecimal text."""
    facts = asdict(report)
    digests = report.digests
    facts["digests"] = digests and {"full": digests.full_hex, "content": digests.content_hex}
    return {**facts, "counts": report.counts, "damaged_chunks": report.damaged_chunks}


def report_text(report: VerifyReport) -> str:
    """The report for people."""
    return "\n".join(_lines(report))


def _lines(report: VerifyReport) -> Iterator[str]:
    kind = "finished dataset" if report.finished else "unfinished run (what it has committed was checked)"
    yield f"{report.folder}: {kind}"
    yield (
        f"{count(report.num_shards, 'shard')}, {count(report.num_blocks, 'block')}, {count(report.num_rows, 'row')}, "
        f"{size(report.num_bytes)}"
    )
    if report.plans:
        extended = f" (extended {count(len(report.plans) - 1, 'time')})" if len(report.plans) > 1 else ""
        yield f"plan     {', '.join(report.plans)}{extended}"
    yield "checked  sizes and headers only" if report.quick else f"checked  {_CHECKSUMS[report.checksums]}"
    if report.digests is not None:
        yield f"digest   {report.digests.full_hex} ({count(report.digests.num_rows, 'row')}, all columns)"
    if not report.problems:
        yield "no damage found"
        return
    yield f"damage   {count(len(report.problems), 'problem')}"
    yield from (f"  {problem_line(problem)}" for problem in report.problems[:MAX_SHOWN])
    if len(report.problems) > MAX_SHOWN:
        yield f"  ... and {len(report.problems) - MAX_SHOWN:,} more (--json has all of them)"
        yield from (f"  {number:>8,}  {code}" for code, number in report.counts.items())
    yield from _cure(report)


def problem_line(problem: Problem) -> str:
    """Place, code and message of one problem."""
    places = (("block", problem.block), ("row", problem.row), ("byte", problem.byte_offset))
    where = " ".join([problem.shard, *(f"{name} {number:,}" for name, number in places if number is not None)])
    return f"{where}: {problem.code}: {problem.message}"


def _cure(report: VerifyReport) -> Iterator[str]:
    misnamed = [shard for shard in report.damaged if shard.content_of]
    if misnamed:
        yield "rename   " + ", ".join(f"{shard.name} to {shard.content_of}" for shard in misnamed)
    if report.damaged_chunks:
        names = [shard.name for shard in report.damaged if shard.chunks]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        yield f"encode   {count(len(report.damaged_chunks), 'chunk')} again, in {shown}"
