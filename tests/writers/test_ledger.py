from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latentprep.core.digest import digest_batch, sum_digests
from latentprep.core.paths import OutputPaths
from latentprep.writers.ledger import read_journals
from tests.writers.builders import (
    FINGERPRINT,
    finished_run,
    killed_run,
    metadata,
    rows,
    skipped,
    writer,
)


@pytest.fixture
def paths(tmp_path: Path) -> OutputPaths:
    return OutputPaths(tmp_path)


def test_an_output_folder_without_journals_has_nothing_done(paths: OutputPaths):
    journal = read_journals(paths, FINGERPRINT)

    assert (0, 0.0, {}, ()) == (journal.num_rows, journal.audio_seconds, dict(journal.done), journal.shards)


def test_totals_are_those_of_the_done_chunks(paths: OutputPaths):
    """planned = written + skipped + remaining stands on them."""
    with writer(paths) as shards:
        shards.write(rows(3, 0), metadata(0), skipped=[skipped(2, "b"), skipped(1, "a")], warnings={"loud": 1})
        shards.write(rows(2, 1), metadata(1), warnings={"loud": 2, "truncated": 1})
        shards.write(None, metadata(2), skipped=[skipped(0, "c")])
    journal = read_journals(paths, FINGERPRINT)
    batches = [rows(3, 0), rows(2, 1)]

    assert 5 == journal.num_rows
    assert sum_digests(map(digest_batch, batches)) == journal.digests
    assert {"loud": 3, "truncated": 1} == journal.warnings
    assert [(0, "a"), (0, "b"), (2, "c")] == [(chunk, clip.item) for chunk, clip in journal.skipped()]
    assert sum(sum(b.column("audio_duration").to_pylist()) for b in batches) == pytest.approx(journal.audio_seconds)
    assert paths.shard(0, 0).stat().st_size == journal.num_bytes


def test_shards_stand_in_the_order_of_rank_and_number(paths: OutputPaths):
    """Row N of the dataset follows from it; a sort by name would put rank 10 before rank 2."""
    for rank, run in [(10, "a"), (2, "b"), (2, "c"), (0, "d")]:
        finished_run(paths, [ord(run)], rank=rank, run_id=run)
    journal = read_journals(paths, FINGERPRINT)

    assert [(0, 0), (2, 0), (2, 1), (10, 0)] == [(shard.rank, shard.number) for shard in journal.shards]


def test_open_shards_are_told_apart(paths: OutputPaths):
    """Their chunks are committed, for a display; done only when they are salvaged."""
    finished_run(paths, [0], run_id="a")
    killed_run(paths, [1, 2], run_id="b")
    journal = read_journals(paths, FINGERPRINT)

    assert {0} == journal.done.keys()
    assert {0, 1, 2} == journal.committed_chunks
    assert [[1, 2]] == [[record.chunk for record in shard.records] for shard in journal.open]


def test_another_plans_journal_does_not_count(paths: OutputPaths):
    finished_run(paths, [0])
    journal = read_journals(paths, "another")

    assert {} == journal.done
    assert 1 == journal.num_foreign_journals
    assert ("data-r0-00000.arrow",) == journal.leftovers


@pytest.mark.parametrize("size", [None, 100])
def test_a_shard_that_is_gone_or_cut_is_lost_and_its_chunks_are_not_done(paths: OutputPaths, size: int | None):
    """Then the same command simply encodes them again."""
    finished_run(paths, [0], run_id="a")
    finished_run(paths, [1], run_id="b")
    if size is None:
        paths.shard(0, 0).unlink()
    else:
        paths.shard(0, 0).write_bytes(paths.shard(0, 0).read_bytes()[:size])
    journal = read_journals(paths, FINGERPRINT)

    assert {1} == journal.done.keys()
    assert ["data-r0-00000.arrow"] == [record.name for record in journal.lost]


def test_a_number_that_was_used_again_belongs_to_who_has_it_now(paths: OutputPaths):
    """The only shard was deleted, so the next run began at 0 again; equal sizes must not confuse the two."""
    (first,) = finished_run(paths, [3], run_id="a")
    paths.shard(0, 0).unlink()
    (second,) = finished_run(paths, [3], run_id="b")
    journal = read_journals(paths, FINGERPRINT)
    same = (first.size, first.xxh3) == (second.size, second.xxh3)

    assert 1 == len(journal.shards)
    assert {3} == journal.done.keys()
    assert same, "the hardest case: not even the contents tell them apart"


def test_the_content_tells_whose_a_name_is(paths: OutputPaths):
    finished_run(paths, [3], run_id="a")
    old = paths.shard(0, 0)
    old.unlink()
    with writer(paths, run_id="b") as shards:
        shards.write(rows(2, 3), metadata(4))
    journal = read_journals(paths, FINGERPRINT)

    assert {4} == journal.done.keys()
    assert ["a"] == [record.run_id for record in journal.lost]


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=3))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_chunk_counts_once_however_often_it_was_committed(tmp_path_factory: pytest.TempPathFactory, runs):
    """The first by rank, number and offset."""
    paths = OutputPaths(tmp_path_factory.mktemp("out"))
    for rank, chunks in enumerate(runs):
        finished_run(paths, chunks, rank=rank)
    journal = read_journals(paths, FINGERPRINT)
    first = {chunk: rank for rank, chunks in reversed(list(enumerate(runs))) for chunk in chunks}
    counting = [block.record.chunk for shard in journal.shards for block in shard.blocks]

    assert first == {chunk: block.rank for chunk, block in journal.done.items()}
    assert sorted(first) == sorted(counting)
    assert sum(map(len, runs)) == len(counting) + sum(shard.num_hidden for shard in journal.shards)


def test_a_block_with_rows_counts_before_a_line_without(paths: OutputPaths):
    """One run skipped every clip (no memory, say), another one did not."""
    with writer(paths, rank=0) as shards:
        shards.write(None, metadata(0), skipped=[skipped()])
    finished_run(paths, [0], rank=1)

    assert 2 == read_journals(paths, FINGERPRINT).num_rows
