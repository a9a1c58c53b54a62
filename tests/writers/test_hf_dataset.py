import json
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.core.schema import COLUMNS, features, row_schema
from latentprep.writers.hf_dataset import write_hf_metadata
from latentprep.writers.ledger import read_journals
from tests.writers.builders import FINGERPRINT, finished_run, metadata, rows, writer

GOLDEN = Path(__file__).parents[1] / "golden" / "expected.parquet"


@pytest.fixture
def paths(tmp_path: Path) -> OutputPaths:
    return OutputPaths(tmp_path)


def declare(paths: OutputPaths, **options: str) -> None:
    journal = read_journals(paths, FINGERPRINT)
    write_hf_metadata(paths, journal.shards, FINGERPRINT, journal.digests, **options)


def state(paths: OutputPaths) -> dict:
    return json.loads(paths.state.read_text())


def test_load_from_disk_gives_the_rows_in_the_order_of_rank_and_number(paths: OutputPaths):
    finished_run(paths, [5], rank=10, run_id="a")
    finished_run(paths, [3, 4], rank=2, run_id="b")
    declare(paths)
    loaded = datasets.load_from_disk(str(paths.root))
    expected = pa.Table.from_batches([rows(2, chunk) for chunk in (3, 4, 5)])

    assert expected.equals(loaded.data.table.cast(row_schema()))
    assert list(COLUMNS) == loaded.column_names


def test_the_loaded_features_are_the_declared_ones(paths: OutputPaths):
    """And the schema inside the shards says the same: ``datasets`` takes whichever it meets first."""
    finished_run(paths, [0])
    declare(paths, description="what it is")
    loaded = datasets.load_from_disk(str(paths.root))

    assert isinstance(loaded, datasets.Dataset)
    assert datasets.Features.from_dict(features()) == loaded.features
    assert loaded.features == datasets.Features.from_arrow_schema(row_schema())
    assert "what it is" == loaded.info.description


def test_the_golden_rows_come_back_through_datasets(paths: OutputPaths):
    golden = pq.read_table(GOLDEN).cast(row_schema()).combine_chunks()
    with writer(paths) as shards:
        shards.write(golden.to_batches()[0], metadata(0))
    declare(paths)

    assert golden.to_pylist() == datasets.load_from_disk(str(paths.root)).to_list()


def test_files_that_are_not_journaled_are_not_rows(paths: OutputPaths):
    finished_run(paths, [0])
    declare(paths)
    paths.shard(0, 9).write_bytes(paths.shard(0, 0).read_bytes())

    assert 2 == len(datasets.load_from_disk(str(paths.root)))


def test_the_spelling_is_the_one_that_datasets_3_reads(paths: OutputPaths):
    """``List`` came with 4.0; the trainers pin 3.6."""
    finished_run(paths, [0])
    declare(paths)
    told = paths.dataset_info.read_text()

    assert '"_type": "Sequence"' in told
    assert "List" not in told


def test_the_fingerprint_follows_the_content_and_the_order(paths: OutputPaths, tmp_path: Path):
    """``datasets`` keeps cached results under it; null would make it pickle the whole table to find one."""
    prints = []
    for name, chunks in [("a", [0, 1]), ("b", [0, 1]), ("c", [1, 0]), ("d", [0, 2])]:
        other = OutputPaths(tmp_path / name)
        finished_run(other, chunks)
        declare(other)
        prints.append(state(other)["_fingerprint"])

    assert prints[0] == prints[1]
    assert 3 == len(set(prints))
    assert {16} == {len(value) for value in prints}


def test_the_state_holds_what_save_to_disk_writes(paths: OutputPaths, tmp_path: Path):
    finished_run(paths, [0])
    declare(paths)
    datasets.Dataset.from_dict({"a": [1]}).save_to_disk(str(tmp_path / "reference"))
    reference = json.loads((tmp_path / "reference" / "state.json").read_text())

    assert reference.keys() == state(paths).keys()
    assert [None, {}, None, False, None] == [state(paths)[key] for key in list(reference)[2:]]


def test_no_rows_are_no_dataset(paths: OutputPaths):
    """``load_from_disk`` fails on an empty list of files with an error that says nothing."""
    with writer(paths) as shards:
        shards.write(None, metadata(0))

    with pytest.raises(OutputError, match="no rows"):
        declare(paths)
    assert not paths.state.exists()


def test_a_shard_that_shows_a_chunk_twice_is_refused(paths: OutputPaths):
    finished_run(paths, [0], rank=0)
    finished_run(paths, [0, 1], rank=1)

    with pytest.raises(OutputError, match=r"data-r1-00000.arrow holds 1 blocks that don't count"):
        declare(paths)
