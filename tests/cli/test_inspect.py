import json
from pathlib import Path

import pytest

from latentprep.cli.main import run_command
from latentprep.core.errors import ExitCode
from tests.loaders.builders import row, small_dataset, write_dataset


def test_facts_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.OK == run_command(["inspect", str(small_dataset(tmp_path))])

    lines = capsys.readouterr().out.splitlines()
    assert f"{tmp_path}: 6 rows, 10.5 s of audio" == lines[0]
    assert lines[1].startswith("2 shards, 3 blocks of 2.0 rows on average, ")
    assert ["corpora", "  choir: 4 rows, 5.0 s", "  opera: 2 rows, 5.5 s", "skipped: 0 clips"] == lines[2:6]
    assert "  has_score            bool" == lines[-1]


def test_facts_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The keys are a contract."""
    run_command(["inspect", str(small_dataset(tmp_path)), "--json"])

    facts = json.loads(capsys.readouterr().out)
    expected = {"folder", "num_rows", "num_shards", "num_blocks", "num_bytes", "audio_seconds", "corpora", "skipped"}
    assert expected | {"schema"} == facts.keys()
    assert {"dataset_name": "choir", "num_rows": 4, "audio_seconds": 5.0} == facts["corpora"][0]


def test_one_row_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run_command(["inspect", str(small_dataset(tmp_path)), "--row", "2"])

    shown = capsys.readouterr().out
    assert shown.startswith("row 2 in data-r0-00000.arrow, block 1\n")
    assert '  item_name            "item-2"\n' in shown
    assert "  audio_mask           3 of 6 are 1\n" in shown
    assert "lists are cut here; --json prints them whole" == shown.splitlines()[-1]
    assert "  audio_feats          6 x 2 x 3 float16, patches: mean 3.0000, std 0.0000, min 3.0000, max 3.0000" in shown


def test_one_row_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run_command(["inspect", str(small_dataset(tmp_path)), "--row", "2", "--json"])

    row = json.loads(capsys.readouterr().out)
    assert (2, "item-2", ["a"]) == (row["row"], row["item_name"], row["word"])
    assert [6, 2, 3] == row["audio_feats"]["shape"]


def test_a_long_list_is_cut_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_dataset(tmp_path, [[[row(0, num_prompt=300)]]])
    run_command(["inspect", str(tmp_path), "--row", "0"])

    line = next(line for line in capsys.readouterr().out.splitlines() if "packed_text_tokens" in line)
    assert line.endswith(" ... (304 values)")


def test_a_folder_of_something_else_is_told_what_to_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The corpus' folder is taken for the dataset's easily."""
    assert ExitCode.FAILED == run_command(["inspect", str(tmp_path)])
    assert "  fix: name the output_dir of a `prep svs` run\n" in capsys.readouterr().err


def test_a_row_that_is_not_there_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.FAILED == run_command(["inspect", str(small_dataset(tmp_path)), "--row", "6"])
    assert f"prep: {tmp_path} has no row 6\n  why: it has 6 rows, numbered from 0\n" == capsys.readouterr().err
