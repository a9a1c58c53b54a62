"""Indexes of real shards: ours, those of ``datasets``, broken ones."""

import json
import os
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest

from latentprep.core.errors import OutputError
from latentprep.core.index import NO_CHUNK, Index, open_index
from latentprep.core.schema import row_schema
from latentprep.writers import small_columns
from latentprep.writers.block import hash_bytes
from latentprep.writers.index_folder import index_folder
from latentprep.writers.ipc_message import walk_headers
from latentprep.writers.small_columns import read_columns

from .builders import SPEC, rows
from .datasets import finished_dataset


def table_of(folder: Path) -> pa.Table:
    """All rows, as ``datasets`` orders them."""
    loaded = datasets.load_from_disk(str(folder))
    assert isinstance(loaded, datasets.Dataset)
    return loaded.data.table.combine_chunks()


def assert_says_what_the_rows_are(index: Index, table: pa.Table) -> None:
    masks = table.column("audio_mask").to_pylist()
    assert table.column("total_length").to_pylist() == index.tokens.tolist()
    assert [sum(mask) for mask in masks] == index.patches.tolist()
    assert np.float32(table.column("audio_duration").to_numpy()).tolist() == index.seconds.tolist()
    for column, name in (("item", "item_name"), ("song", "song_name"), ("corpus", "dataset_name")):
        assert table.column(name).to_pylist() == index.column(column).cast(pa.string()).to_pylist()
    assert table.column("has_score").to_pylist() == index.column("has_score").to_pylist()


def assert_blocks_lie_there(index: Index, folder: Path) -> None:
    for block in range(index.num_blocks):
        name = index.header.shards[int(index.block_shards[block])].name
        start, length = int(index.offsets[block]), int(index.lengths[block])
        data = (folder / name).read_bytes()[start : start + length]
        assert hash_bytes(data) == index.checksum(block)
        batch = pa.ipc.read_record_batch(pa.ipc.read_message(data), index.header.schema)
        first, last = index.block_starts[block : block + 2].tolist()
        assert index.tokens[first:last].tolist() == batch.column("total_length").to_pylist()


def test_the_index_of_a_run_says_what_its_rows_are(tmp_path: Path):
    """Also read again, row by row: what the index says is what ``load_from_disk`` gives."""
    paths = finished_dataset(tmp_path / "out")
    index = open_index(paths.index)

    assert (6, 18) == (index.num_blocks, index.num_rows)
    assert list(range(6)) == index.chunks.tolist()
    assert (SPEC.patch_size, SPEC.latent_dim) == (index.header.patch_size, index.header.latent_dim)
    assert json.loads(paths.state.read_text())["_fingerprint"] == index.header.fingerprint
    assert_says_what_the_rows_are(index, table_of(paths.root))
    assert_blocks_lie_there(index, paths.root)


@pytest.mark.parametrize("gone", [(), (".prep",), (".prep", "provenance.json")], ids=len)
def test_an_index_built_again_is_the_one_that_was_written(gone: tuple[str, ...], tmp_path: Path):
    """Whatever is left to help: journal, geometry, or nothing but the shards."""
    paths = finished_dataset(tmp_path / "out")
    written = paths.index.read_bytes()
    paths.index.unlink()
    for name in gone:
        os.rename(paths.root / name, tmp_path / name)
    index_folder(paths.root)

    assert written == paths.index.read_bytes()


def test_no_latent_is_read_for_the_index_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A terabyte of latents would take an hour."""

    def refuse(*_: object) -> None:
        raise AssertionError("a whole block was read")

    monkeypatch.setattr("latentprep.writers.index_scan.read_batch", refuse)
    monkeypatch.setattr("latentprep.writers.small_columns.read_batch", refuse)
    monkeypatch.setattr("latentprep.writers.index_scan.hash_bytes", refuse)

    finished_dataset(tmp_path / "out")


def test_the_index_changes_nothing_for_datasets(tmp_path: Path):
    paths = finished_dataset(tmp_path / "out")
    with_index = table_of(paths.root)
    paths.index.unlink()

    assert with_index.equals(table_of(paths.root))


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """What ``save_to_disk`` makes of rows of two corpora, mixed, in two shards of two batches."""
    table = pa.Table.from_batches([rows(5, 1), rows(6, 2), rows(5, 3)])
    corpora = pa.array([f"corpus {row % 2}" for row in range(len(table))])
    at = table.schema.get_field_index("dataset_name")
    table = table.set_column(at, "dataset_name", corpora).cast(row_schema())
    datasets.Dataset(table).save_to_disk(str(tmp_path / "saved"), num_shards=2)
    return tmp_path / "saved"


def test_what_datasets_saved_is_indexed(foreign: Path):
    index_folder(foreign)
    index = open_index(foreign / "index.arrow")

    assert 16 == index.num_rows
    assert {NO_CHUNK} == set(index.chunks.tolist())
    assert ["corpus 0", "corpus 1"] == index.values("corpus").to_pylist()
    assert_says_what_the_rows_are(index, table_of(foreign))
    assert_blocks_lie_there(index, foreign)


def test_a_folder_without_state_is_taken_by_name(foreign: Path):
    """Shards that were copied somewhere."""
    (foreign / "state.json").unlink()
    index_folder(foreign, checksums=False)
    index = open_index(foreign / "index.arrow")

    assert (16, "", "") == (index.num_rows, index.header.fingerprint, index.checksum(0))


def test_a_compressed_shard_is_indexed(tmp_path: Path):
    """Nobody should, but it is read whole then, and right."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, row_schema(), options=options) as w,
    ):
        w.write_batch(rows(40, 1))
    index_folder(tmp_path)

    assert rows(40, 1).column("total_length").to_pylist() == open_index(tmp_path / "index.arrow").tokens.tolist()


def write_stream(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def test_shards_of_two_kinds_are_refused(tmp_path: Path):
    write_stream(tmp_path / "a.arrow", pa.Table.from_batches([rows(2, 1)]))
    write_stream(tmp_path / "b.arrow", pa.Table.from_batches([rows(2, 2)]).drop_columns(["word_dur"]))

    with pytest.raises(OutputError, match=r"b\.arrow has other columns than a\.arrow"):
        index_folder(tmp_path)


def test_shards_without_a_needed_column_are_refused(tmp_path: Path):
    write_stream(tmp_path / "a.arrow", pa.Table.from_batches([rows(2, 1)]).drop_columns(["song_name"]))

    with pytest.raises(OutputError, match="no column song_name"):
        index_folder(tmp_path)


@pytest.mark.parametrize("cut", [1, 8, 9, 500], ids=str)
def test_a_cut_shard_is_refused(cut: int, tmp_path: Path):
    """A stream without its end opens as if it were whole; the message names the byte."""
    path = tmp_path / "a.arrow"
    write_stream(path, pa.Table.from_batches([rows(2, 1), rows(2, 2)]))
    os.truncate(path, path.stat().st_size - cut)

    with pytest.raises(OutputError, match=r"a\.arrow, byte [\d,]+: "):
        index_folder(tmp_path)


def test_an_unreadable_state_and_a_missing_shard_are_refused(foreign: Path):
    state = (foreign / "state.json").read_text()
    (foreign / "state.json").write_text("[")
    with pytest.raises(OutputError, match=r"state\.json of .* can't be read"):
        index_folder(foreign)

    (foreign / "state.json").write_text(state)
    next(foreign.glob("data-*.arrow")).unlink()
    with pytest.raises(OutputError, match=r"which state\.json lists"):
        index_folder(foreign)


def test_rows_through_a_file_of_indices_are_refused(foreign: Path):
    state = json.loads((foreign / "state.json").read_text())
    (foreign / "state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": "indices.arrow"}]}))

    with pytest.raises(OutputError, match="through a file of indices"):
        index_folder(foreign)


def test_an_empty_folder_is_refused(tmp_path: Path):
    with pytest.raises(OutputError, match="holds no shards"):
        index_folder(tmp_path)


@pytest.mark.parametrize("gap", [0, 1 << 16], ids=["every buffer alone", "merged"])
def test_columns_are_read_as_arrow_reads_them(gap: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every column of a row, of many rows, of one, and of none."""
    monkeypatch.setattr(small_columns, "_GAP", gap)
    batches = [rows(7, 1), rows(1, 2), rows(0, 3)]
    write_stream(tmp_path / "a.arrow", pa.Table.from_batches(batches))
    data = (tmp_path / "a.arrow").read_bytes()
    read = lambda offset, length: data[offset : offset + length]  # noqa: E731
    headers = [header for header in walk_headers(read, len(data)) if header.kind == 3]

    for header, batch in zip(headers, batches, strict=False):
        found = read_columns(read, header, row_schema(), row_schema().names)
        assert {name: batch.column(name) for name in row_schema().names} == found
