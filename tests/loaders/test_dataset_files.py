import json
from pathlib import Path

import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.loaders.dataset_files import DatasetFiles

from .builders import small_dataset, write_dataset


def test_rows_are_numbered_over_shards_and_blocks(tmp_path: Path):
    """Row N must be load_from_disk's row N, or people listen to another clip than they look at."""
    files = DatasetFiles.open(small_dataset(tmp_path))

    found = [(view.shard, view.block, view.value("item_name")) for view in map(files.row, range(6))]
    assert [
        ("data-r0-00000.arrow", 0, "item-0"),
        ("data-r0-00000.arrow", 0, "item-1"),
        ("data-r0-00000.arrow", 1, "item-2"),
        ("data-r0-00001.arrow", 0, "item-3"),
        ("data-r0-00001.arrow", 0, "item-4"),
        ("data-r0-00001.arrow", 0, "item-5"),
    ] == found


def test_load_from_disk_numbers_them_the_same_way(tmp_path: Path):
    datasets = pytest.importorskip("datasets")
    folder = small_dataset(tmp_path)
    shards = [str(shard) for shard in DatasetFiles.open(folder).shards]
    dataset = datasets.concatenate_datasets([datasets.Dataset.from_file(shard) for shard in shards])

    assert dataset["item_name"][:] == [DatasetFiles.open(folder).row(n).value("item_name") for n in range(6)]


@pytest.mark.parametrize("number", [6, 1_000])
def test_a_row_that_is_not_there_is_named(tmp_path: Path, number: int):
    with pytest.raises(OutputError, match=f"has no row {number}\n.*it has 6 rows, numbered from 0"):
        DatasetFiles.open(small_dataset(tmp_path)).row(number)


def test_an_empty_dataset_has_no_blocks(tmp_path: Path):
    """A run in which every clip was refused is finished, too."""
    assert [] == list(DatasetFiles.open(write_dataset(tmp_path, [])).blocks())


def test_a_folder_of_something_else_is_refused(tmp_path: Path):
    with pytest.raises(OutputError, match="is not an output folder of prep"):
        DatasetFiles.open(tmp_path)


def test_an_unfinished_run_says_so(tmp_path: Path):
    OutputPaths(tmp_path).work.mkdir()

    with pytest.raises(OutputError, match="no finished dataset"):
        DatasetFiles.open(tmp_path)


def test_a_missing_shard_is_named(tmp_path: Path):
    """Reading on without it would be a silent loss of rows."""
    (small_dataset(tmp_path) / "data-r0-00001.arrow").unlink()

    with pytest.raises(OutputError, match=r"data-r0-00001\.arrow is missing"):
        DatasetFiles.open(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"_data_files": 3}'])
def test_a_broken_state_is_an_error_with_its_name(tmp_path: Path, content: str):
    (tmp_path / "state.json").write_text(content, encoding="utf-8")

    with pytest.raises(OutputError, match=r"state\.json cannot be read"):
        DatasetFiles.open(tmp_path)


def test_a_shard_that_is_no_stream_is_named(tmp_path: Path):
    (tmp_path / "data-r0-00000.arrow").write_bytes(b"x" * 100)
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-r0-00000.arrow"}]}))

    with pytest.raises(OutputError, match=r"data-r0-00000\.arrow is no Arrow stream"):
        list(DatasetFiles.open(tmp_path).blocks())
