import shutil
from pathlib import Path

import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.writers.ledger import read_journals
from latentprep.writers.repair import drop_hidden_blocks
from tests.writers.builders import FINGERPRINT, finished_run, read_shard, rows, shard_names


@pytest.fixture
def paths(tmp_path: Path) -> OutputPaths:
    return OutputPaths(tmp_path)


def shown_chunks(paths: OutputPaths) -> list[int]:
    """Chunks of the blocks that a reader of all shards sees, in order."""
    known = {rows(2, chunk).column("item_name")[0].as_py(): chunk for chunk in range(9)}
    shards = [read_shard(paths.root / shard.name) for shard in read_journals(paths, FINGERPRINT).shards]
    return [known[batch.column("item_name")[0].as_py()] for shard in shards for batch in shard.to_batches()]


def test_a_chunk_that_was_committed_twice_is_shown_once(paths: OutputPaths):
    """Its rows would be trained on twice as often as the others."""
    finished_run(paths, [0, 1], rank=0, run_id="a")
    finished_run(paths, [1, 2], rank=1, run_id="b")
    assert [0, 1, 1, 2] == shown_chunks(paths)

    assert 1 == drop_hidden_blocks(paths, FINGERPRINT)

    assert [0, 1, 2] == sorted(shown_chunks(paths))
    assert [0, 0] == [shard.num_hidden for shard in read_journals(paths, FINGERPRINT).shards]
    assert ["data-r0-00000.arrow", "data-r1-00001.arrow"] == shard_names(paths)


def test_a_shard_of_nothing_but_second_copies_goes(paths: OutputPaths):
    finished_run(paths, [0, 1], rank=0, run_id="a")
    finished_run(paths, [1, 0], rank=1, run_id="b")
    drop_hidden_blocks(paths, FINGERPRINT)

    assert ["data-r0-00000.arrow"] == shard_names(paths)
    assert [0, 1] == shown_chunks(paths)


def test_a_block_whose_line_is_lost_is_not_shown(paths: OutputPaths):
    """Its chunk is not done by the journal, so it will be encoded again, and would be there twice."""
    finished_run(paths, [0, 1, 2])
    journal = paths.journal(0, "run1")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], b"#" + lines[2][1:], *lines[3:]]))
    drop_hidden_blocks(paths, FINGERPRINT)

    assert [0, 2] == shown_chunks(paths)
    assert {0, 2} == read_journals(paths, FINGERPRINT).done.keys()


def test_nothing_is_done_where_nothing_is_hidden(paths: OutputPaths):
    finished_run(paths, [0, 1])
    before = sorted(path.name for path in paths.root.rglob("*"))

    assert 0 == drop_hidden_blocks(paths, FINGERPRINT)
    assert before == sorted(path.name for path in paths.root.rglob("*"))


def test_a_repair_killed_before_the_old_shard_went_is_done_by_the_next(paths: OutputPaths, tmp_path: Path):
    """The old shard is there with, or without, the line that it doesn't count any more."""
    finished_run(paths, [0, 1], rank=0, run_id="a")
    finished_run(paths, [1, 2], rank=1, run_id="b")
    old = paths.shard(1, 0).read_bytes()
    drop_hidden_blocks(paths, FINGERPRINT)

    paths.shard(1, 0).write_bytes(old)
    assert ("data-r1-00000.arrow",) == read_journals(paths, FINGERPRINT).leftovers
    drop_hidden_blocks(paths, FINGERPRINT)
    assert not paths.shard(1, 0).exists()

    paths.shard(1, 0).write_bytes(old)
    (repair,) = paths.journal_dir.glob("r1-repair-*")
    repair.write_bytes(b"".join(repair.read_bytes().splitlines(keepends=True)[:-1]))
    drop_hidden_blocks(paths, FINGERPRINT)
    assert [0, 1, 2] == sorted(shown_chunks(paths))
    assert {0, 1, 2} == read_journals(paths, FINGERPRINT).done.keys()


def test_a_damaged_shard_is_not_rewritten_as_a_whole_one(paths: OutputPaths):
    """A copy of damaged bytes would get a true hash."""
    finished_run(paths, [0, 1], rank=0, run_id="a")
    finished_run(paths, [1, 2, 3], rank=1, run_id="b")
    path = paths.shard(1, 0)
    data = bytearray(path.read_bytes())
    data[read_journals(paths, FINGERPRINT).done[2].record.offset + 300] ^= 1
    path.write_bytes(data)

    with pytest.raises(OutputError, match=r"data-r1-00000.arrow is damaged"):
        drop_hidden_blocks(paths, FINGERPRINT)
    assert path.exists()


def test_the_advice_for_a_damaged_shard_works(paths: OutputPaths):
    """Deleted, its chunks are not done any more."""
    finished_run(paths, [0, 1], rank=0, run_id="a")
    finished_run(paths, [1, 2], rank=1, run_id="b")
    shutil.move(paths.shard(1, 0), paths.root / "elsewhere")

    assert {0, 1} == read_journals(paths, FINGERPRINT).done.keys()
    assert ["data-r1-00000.arrow"] == [record.name for record in read_journals(paths, FINGERPRINT).lost]
