"""The steps of ``prep svs`` on a cluster: --plan-only, --part I/K and --finalize; what each prints at its end."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict

import click

from ..core.paths import Part
from ..preprocess.cluster_run import finalize_parts, prepare
from ..preprocess.config import RunConfig
from ..preprocess.events import Event, Interrupted, PartEnded, RunSummary
from ..preprocess.part_run import run_part
from .bill import bill_text
from .forgiving import said_or_not
from .progress import progress
from .quantities import count
from .summary import account, summary_text

GO_ON = "PREP_GO_ON"
"""Environment variable with the command that does what parts left undone; set by the scripts of `prep slurm`."""


def do_plan(config: RunConfig, *, overwrite: bool, rescan: bool, extend: bool, check: bool, as_json: bool) -> None:
    """Plan, put the folder in order, print the bill."""
    with progress() as draw:
        bill = prepare(config, draw, overwrite=overwrite, rescan=rescan, extend=extend, check=check)
    click.echo(as_text(bill) if as_json else bill_text(bill))


def do_part(config: RunConfig, part: Part, *, as_json: bool) -> None:
    """One part; its numbers are printed however it ends."""
    ended: list[PartEnded] = []
    try:
        with progress() as draw:

            def on_event(event: Event) -> None:
                if isinstance(event, PartEnded):
                    ended.append(event)
                draw(event)

            run_part(config, part, on_event)
    finally:
        with said_or_not():
            for event in ended:
                click.echo(as_text(event) if as_json else part_text(event))


def do_finalize(config: RunConfig, *, check: bool, as_json: bool, command: Sequence[str], go_on: str) -> None:
    """The metadata, or what is missing."""
    summaries: list[RunSummary] = []
    stopped: list[Interrupted] = []
    try:
        with progress() as draw:

            def on_event(event: Event) -> None:
                if isinstance(event, Interrupted):
                    stopped.append(event)
                draw(event)

            summaries.append(finalize_parts(config, on_event, check=check, command=command, go_on=go_on))
    finally:
        with said_or_not():
            for event in stopped:
                numbers = event.planned, event.written, event.skipped, event.remaining
                click.echo(as_text(event) if as_json else account(*numbers))
            for summary in summaries:
                click.echo(as_text(summary) if as_json else summary_text(summary))


def go_on_command(arguments: Sequence[str], given: str | None) -> str:
    """The command that does what is left: the one that a script named, or this one without --finalize."""
    return given or shlex.join(["prep", *(word for word in arguments if word != "--finalize")])


def part_text(event: PartEnded) -> str:
    """The numbers of a part."""
    numbers = account(event.planned, event.written, event.skipped, event.remaining)
    left = f"{event.num_left:,} of {count(event.num_chunks, 'chunk')} left" if event.num_left else "nothing left"
    return f"part {event.number} of {event.count}: {numbers}; {left}"


def as_text(value: object) -> str:
    """A frozen dataclass as JSON for programs."""
    return json.dumps(asdict(value), ensure_ascii=False, indent=2)  # type: ignore[call-overload]
