import json
from pathlib import Path

import click
import pytest

from latentprep.cli.main import run_command
from latentprep.cli.svs import as_overrides, device_overrides
from latentprep.core.errors import ExitCode
from latentprep.preprocess.synth.demo_corpus import write_demo_corpus


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration over the demo corpus that writes to tmp_path/demo_out."""
    return write_demo_corpus(tmp_path / "demo").config_path


def svs(config: Path, *arguments: str) -> int:
    return run_command(["svs", "--config", str(config), "--set", "encoder.name=dummy", *arguments])


def test_options_are_settings_in_quotes_where_yaml_needs_them():
    """An output folder called `no: 1` must stay a folder."""
    assert ('output_dir="no: 1"', "max_skip_rate=0.5") == as_overrides(
        output_dir="no: 1", workers=None, max_skip_rate=0.5
    )


@pytest.mark.parametrize(
    ("expected", "gpus", "device", "workers"),
    [
        ((), None, None, None),
        (('device="cuda"', "gpus=2"), 2, None, None),
        (('device="cuda"', 'gpus="all"'), "all", "cuda", None),
        (('device="cpu"', "workers=3", "gpus=null"), None, "cpu", 3),
        (('device="cuda"',), None, "cuda", None),
        (("workers=3",), None, None, 3),
    ],
)
def test_the_command_line_wins_over_a_configuration_for_another_device(
    expected: tuple[str, ...], gpus: int | str | None, device: str | None, workers: int | None
):
    """A file that says num_gpus: 8 must not stand in the way of --device cpu."""
    assert expected == device_overrides(gpus, device, workers)


@pytest.mark.parametrize(("gpus", "device", "workers"), [(1, "cpu", None), (1, None, 2), (None, "cuda", 2)])
def test_options_that_contradict_each_other_are_refused(gpus: int | None, device: str | None, workers: int | None):
    """Taking one of the two in silence would surprise half of those who wrote both."""
    with pytest.raises(click.UsageError):
        device_overrides(gpus, device, workers)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("contradict each other", ["--gpus", "1", "--device", "cpu"]),
        ("'0' is neither a number of GPUs from 1 on nor 'all'", ["--gpus", "0"]),
        ("Invalid value for '--device'", ["--device", "tpu"]),
        ("did you mean", ["--set", "encoder.nam=tiny"]),
    ],
)
def test_a_wrong_option_is_exit_code_2(
    text: str, arguments: list[str], config: Path, capsys: pytest.CaptureFixture[str]
):
    assert ExitCode.USAGE == svs(config, *arguments)
    assert text in capsys.readouterr().err


def test_a_missing_configuration_names_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """It is the first thing that a newcomer types."""
    monkeypatch.chdir(tmp_path)

    assert ExitCode.USAGE == run_command(["svs"])
    assert "prep.yaml: no such configuration file\n  fix: `prep demo demo`" in capsys.readouterr().err


def test_no_gpu_is_never_silently_the_cpu(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A run of days on the CPU by mistake costs more than an error."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    assert ExitCode.USAGE == svs(config)
    assert "--device cpu" in capsys.readouterr().err


def test_a_dry_run_prints_settings_and_bill_and_writes_no_rows(config: Path, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.OK == svs(config, "--device", "cpu", "--workers", "1", "--dry-run")

    shown = capsys.readouterr()
    assert "\n  name: dummy\n" in shown.out
    assert "\nclips    " in shown.out
    assert "prep: read choir: " in shown.err
    assert [] == list(config.parent.with_name("demo_out").glob("*.arrow"))


def test_the_bill_for_programs(config: Path, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.OK == svs(config, "--device", "cpu", "--workers", "1", "--dry-run", "--json")

    bill = json.loads(capsys.readouterr().out)
    assert 17 == bill["clips"], "16 good ones, and a silent one"
    assert {"not_audio": 1, "unknown_note": 1} == bill["refused"], "spelt as the run's skipped"


def test_the_whole_way_and_a_second_call_that_finds_all_done(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Options, run, summary, inspect: what a user types first, in one piece."""
    out = tmp_path / "elsewhere"
    arguments = ("--device", "cpu", "--workers", "1", "--out", str(out))
    assert ExitCode.OK == svs(config, *arguments)
    first = capsys.readouterr()
    assert "planned 19 = written 16 + skipped 3 + remaining 0" in first.out
    assert f"  prep inspect {out}\n" in first.out
    assert "x real time" in first.err.splitlines()[-1]
    assert 1 == first.err.count("x real time"), "a short run has one line of state, its last"

    assert ExitCode.OK == svs(config, *arguments, "--json")
    summary = json.loads(capsys.readouterr().out)
    assert (16, 0, 0.0) == (summary["written"], summary["remaining"], summary["encoded_seconds"])
    assert summary["digest"] in first.out

    assert ExitCode.OK == run_command(["inspect", str(out)])
    assert f"{out}: 16 rows" in capsys.readouterr().out


def test_too_many_skipped_clips_are_exit_code_4(config: Path, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.TOO_MANY_SKIPPED == svs(config, "--device", "cpu", "--workers", "1", "--max-skip-rate", "0.1")

    shown = capsys.readouterr()
    assert "planned 19 = written 16 + skipped 3 + remaining 0" in shown.out, "the dataset is complete all the same"
    assert "more than max_skip_rate 0.1 allows" in shown.err
