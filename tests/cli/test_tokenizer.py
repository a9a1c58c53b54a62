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
    assert f"{tmp_path}/new/folder: tokenizer {saved.hash}\n" == capsys.readouterr().out


def test_a_folder_without_a_tokenizer_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.FAILED == run_command(["tokenizer", str(tmp_path), str(tmp_path / "out")])
    assert "tokenizer.json does not exist" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
