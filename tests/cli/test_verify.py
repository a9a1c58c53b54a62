import json
from pathlib import Path

import pytest

from latentprep.cli.main import run_command
from latentprep.cli.verify import MAX_SHOWN, report_text
from latentprep.core.errors import ExitCode
from latentprep.core.paths import OutputPaths
from latentprep.writers.verify_report import DamageCode, DamagedShard, Problem, VerifyReport
from tests.writers.damages import FOLDER_DAMAGES, SHARD, SHARD_DAMAGES
from tests.writers.datasets import finished_dataset


@pytest.fixture
def paths(tmp_path: Path) -> OutputPaths:
    return finished_dataset(tmp_path)


def test_a_good_dataset_is_exit_code_0(paths: OutputPaths, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.OK == run_command(["verify", str(paths.root)])

    lines = capsys.readouterr().out.splitlines()
    assert f"{paths.root}: finished dataset" == lines[0]
    assert lines[1].startswith("3 shards, 6 blocks, 18 rows, ")
    assert "plan     a1b2c3d4" == lines[2]
    assert "checked  each block against the journal's checksums" == lines[3]
    assert lines[4].startswith("digest   ")
    assert "no damage found" == lines[5]


def test_damage_is_exit_code_3_and_named_with_its_place(paths: OutputPaths, capsys: pytest.CaptureFixture[str]):
    """Schedulers read the code; the person who is called reads the place."""
    SHARD_DAMAGES["a label"](paths)

    assert ExitCode.DAMAGED == run_command(["verify", str(paths.root)])
    shown = capsys.readouterr().out
    assert f"  {SHARD} block 1 byte " in shown
    assert f"  {SHARD} block 1 row 0 byte " in shown
    assert ": row_label: labels hold 1 where the last patch's 1 says otherwise\n" in shown
    assert f"encode   1 chunk again, in {SHARD}\n" in shown


def test_quick_says_what_it_has_not_looked_at(paths: OutputPaths, capsys: pytest.CaptureFixture[str]):
    """Nobody should take it for a full check: a flipped bit passes."""
    SHARD_DAMAGES["a label"](paths)

    assert ExitCode.OK == run_command(["verify", str(paths.root), "--quick"])
    assert "checked  sizes and headers only\n" in capsys.readouterr().out


def test_the_report_for_programs(paths: OutputPaths, capsys: pytest.CaptureFixture[str]):
    """The keys are a contract."""
    SHARD_DAMAGES["a label"](paths)

    assert ExitCode.DAMAGED == run_command(["verify", str(paths.root), "--json"])
    report = json.loads(capsys.readouterr().out)
    counted = {"num_shards", "num_blocks", "num_rows", "num_bytes", "counts", "digests"}
    judged = {"problems", "damaged", "damaged_chunks"}
    assert {"folder", "quick", "finished", "checksums", "plans"} | counted | judged == report.keys()
    problem = {"code", "message", "shard", "block", "row", "byte_offset", "num_rows"}
    assert problem == report["problems"][0].keys()
    assert [{"name": SHARD, "chunks": [3], "content_of": ""}] == report["damaged"]
    assert 32 == len(report["digests"]["full"])


def test_exchanged_names_are_put_right_by_renaming(paths: OutputPaths, capsys: pytest.CaptureFixture[str]):
    FOLDER_DAMAGES["two shards' names exchanged"](paths)
    run_command(["verify", str(paths.root)])

    expected = "rename   data-r0-00001.arrow to data-r0-00002.arrow, data-r0-00002.arrow to data-r0-00001.arrow\n"
    assert expected in capsys.readouterr().out


def test_a_folder_of_something_else_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert ExitCode.FAILED == run_command(["verify", str(tmp_path)])
    assert "is not an output folder of prep" in capsys.readouterr().err


def test_many_problems_are_cut_and_counted():
    """A disk that lost a gigabyte must not scroll the first cause out of sight."""
    problems = tuple(Problem(code=DamageCode.BLOCK_BYTES, message="m", shard="s", block=at) for at in range(1_500))
    report = VerifyReport(
        folder="out",
        quick=True,
        finished=False,
        checksums="journal",
        plans=("a1b2c3d4",),
        problems=problems,
        num_shards=1,
        num_blocks=1_500,
        num_rows=0,
        num_bytes=0,
        digests=None,
        damaged=(DamagedShard(name="s", chunks=tuple(range(1_500))),),
    )
    lines = report_text(report).splitlines()

    assert MAX_SHOWN == sum(line.endswith("block_bytes: m") for line in lines)
    assert "  ... and 1,480 more (--json has all of them)" in lines
    assert "     1,500  block_bytes" in lines
    assert "encode   1,500 chunks again, in s" == lines[-1]
