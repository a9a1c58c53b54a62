import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latentprep.core.paths import OutputPaths, Part
from latentprep.writers import part as part_module
from latentprep.writers import salvage as salvage_module
from latentprep.writers.block import END_MARK, hash_file, schema_bytes
from latentprep.writers.ledger import read_journals
from latentprep.writers.records import BlockRecord
from latentprep.writers.repair import drop_hidden_blocks
from latentprep.writers.salvage import SalvageReport, salvage_open_shards
from tests.writers.builders import (
    FINGERPRINT,
    finished_run,
    killed_run,
    metadata,
    open_parts,
    read_shard,
    rows,
    shard_names,
    writer,
)


@pytest.fixture
def paths(tmp_path: Path) -> OutputPaths:
    return OutputPaths(tmp_path)


def the_part(paths: OutputPaths) -> Path:
    (name,) = open_parts(paths)
    return paths.open_dir / name


def the_journal(paths: OutputPaths) -> Path:
    return paths.journal(0, "run1")


def assert_dataset(paths: OutputPaths, chunks: list[int]) -> None:
    """The output folder shows exactly the rows of ``chunks``, and its journal agrees with its files."""
    drop_hidden_blocks(paths, FINGERPRINT)
    journal = read_journals(paths, FINGERPRINT)
    shown = [batch for shard in journal.shards for batch in read_shard(paths.root / shard.name).to_batches()]

    assert sorted(chunks) == sorted(journal.done)
    assert () == journal.open == journal.leftovers == journal.lost
    assert sorted(shard.name for shard in journal.shards) == shard_names(paths)
    assert [rows(2, block.record.chunk) for shard in journal.shards for block in shard.blocks] == shown
    assert sum(journal.done[chunk].record.rows for chunk in chunks) == sum(batch.num_rows for batch in shown)
    for shard in journal.shards:
        path = paths.root / shard.name
        assert (path.stat().st_size, hash_file(path)) == (shard.size, shard.xxh3)


def test_what_a_killed_run_committed_becomes_a_shard(paths: OutputPaths):
    killed_run(paths, [0, 1, 2])
    report = salvage_open_shards(paths, FINGERPRINT)

    assert SalvageReport(num_shards=1, num_blocks=3, num_removed=0, num_bad_blocks=0) == report
    assert [] == open_parts(paths)
    assert_dataset(paths, [0, 1, 2])


def test_a_salvaged_shard_is_what_an_orderly_end_would_have_made(paths: OutputPaths, tmp_path: Path):
    killed_run(paths, [0, 1])
    salvage_open_shards(paths, FINGERPRINT)
    orderly = OutputPaths(tmp_path / "orderly")
    finished_run(orderly, [0, 1])

    assert orderly.shard(0, 0).read_bytes() == paths.shard(0, 0).read_bytes()


def test_bytes_without_a_line_are_cut(paths: OutputPaths):
    """Whole blocks even: a kill between the bytes and the line leaves a stream that opens with one block too many."""
    records = killed_run(paths, [0, 1])
    whole = the_part(paths).read_bytes()
    block = whole[records[1].offset :]
    the_part(paths).write_bytes(whole + block + block[:100])
    salvage_open_shards(paths, FINGERPRINT)

    assert_dataset(paths, [0, 1])


def test_a_journal_cut_at_any_byte_keeps_exactly_the_blocks_whose_lines_are_whole(tmp_path: Path):
    """Every byte of the last two lines."""
    source = OutputPaths(tmp_path / "source")
    killed_run(source, [0, 1, 2])
    lines = the_journal(source).read_bytes()
    ends = [i for i, byte in enumerate(lines) if byte == ord("\n")]

    for cut in range(ends[-3] + 1, len(lines) + 1):
        paths = OutputPaths(tmp_path / "cut")
        shutil.copytree(source.root, paths.root)
        the_journal(paths).write_bytes(lines[:cut])
        salvage_open_shards(paths, FINGERPRINT)

        assert list(range(sum(end <= cut for end in ends) - 1)) == sorted(read_journals(paths, FINGERPRINT).done)
        if cut in (ends[-3] + 1, ends[-2] - 1, ends[-2], ends[-1] - 1, ends[-1]):
            assert_dataset(paths, list(range(sum(end <= cut for end in ends) - 1)))
        shutil.rmtree(paths.root)


def test_a_shard_cut_at_any_place_keeps_exactly_the_blocks_that_are_whole(tmp_path: Path):
    """Power loss on a disk that lied about fdatasync: lines speak of bytes that are not there."""
    source = OutputPaths(tmp_path / "source")
    records = killed_run(source, [0, 1, 2])
    whole = the_part(source).read_bytes()
    ends = [record.offset + record.length for record in records]
    borders = [0, 1, 8, len(schema_bytes()), *ends, *(end - 1 for end in ends)]

    for cut in [*borders, *random.Random(1).sample(range(len(whole)), 25)]:
        paths = OutputPaths(tmp_path / "cut")
        shutil.copytree(source.root, paths.root)
        the_part(paths).write_bytes(whole[:cut])
        report = salvage_open_shards(paths, FINGERPRINT)
        kept = sum(end <= cut for end in ends)

        assert (kept, 3 - kept) == (report.num_blocks, report.num_bad_blocks), cut
        assert_dataset(paths, list(range(kept)))
        shutil.rmtree(paths.root)


@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_anywhere_costs_the_blocks_it_hits_and_no_other(tmp_path: Path, data):
    """One byte in the file, one line of the journal, garbage behind both."""
    shutil.rmtree(tmp_path)
    paths = OutputPaths(tmp_path)
    records = killed_run(paths, [0, 1, 2, 3])
    file, journal = bytearray(the_part(paths).read_bytes()), the_journal(paths).read_bytes().splitlines(keepends=True)
    lost = set()
    if data.draw(st.booleans(), "byte of the file"):
        at = data.draw(st.integers(0, len(file) - 1))
        file[at] ^= data.draw(st.integers(1, 255))
        lost |= {record.chunk for record in records if record.offset <= at < record.offset + record.length}
    if data.draw(st.booleans(), "line of the journal"):
        line = data.draw(st.integers(1, 4))
        journal[line] = b"#" + journal[line][1:]
        lost.add(line - 1)
    the_part(paths).write_bytes(bytes(file) + data.draw(st.sampled_from([b"", bytes(64), os.urandom(999)])))
    the_journal(paths).write_bytes(b"".join(journal) + data.draw(st.sampled_from([b"", bytes(512), b"{torn"])))
    salvage_open_shards(paths, FINGERPRINT)

    assert_dataset(paths, [chunk for chunk in range(4) if chunk not in lost])


def test_zeros_behind_a_border_are_cut(paths: OutputPaths):
    """A file system that extended the file before it wrote: such a stream opens without an error."""
    killed_run(paths, [0, 1])
    with open(the_part(paths), "ab") as file:
        file.write(bytes(4096))
    salvage_open_shards(paths, FINGERPRINT)

    assert_dataset(paths, [0, 1])
    assert paths.shard(0, 0).read_bytes().endswith(END_MARK)


def test_a_part_with_nothing_to_keep_goes(paths: OutputPaths):
    killed_run(paths, [0])
    the_part(paths).write_bytes(schema_bytes())
    report = salvage_open_shards(paths, FINGERPRINT)

    assert SalvageReport(num_shards=0, num_blocks=0, num_removed=1, num_bad_blocks=1) == report
    assert [] == open_parts(paths) == shard_names(paths)


def test_a_part_that_is_gone_is_simply_not_done(paths: OutputPaths):
    killed_run(paths, [0, 1])
    the_part(paths).unlink()
    salvage_open_shards(paths, FINGERPRINT)

    assert {} == read_journals(paths, FINGERPRINT).done


def test_a_kill_between_the_closed_line_and_the_rename_is_made_good(paths: OutputPaths):
    (closed,) = finished_run(paths, [0, 1])
    os.rename(paths.root / closed.name, paths.open_shard(0, 0, "run1"))
    assert {0, 1} == read_journals(paths, FINGERPRINT).committed_chunks

    report = salvage_open_shards(paths, FINGERPRINT)

    assert (1, 2) == (report.num_shards, report.num_blocks)
    assert_dataset(paths, [0, 1])


def test_a_kill_between_link_and_unlink_is_made_good(paths: OutputPaths):
    """Where a file system can't rename without replacing, both names stand for one file for a moment."""
    (closed,) = finished_run(paths, [0, 1])
    os.link(paths.root / closed.name, paths.open_shard(0, 0, "run1"))
    salvage_open_shards(paths, FINGERPRINT)

    assert [] == open_parts(paths)
    assert_dataset(paths, [0, 1])


def test_a_final_name_that_another_file_has_is_left_to_it(paths: OutputPaths):
    killed_run(paths, [0, 1])
    paths.shard(0, 0).write_bytes(b"foreign")
    salvage_open_shards(paths, FINGERPRINT)
    journal = read_journals(paths, FINGERPRINT)

    assert b"foreign" == paths.shard(0, 0).read_bytes()
    assert ("data-r0-00001.arrow", "data-r0-00001.arrow") == (journal.done[0].shard, journal.done[1].shard)
    assert ("data-r0-00000.arrow",) == journal.leftovers


def test_a_shard_with_a_final_name_and_no_closed_line_is_never_taken_in(paths: OutputPaths):
    """Copied in by hand, or of another plan: nobody vouches for it."""
    finished_run(paths, [0])
    shutil.copy(paths.shard(0, 0), paths.shard(0, 7))
    salvage_open_shards(paths, FINGERPRINT)
    journal = read_journals(paths, FINGERPRINT)

    assert ["data-r0-00000.arrow"] == [shard.name for shard in journal.shards]
    assert ("data-r0-00007.arrow",) == journal.leftovers


def test_salvaging_twice_changes_nothing(paths: OutputPaths):
    killed_run(paths, [0, 1])
    salvage_open_shards(paths, FINGERPRINT)
    before = {path: path.read_bytes() for path in paths.root.rglob("*") if path.is_file()}
    report = salvage_open_shards(paths, FINGERPRINT)

    assert SalvageReport(num_shards=0, num_blocks=0, num_removed=0, num_bad_blocks=0) == report
    assert before == {path: path.read_bytes() for path in paths.root.rglob("*") if path.is_file()}


class Killed(BaseException):
    """What stands for a kill -9: nothing catches it, nothing is tidied up."""


class KillAtStep:
    """Ends the salvage at its n-th step on the file system, before that step or after half of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, countdown: int) -> None:
        self.countdown = countdown
        for module, name in [
            (os, "fsync"),
            (os, "fdatasync"),
            (part_module, "rename_noreplace"),
            (part_module, "fsync_folder"),
            (salvage_module, "write_all"),
            (Path, "unlink"),
        ]:
            monkeypatch.setattr(module, name, self._counted(getattr(module, name)))

    def _counted(self, step):
        def counted(*arguments, **options):
            self.countdown -= 1
            if self.countdown < 0:
                raise Killed
            return step(*arguments, **options)

        return counted


@pytest.mark.parametrize("damaged", [False, True], ids=["in place", "by copying"])
def test_a_salvage_killed_at_any_step_is_done_by_the_next(tmp_path: Path, damaged: bool):
    """Also by the one after the next, each killed one step later than the one before."""
    source = OutputPaths(tmp_path / "source")
    killed_run(source, [0, 1, 2])
    if damaged:
        lines = the_journal(source).read_bytes().splitlines(keepends=True)
        lines[2] = b"#" + lines[2][1:]
        the_journal(source).write_bytes(b"".join(lines))
    kept = [0, 2] if damaged else [0, 1, 2]

    steps = 0
    killed = True
    while killed:
        paths = OutputPaths(tmp_path / f"killed-{steps}")
        shutil.copytree(source.root, paths.root)
        killed = salvage_killed_at(paths, steps)
        salvage_killed_at(paths, steps + 1)
        salvage_open_shards(paths, FINGERPRINT)
        assert_dataset(paths, kept)
        assert [] == open_parts(paths)
        shutil.rmtree(paths.root)
        steps += 1

    assert 5 < steps


def salvage_killed_at(paths: OutputPaths, step: int) -> bool:
    with pytest.MonkeyPatch.context() as monkeypatch:
        KillAtStep(monkeypatch, step)
        try:
            salvage_open_shards(paths, FINGERPRINT)
        except Killed:
            return True
    return False


def test_only_the_part_of_the_plan_that_is_locked_is_touched(paths: OutputPaths):
    """Another node is at work on the other part."""
    mine, other = writer(paths, rank=0, part=Part(1, 2)), writer(paths, rank=8, run_id="other", part=Part(2, 2))
    mine.write(rows(2, 0), metadata(0))
    other.write(rows(2, 1), metadata(1))
    mine.abandon()
    salvage_open_shards(paths, FINGERPRINT, part=Part(1, 2))
    other.write(rows(2, 2), metadata(2))
    other.close()

    assert_dataset(paths, [0, 1, 2])


def test_another_plans_shards_are_left_alone(paths: OutputPaths):
    killed_run(paths, [0, 1])
    salvage_open_shards(paths, "another plan")

    assert ["data-r0-00000.arrow.run1.part"] == open_parts(paths)


def test_a_part_of_which_no_journal_speaks_goes_when_the_whole_plan_is_locked(paths: OutputPaths):
    killed_run(paths, [0])
    the_journal(paths).unlink()
    salvage_open_shards(paths, FINGERPRINT, part=Part(1, 2))
    assert 1 == len(open_parts(paths)), "it might be another part's, just begun"

    salvage_open_shards(paths, FINGERPRINT)

    assert [] == open_parts(paths)


def test_an_empty_folder_is_salvaged_into_itself(paths: OutputPaths):
    salvage_open_shards(paths, FINGERPRINT)

    assert [] == os.listdir(paths.root)


def test_a_salvage_does_not_touch_what_earlier_runs_wrote_into_their_journals(paths: OutputPaths):
    killed_run(paths, [0])
    before = the_journal(paths).read_bytes()
    salvage_open_shards(paths, FINGERPRINT)

    assert before == the_journal(paths).read_bytes()
    assert 2 == len(list(paths.journal_dir.iterdir()))
    assert isinstance(read_journals(paths, FINGERPRINT).done[0].record, BlockRecord)
