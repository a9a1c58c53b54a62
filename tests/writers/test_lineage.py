"""Plans that made one dataset, and whose journals are read together."""

from latentprep.core.paths import OutputPaths
from latentprep.writers.journal import JournalWriter, journal_header
from latentprep.writers.ledger import read_journals
from latentprep.writers.lineage import lineage_of, plans_of
from latentprep.writers.records import SupersededRecord
from latentprep.writers.repair import drop_hidden_blocks, remove_dropped
from latentprep.writers.shard import ShardWriter

from .builders import FINGERPRINT, WIDE, finished_run, metadata, rows, shard_names

LINEAGE = (FINGERPRINT, "second")


def extend(paths: OutputPaths, chunks: list[int], supersedes: tuple[int, ...]) -> None:
    """An extension that wrote ``chunks`` and is complete."""
    with ShardWriter(paths, 0, "ext", LINEAGE, WIDE) as writer:
        for chunk in chunks:
            writer.write(rows(2, chunk), metadata(chunk))
    journal = JournalWriter(paths.journal(0, "turn"), journal_header(0, "turn", LINEAGE))
    journal.append(SupersededRecord(plan="second", chunks=supersedes))
    journal.close()


def test_one_fingerprint_is_a_lineage_of_one():
    assert ("a",) == plans_of("a")
    assert ("a", "b") == plans_of(("a", "b"))


def test_headers_tell_what_a_plan_extends():
    headers = [journal_header(0, "r", plans) for plans in ("a", ("a", "b"), ("a", "b", "c"))]

    assert ("a", "b", "c") == lineage_of("c", headers)
    assert ("a",) == lineage_of("a", headers)
    assert ("unknown",) == lineage_of("unknown", headers)


def test_superseded_blocks_are_hidden_and_the_rest_counts(tmp_path):
    """The line decides, and only for who reads the extension's journals, too."""
    paths = OutputPaths(tmp_path)
    finished_run(paths, range(3))
    extend(paths, [3, 4], supersedes=(1,))

    assert {0, 1, 2} == read_journals(paths, FINGERPRINT).done.keys()
    journal = read_journals(paths, LINEAGE)
    assert {0, 2, 3, 4} == journal.done.keys()
    assert [1, 0] == [shard.num_hidden for shard in journal.shards]
    assert ({1}, {"second"}) == (journal.superseded, journal.extensions)


def test_old_files_stay_until_they_are_not_needed_any_more(tmp_path):
    """state.json names them until it is replaced."""
    paths = OutputPaths(tmp_path)
    finished_run(paths, range(3))
    extend(paths, [3], supersedes=(1,))
    before = shard_names(paths)

    assert 1 == drop_hidden_blocks(paths, LINEAGE, remove=False)
    assert set(before) < set(shard_names(paths))
    assert {0, 1, 2} == read_journals(paths, FINGERPRINT).done.keys()
    remove_dropped(paths, LINEAGE)

    journal = read_journals(paths, LINEAGE)
    assert sorted(shard.name for shard in journal.shards) == shard_names(paths)
    assert {0, 2, 3} == journal.done.keys()
    assert () == journal.leftovers
