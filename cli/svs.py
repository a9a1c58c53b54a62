"""``prep svs``: the main job. Options become settings of the configuration, so that both obey the same rules."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from ..core.paths import Part
from ..preprocess.allocation import read_allocation
from ..preprocess.config import RunConfig
from ..preprocess.config_file import load_config, resolved_yaml
from ..preprocess.division import parse_part
from ..preprocess.events import Event, Finished, Interrupted, RunSummary
from ..preprocess.run import plan_only as make_plan_only
from ..preprocess.run import run
from .bill import bill_text
from .forgiving import said_or_not
from .parts import GO_ON, do_finalize, do_part, do_plan, do_ranked, go_on_command
from .progress import progress
from .summary import account, summary_text


class GpuCount(click.ParamType[int | str]):
    """A number of GPUs, or ``all``."""

    name = "N|all"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        text = str(value)
        if text == "all":
            return text
        if text.isdecimal() and int(text) > 0:
            return int(text)
        return self.fail(f"{text!r} is neither a number of GPUs from 1 on nor 'all'", param, ctx)


class PartOfPlan(click.ParamType[Part]):
    """``I/K``."""

    name = "I/K"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Part:
        return value if isinstance(value, Part) else parse_part(str(value))


@click.command()
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Configuration; prep.yaml by default. An upstream svs_preprocess.yaml works, too.",
)
@click.option("--gpus", type=GpuCount(), help="GPUs to use; all visible ones by default.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="The CPU is used only if asked for.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Workers on the CPU; its cores by default.")
@click.option("--out", metavar="DIR", help="Output folder, in place of the configuration's output_dir.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a setting: encoder.name=tiny.")
@click.option("--dry-run", is_flag=True, help="Plan, print the bill, and write nothing but the plan.")
@click.option("--overwrite", is_flag=True, help="Replace what an earlier run wrote to the output folder.")
@click.option("--rescan", is_flag=True, help="Read the corpora again, even if they look unchanged.")
@click.option(
    "--extend", is_flag=True, help="Take up clips that were added to, changed in or taken out of the corpora."
)
@click.option("--no-check", is_flag=True, help="Don't read a finished dataset for damage; look at sizes and headers.")
@click.option("--reuse", metavar="OLD_OUT", help="Take latents from an older dataset where audio and VAE are the same.")
@click.option("--max-skip-rate", type=click.FloatRange(0, 1), metavar="X", help="Exit with 4 if more is skipped.")
@click.option("--plan-only", is_flag=True, help="Make the plan and put the output folder in order, for --part.")
@click.option("--part", type=PartOfPlan(), help="Do part I of K of a plan that --plan-only made; on any node.")
@click.option("--finalize", "only_finalize", is_flag=True, help="After all parts: write the metadata.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary, or the bill, as JSON for programs.")
def svs(
    config_path: Path | None,
    gpus: int | str | None,
    device: str | None,
    workers: int | None,
    out: str | None,
    overrides: tuple[str, ...],
    dry_run: bool,
    overwrite: bool,
    rescan: bool,
    extend: bool,
    no_check: bool,
    reuse: str | None,
    max_skip_rate: float | None,
    plan_only: bool,
    part: Part | None,
    only_finalize: bool,
    as_json: bool,
) -> None:
    """Turn corpora into shards of latents, on every GPU.

    Stopped or killed, the same command goes on where it stopped, with another number of GPUs if you like. Given again
    on a finished dataset it reads all of it, and repairs what is damaged.
    """
    options = (
        *device_overrides(gpus, device, workers),
        *as_overrides(output_dir=out, reuse=reuse, max_skip_rate=max_skip_rate),
    )
    _refuse_contradictions(dry_run, plan_only, part, only_finalize, replans=overwrite or rescan or extend)
    loaded = load_config(config_path, (*overrides, *options))
    for note in loaded.notes:
        click.echo(f"prep: warning: {note}", err=True)
    config, check, command = loaded.config, not no_check, ("prep", *sys.argv[1:])
    go_on = go_on_command(sys.argv[1:], os.environ.get(GO_ON))
    if dry_run:
        _dry_run(config, rescan, extend, as_json)
    elif plan_only:
        do_plan(config, overwrite=overwrite, rescan=rescan, extend=extend, check=check, as_json=as_json)
    elif part is not None:
        do_part(config, part, as_json=as_json)
    elif only_finalize:
        do_finalize(config, check=check, as_json=as_json, command=command, go_on=go_on)
    elif (allocation := read_allocation()) is not None:
        do_ranked(
            config,
            allocation,
            overwrite=overwrite,
            rescan=rescan,
            extend=extend,
            check=check,
            as_json=as_json,
            command=command,
            go_on=go_on,
        )
    else:
        _run(config, overwrite, rescan, extend, check, as_json)


def _refuse_contradictions(
    dry_run: bool, plan_only: bool, part: Part | None, only_finalize: bool, *, replans: bool
) -> None:
    steps = {"--dry-run": dry_run, "--plan-only": plan_only, "--part": part is not None, "--finalize": only_finalize}
    given = [name for name, is_given in steps.items() if is_given]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} are different steps: give one of them")
    if replans and (part is not None or only_finalize):
        raise click.UsageError(
            f"--overwrite, --rescan and --extend are for the plan, so for --plan-only, not for {given[0]}"
        )


def as_overrides(**settings: object) -> tuple[str, ...]:
    """``key=value`` overrides of the settings that are not None; JSON is YAML with every string in quotes."""
    return tuple(
        f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items() if value is not None
    )


def device_overrides(gpus: int | str | None, device: str | None, workers: int | None) -> tuple[str, ...]:
    """The overrides of --gpus, --device and --workers; they win over a configuration for the other device.

    Raises click.UsageError for options that contradict each other.
    """
    if gpus is not None and device == "cpu":
        raise click.UsageError("--gpus and --device cpu contradict each other")
    if workers is not None and (gpus is not None or device == "cuda"):
        raise click.UsageError("--workers counts workers on the CPU; each GPU has one (add --device cpu, or drop it)")
    if gpus is not None:
        return as_overrides(device="cuda", gpus=gpus)
    forget_gpus = ("gpus=null",) if device == "cpu" else ()
    return as_overrides(device=device, workers=workers) + forget_gpus


def _dry_run(config: RunConfig, rescan: bool, extend: bool, as_json: bool) -> None:
    with progress() as on_event:
        bill = make_plan_only(config, on_event, rescan=rescan, extend=extend)
    if as_json:
        click.echo(_json(asdict(bill)))
    else:
        click.echo(f"{resolved_yaml(config)}\n{bill_text(bill)}")


def _run(config: RunConfig, overwrite: bool, rescan: bool, extend: bool, check: bool, as_json: bool) -> None:
    finished: list[RunSummary] = []
    stopped: list[Interrupted] = []
    try:
        with progress() as draw:

            def on_event(event: Event) -> None:
                if isinstance(event, Finished):
                    finished.append(event.summary)
                if isinstance(event, Interrupted):
                    stopped.append(event)
                draw(event)

            command = ("prep", *sys.argv[1:])
            run(config, on_event, overwrite=overwrite, rescan=rescan, extend=extend, check=check, command=command)
    finally:
        # A run that skipped too many clips is complete, too: its numbers come before its error.
        with said_or_not():
            for summary in finished:
                click.echo(_json(asdict(summary)) if as_json else summary_text(summary))
            for event in stopped:
                numbers = event.planned, event.written, event.skipped, event.remaining
                click.echo(_json(asdict(event)) if as_json else account(*numbers))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
