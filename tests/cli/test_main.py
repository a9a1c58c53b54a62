import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from latentprep import __version__
from latentprep.cli import main as main_module
from latentprep.cli.main import COMMANDS, prep, run_command
from latentprep.core.errors import ExitCode, PrepError, TooManySkipped


def test_help_imports_nothing_heavy():
    """Help that takes seconds is help that nobody asks for."""
    code = """if True:
        import sys
        from latentprep.cli.main import run_command
        assert 0 == run_command(["--help"])
        heavy = {"torch", "numpy", "pyarrow", "datasets", "transformers", "pydantic", "tqdm"} & sys.modules.keys()
        assert not heavy, heavy
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_listed_help_is_the_commands_own(name: str):
    """The table of short helps stands beside the commands; it must not tell another story."""
    command = prep.get_command(click.Context(prep), name)

    assert command is not None
    assert COMMANDS[name].help == (command.help or "").split("\n\n")[0].replace("\n", " ")


@pytest.mark.parametrize("name", COMMANDS)
def test_verbose_is_taken_behind_the_command_too(name: str, capsys: pytest.CaptureFixture[str]):
    """That is where people write it."""
    for _ in range(2):
        assert ExitCode.OK == run_command([name, "--help"])

        assert 1 == capsys.readouterr().out.count("-v, --verbose")


def test_version(capsys: pytest.CaptureFixture[str]):
    assert ExitCode.OK == run_command(["--version"])
    assert f"prep, version {__version__}\n" == capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["svss"], ["inspect"], ["inspect", ".", "--row", "-1"], ["--no-such-option"]])
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert ExitCode.USAGE == run_command(arguments)

    shown = capsys.readouterr()
    assert "" == shown.out
    assert "Error" in shown.err


def raising(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "exit_code", "text"),
    [
        (PrepError("what", why="because", fix="do this"), 1, "prep: what\n  why: because\n  fix: do this\n"),
        (TooManySkipped("too many"), 4, "prep: too many\n"),
        (KeyboardInterrupt(), 75, "prep: interrupted; the same command goes on where this one stopped\n"),
    ],
)
def test_an_error_becomes_its_exit_code_and_its_three_parts_on_stderr(
    error: BaseException,
    exit_code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Scripts and schedulers act on the code, people on the text; stdout stays clean for --json."""
    monkeypatch.setattr(main_module.LazyGroup, "get_command", lambda *_: raising(error))

    assert exit_code == run_command(["svs"])
    shown = capsys.readouterr()
    assert ("", text) == (shown.out, shown.err.lstrip("\n"))


def test_a_reader_that_leaves_early_causes_no_traceback():
    """`prep inspect OUT | head` must not end in a stack dump."""
    code = "from latentprep.cli.main import main; import sys; sys.argv = ['prep', '--help']; main()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()

    assert (ExitCode.FAILED, "") == (process.wait(), errors)


def handles(pid: int, number: signal.Signals) -> bool:
    """Whether a process has installed a handler of a signal (SigCgt of proc(5), one bit a signal)."""
    caught = Path(f"/proc/{pid}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_before_the_workers_start_is_exit_code_75(number: signal.Signals, tmp_path: Path):
    """Reading corpora takes minutes, and schedulers requeue a job that ends with 75, not one that died of a signal."""
    clips = json.dumps([{"wav_fn": f"{i}.wav", "text": "a" * 100} for i in range(200_000)])
    (tmp_path / "clips.json").write_text(clips)  # takes seconds to read
    corpus = f"{{name: a, type: json_file, json_path: {tmp_path}/clips.json, audio_root: {tmp_path}}}"
    (tmp_path / "prep.yaml").write_text(f"output_dir: {tmp_path}/out\nencoder: {{name: dummy}}\ndatasets: [{corpus}]\n")
    command = [sys.executable, "-m", "latentprep.cli.main", "svs", "--config", tmp_path / "prep.yaml"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not handles(run.pid, number):
        assert run.poll() is None
        time.sleep(0.01)

    run.send_signal(number)
    _, shown = run.communicate(timeout=60)

    assert ExitCode.STOPPED == run.returncode, shown
    assert "prep: interrupted; the same command goes on where this one stopped" == shown.strip()
