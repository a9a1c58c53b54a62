"""``prep``: the command group, and the one place where errors become exit codes.

Commands are named here with their one-line help and imported only when one is called, so that ``prep --help`` needs
neither numpy nor pyarrow (0.1 s instead of about 1 s). The price is that each one-line help stands twice; a test
compares this table with the commands' own docstrings.
"""

import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import FrameType

import click

from latentprep import __version__

from ..core.errors import ExitCode, PrepError
from .forgiving import forgive_output


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command lives: ``module`` beside this file holds a click command named like its key."""

    module: str
    help: str


COMMANDS = {
    "svs": LazyCommand("svs", "Turn corpora into shards of latents, on every GPU."),
    "demo": LazyCommand("demo", "Write a small synthetic corpus and its prep.yaml into FOLDER."),
    "inspect": LazyCommand("inspect", "Show what a finished dataset holds."),
    "verify": LazyCommand("verify", "Check that a dataset is what was written, byte by byte and row by row."),
    "decode": LazyCommand("decode", "Turn one row's latents back into a WAV file."),
    "tokenizer": LazyCommand("tokenizer", "Save CHECKPOINT's tokenizer with the singing tokens added."),
}

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
"""What schedulers send, beside Ctrl-C. A run obeys them in its own way while its workers live; before and after that
they interrupt, so that the exit code is 75 at any time."""


VERBOSE_HELP = "Log what the parts of a run do, to stderr."


def _log_more(ctx: click.Context, param: click.Parameter, verbose: bool) -> None:
    if verbose:
        logging.getLogger().setLevel(logging.INFO)


def _with_verbose(command: click.Command) -> click.Command:
    """``command`` with -v, too: people write options behind the command."""
    if all(param.name != "verbose" for param in command.params):
        option = click.Option(
            ["-v", "--verbose"], is_flag=True, expose_value=False, callback=_log_more, help=VERBOSE_HELP
        )
        command.params.append(option)
    return command


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name].module}", __package__)
        return _with_verbose(getattr(module, cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="prep")
@click.option("-v", "--verbose", is_flag=True, help=VERBOSE_HELP)
def prep(verbose: bool) -> None:
    """Annotated singing corpora in, training-ready Arrow shards of audio-VAE latents out."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )


def run_command(arguments: Sequence[str]) -> int:
    """Run ``prep`` with ``arguments`` and return its exit code (docs/cli.md has the table)."""
    try:
        # 0 is what click hands back for --help and --version; commands themselves return nothing.
        return prep.main(args=list(arguments), prog_name="prep", standalone_mode=False) or ExitCode.OK
    except PrepError as error:
        click.echo(f"prep: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("prep: interrupted; the same command goes on where this one stopped", err=True)
        return ExitCode.STOPPED


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Console script."""
    forgive_output()
    for number in STOP_SIGNALS:
        signal.signal(number, _interrupt)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a closed terminal: the run goes on, in silence
    try:
        code = run_command(sys.argv[1:])
        for number in STOP_SIGNALS:  # what is left is to exit, with this code
            signal.signal(number, signal.SIG_IGN)
        sys.exit(code)
    except BrokenPipeError:
        # The reader of our output left (`prep inspect OUT | head`). Without this, flushing at exit raises once more.
        sys.stdout = sys.stderr = None
        sys.exit(ExitCode.FAILED)


if __name__ == "__main__":
    main()
