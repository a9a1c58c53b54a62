"""The index file: what it says comes back, and what is no whole index is refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from latentprep.core.errors import OutputError
from latentprep.core.index import INDEX_COLUMNS, NO_CHUNK, IndexedShard, open_index
from latentprep.core.schema import row_schema
from latentprep.writers import index_file
from latentprep.writers.index_file import PLAIN_ROW_FACTS, BlockLine, IndexBuilder, IndexedRows

SHARDS = (IndexedShard("data-r0-00000.arrow", 900), IndexedShard("data-r0-00001.arrow", 500))
ROWS = IndexedRows(schema=row_schema(), patch_size=4, latent_dim=64)


def facts(first: int, count: int, corpus: str = "choir") -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.RecordBatch.from_pydict(
        {
            "tokens": [10 + number for number in numbers],
            "frames": [4 * (1 + number) for number in numbers],
            "seconds": [0.5 * number for number in numbers],
            "has_score": [number % 2 == 0 for number in numbers],
            "corpus": [corpus] * count,
            "song": [f"歌 {number // 2}" for number in numbers],
            "item": [f"item-{number}" for number in numbers],
        },
        schema=PLAIN_ROW_FACTS,
    )


def line(number: int, rows: pa.RecordBatch) -> BlockLine:
    shard = SHARDS[number // 2].name
    return BlockLine(shard=shard, offset=100 * number, length=80, checksum=f"{number:032x}", chunk=NO_CHUNK, rows=rows)


def write(path: Path) -> Path:
    """Blocks of 2, 3 and 1 rows; the last one of another corpus with songs of the same names."""
    builder = IndexBuilder()
    for number, rows in enumerate((facts(0, 2), facts(2, 3), facts(4, 1, "opera"))):
        builder.add(line(number, rows))
    builder.write(path, SHARDS, "f1", ROWS)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "index.arrow")


def test_what_was_written_comes_back(path: Path):
    """An index that loses a row loses it in training."""
    index = open_index(path)

    assert (3, 6) == (index.num_blocks, index.num_rows)
    assert [0, 2, 5, 6] == index.block_starts.tolist()
    assert [0, 0, 1] == index.block_shards.tolist()
    assert [0, 100, 200] == index.offsets.tolist()
    assert [80, 80, 80] == index.lengths.tolist()
    assert [10, 11, 12, 13, 14, 14] == index.tokens.tolist()
    assert [1, 2, 3, 4, 5, 5] == index.patches.tolist()
    assert [0.0, 0.5, 1.0, 1.5, 2.0, 2.0] == index.seconds.tolist()
    assert "item-4" == index.item(5)
    assert f"{2:032x}" == index.checksum(2)
    assert ["choir", "opera"] == index.values("corpus").to_pylist()
    assert SHARDS == index.header.shards
    assert index.header.schema.equals(row_schema())


def test_songs_are_known_by_corpus_and_name(path: Path):
    """Prompts are cut from another row of the same song: of the same corpus, too."""
    songs = open_index(path).songs

    assert songs[0] == songs[1]
    assert songs[2] == songs[3]
    assert 4 == len(np.unique(songs))


def test_an_index_of_several_batches_says_the_same(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """More than a million rows don't lie in one batch."""
    monkeypatch.setattr(index_file, "GROUP_ROWS", 2)
    other = open_index(write(tmp_path / "many.arrow"))
    one = open_index(path)

    assert 3 == other.table.column("tokens").num_chunks
    for name in ("tokens", "frames", "seconds", "songs", "block_starts"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert one.item(5) == other.item(5)


def test_the_same_lines_give_the_same_bytes(path: Path, tmp_path: Path):
    """A run that had nothing to do must not look like a change."""
    assert path.read_bytes() == write(tmp_path / "again.arrow").read_bytes()


def test_any_changed_byte_is_noticed_or_means_nothing(path: Path):
    """A flipped bit in an offset reads other rows; nothing else would notice before training."""
    data, good = path.read_bytes(), open_index(path)
    schema_size = 8 + int.from_bytes(data[4:8], "little")  # Arrow's own padding in there says nothing
    refused = 0
    for at in [*range(0, schema_size, 5), *range(schema_size, len(data), 3)]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            found = open_index(path)
        except OutputError:
            refused += 1
            continue
        assert at < schema_size
        assert (good.header, good.digest, good.table) == (found.header, found.digest, found.table)

    assert refused > len(data) // 6


@pytest.mark.parametrize("keep", [0, 5, 300, 5000, -8, -1])
def test_a_cut_index_is_refused(path: Path, keep: int):
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(OutputError, match="can't be used"):
        open_index(path)


def test_another_arrow_file_is_no_index(tmp_path: Path):
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_stream(sink, row_schema()):
        pass

    with pytest.raises(OutputError, match="no index of this tool"):
        open_index(tmp_path / "x.arrow")


def test_an_index_without_rows_opens(tmp_path: Path):
    IndexBuilder().write(tmp_path / "index.arrow", (), "", ROWS)
    index = open_index(tmp_path / "index.arrow")

    assert (0, 0) == (index.num_blocks, index.num_rows)
    assert [] == index.tokens.tolist()
    assert [] == index.songs.tolist()


def test_the_index_is_one_arrow_table(path: Path):
    """Any tool that reads Arrow reads it."""
    with pa.ipc.open_stream(path.read_bytes()) as reader:
        table = reader.read_all()

    assert list(INDEX_COLUMNS) == table.column_names
    assert [2, 3, 1] == table.column("rows").to_pylist()
    assert ["歌 1", "歌 1", "歌 2"] == table.column("song")[1].as_py()
