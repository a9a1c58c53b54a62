from pathlib import Path

import pytest

from latentprep.cli.main import run_command
from latentprep.core.errors import ExitCode
from latentprep.preprocess.score.tokenizer import SvsTokenizer

GOLDEN_CHECKPOINT = Path(__file__).parents[1] / "golden" / "checkpoint"


@pytest.mark.parametrize("checkpoint", ["tiny", str(GOLDEN_CHECKPOINT)])
def test_the_saved_tokenizer_is_the_one_that_was_built(
    checkpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """A trainer that loads another tokenizer reads other words out of the same ids."""
    assert ExitCode.OK == run_command(["tokenizer", checkpoint, str(tmp_path / "new" / "folder")])

    saved = SvsTokenizer.load(tmp_path / "new" / "folder")
    expected = f"{tmp_path}/new/folder: tokenizer saved, {saved.num_tokens:,} tokens, hash {saved.hash}\n"
    assert expected == capsys.readouterr().out
    assert saved.num_tokens > 400, "128 pitches, 12 note values, 256 tempi and 4 marks are among them"


def test_a_folder_without_a_tokenizer_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.FAILED == run_command(["tokenizer", str(tmp_path), str(tmp_path / "out")])
    shown = capsys.readouterr().err
    assert "tokenizer.json does not exist" in shown
    assert "as CHECKPOINT" in shown, "there is no encoder.path on this command line"
    assert not (tmp_path / "out").exists()
