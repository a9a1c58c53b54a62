"""``prep demo`` writes the demo, says what to do next, and touches no folder that isn't its own."""

from pathlib import Path

import pytest

from latentprep.cli.main import run_command
from latentprep.core.errors import ExitCode


def test_the_demo_is_written_and_the_next_command_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The printed command is what a newcomer pastes."""
    monkeypatch.chdir(tmp_path)

    assert ExitCode.OK == run_command(["demo", "demo"])
    lines = capsys.readouterr().out.splitlines()
    assert "demo: 16 clips, 91 s of synthesized singing in three corpora" == lines[0]
    assert "  album: harbor/0003 (unknown_note)" in lines
    assert "next: prep svs --config demo/prep.yaml --device cpu --workers 2" == lines[-1]
    assert Path("demo/prep.yaml").exists()


def test_a_path_with_a_space_is_quoted_in_the_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Pasted unquoted it would name two files."""
    folder = tmp_path / "my demo"

    assert ExitCode.OK == run_command(["demo", str(folder)])
    assert f"--config '{folder}/prep.yaml'" in capsys.readouterr().out


def test_a_foreign_folder_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Exit code 2, and the three parts of the message."""
    (tmp_path / "thesis.tex").write_text("x")

    assert ExitCode.USAGE == run_command(["demo", str(tmp_path)])
    assert "is not empty" in capsys.readouterr().err
    assert ["thesis.tex"] == [path.name for path in tmp_path.iterdir()]
