"""The steps of ``prep svs`` on a cluster: --plan-only, --part I/K and --finalize; what each prints at its end."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict

import click

from ..core.paths import Part
from ..preprocess.allocation import Allocation
from ..preprocess.cluster_run import finalize_parts, prepare
from ..preprocess.config import RunConfig
from ..preprocess.events import Event, EventSink, Finished, Interrupted, PartEnded, RunSummary
from ..preprocess.part_run import run_part
from ..preprocess.ranked_run import run_ranked
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
    _say_what_comes(lambda tell: run_part(config, part, tell), as_json)


def do_finalize(config: RunConfig, *, check: bool, as_json: bool, command: Sequence[str], go_on: str) -> None:
    """The metadata, or what is missing."""
    _say_what_comes(lambda tell: finalize_parts(config, tell, check=check, command=command, go_on=go_on), as_json)


def do_ranked(
    config: RunConfig,
    allocation: Allocation,
    *,
    overwrite: bool,
    rescan: bool,
    extend: bool,
    check: bool,
    as_json: bool,
    command: Sequence[str],
    go_on: str,
) -> None:
    """One task of those that a scheduler started together."""
    options = {"overwrite": overwrite, "rescan": rescan, "extend": extend, "check": check}
    _say_what_comes(lambda tell: run_ranked(config, allocation, tell, **options, command=command, go_on=go_on), as_json)


def _say_what_comes(do: Callable[[EventSink], RunSummary | PartEnded], as_json: bool) -> None:
    """Print what a step returns, or what it told of its end before it raised."""
    last: list[PartEnded | Interrupted | RunSummary] = []
    try:
        with progress() as draw:

            def on_event(event: Event) -> None:
                if isinstance(event, PartEnded | Interrupted):
                    last.append(event)
                elif isinstance(event, Finished):
                    last.append(event.summary)
                draw(event)

            ended = do(on_event)
            if ended not in last:
                last.append(ended)
    finally:
        with said_or_not():
            for event in last:
                click.echo(as_text(event) if as_json else _text(event))


def _text(event: PartEnded | Interrupted | RunSummary) -> str:
    match event:
        case PartEnded():
            return part_text(event)
        case Interrupted():
            return account(event.planned, event.written, event.skipped, event.remaining)
        case RunSummary():
            return summary_text(event)


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
