import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from latentprep.core.digest import digest_batch
from latentprep.core.errors import DiskError, OutputError
from latentprep.core.paths import OutputPaths
from latentprep.core.schema import row_schema
from latentprep.writers.block import block_metadata, encode_block, hash_file, schema_bytes
from latentprep.writers.journal import read_journal
from latentprep.writers.ledger import read_journals
from latentprep.writers.records import BlockRecord, ClosedRecord
from latentprep.writers.salvage import salvage_open_shards
from latentprep.writers.shard import ShardLimits, ShardWriter
from tests.writers.builders import (
    FINGERPRINT,
    finished_run,
    killed_run,
    metadata,
    open_parts,
    read_shard,
    rows,
    shard_names,
    skipped,
    writer,
)


@pytest.fixture
def paths(tmp_path: Path) -> OutputPaths:
    return OutputPaths(tmp_path)


def test_a_shard_is_byte_for_byte_what_the_stream_writer_of_arrow_writes(paths: OutputPaths, tmp_path: Path):
    """Then every reader of Arrow streams reads it, with no word about how it was written."""
    batches = [rows(3, 0), rows(1, 1), rows(5, 2)]
    with writer(paths) as shards:
        for chunk, batch in enumerate(batches):
            shards.write(batch, metadata(chunk, facts="æ"))
    reference = tmp_path / "reference"
    with pa.ipc.new_stream(str(reference), row_schema()) as stream:
        for chunk, batch in enumerate(batches):
            said = {"format": "1", "chunk": str(chunk), "fingerprint": FINGERPRINT, "facts": "æ"}
            stream.write_batch(batch, custom_metadata={f"latentprep.{key}": value for key, value in said.items()})

    assert reference.read_bytes() == paths.shard(0, 0).read_bytes()


def test_blocks_carry_their_metadata_into_the_shard(paths: OutputPaths):
    with writer(paths) as shards:
        shards.write(rows(2), metadata(41, facts="f"))
    with pa.ipc.open_stream(str(paths.shard(0, 0))) as reader:
        _, said = reader.read_next_batch_with_custom_metadata()

    assert metadata(41, facts="f") == block_metadata(said)


def test_a_record_says_where_the_block_lies_and_what_it_holds(paths: OutputPaths):
    batch = rows(3)
    with writer(paths) as shards:
        first = shards.write(rows(2, 9), metadata(4))
        record = shards.write(batch, metadata(5), skipped=[skipped(1)], warnings={"loud": 2})
    data = paths.shard(0, 0).read_bytes()[record.offset : record.offset + record.length]

    assert len(schema_bytes()) == first.offset
    assert first.offset + first.length == record.offset
    assert encode_block(batch, metadata(5)).data.to_pybytes() == data
    assert digest_batch(batch) == record.digests
    assert sum(batch.column("audio_duration").to_pylist()) == pytest.approx(record.audio_seconds)
    assert (5, 0, 3, (skipped(1),), {"loud": 2}) == (
        record.chunk,
        record.number,
        record.rows,
        record.skipped,
        record.warnings,
    )


def test_the_closed_line_has_size_and_hash_of_the_whole_file(paths: OutputPaths):
    """The block's hashes don't cover the schema and the end mark."""
    (closed,) = finished_run(paths, [0, 1])
    path = paths.root / closed.name

    assert (path.stat().st_size, hash_file(path), 4) == (closed.size, closed.xxh3, closed.rows)
    assert closed == read_journal(paths.journal(0, "run1")).records[-1]
    assert [] == open_parts(paths)


def test_a_chunk_without_rows_is_a_line_and_no_bytes(paths: OutputPaths):
    """An empty shard would make load_from_disk fail; no line would make the chunk come back for ever."""
    with writer(paths) as shards:
        record = shards.write(None, metadata(3), skipped=[skipped()])
        same = shards.write(rows(1).slice(0, 0), metadata(4))

    assert (None, 0, 0) == (record.number, record.rows, record.length)
    assert (None, 0, 0) == (same.number, same.rows, same.length)
    assert [] == shard_names(paths)
    assert {3, 4} == read_journals(paths, FINGERPRINT).done.keys()


def test_a_shard_is_closed_before_a_block_would_exceed_its_rows(paths: OutputPaths):
    closed: list[ClosedRecord] = []
    limits = ShardLimits(max_rows=5, max_bytes=1 << 40)
    with ShardWriter(paths, 2, "run1", FINGERPRINT, limits, on_closed=closed.append) as shards:
        for chunk, num_rows in enumerate([2, 3, 1, 9, 1]):
            shards.write(rows(num_rows, chunk), metadata(chunk))

    assert [5, 1, 9, 1] == [record.rows for record in closed]
    assert [f"data-r2-0000{i}.arrow" for i in range(4)] == shard_names(paths) == [record.name for record in closed]


def test_no_shard_exceeds_its_bytes_but_one_of_a_single_block(paths: OutputPaths):
    size = len(schema_bytes()) + 2 * len(encode_block(rows(2, 0), metadata(0)).data) + 8
    limits = ShardLimits(max_rows=1 << 30, max_bytes=size)
    with writer(paths, limits=limits) as shards:
        for chunk in range(4):
            shards.write(rows(2, 0), metadata(chunk))
        shards.write(rows(40, 1), metadata(4))
    sizes = [(paths.root / name).stat().st_size for name in shard_names(paths)]

    assert [size, size] == sizes[:2]
    assert 3 == len(sizes)
    assert size < sizes[2]


def test_one_byte_less_is_one_block_less(paths: OutputPaths):
    size = len(schema_bytes()) + 2 * len(encode_block(rows(2, 0), metadata(0)).data) + 8
    with writer(paths, limits=ShardLimits(max_rows=1 << 30, max_bytes=size - 1)) as shards:
        for chunk in range(2):
            shards.write(rows(2, 0), metadata(chunk))

    assert 2 == len(shard_names(paths))


def test_numbers_go_on_above_all_that_are_there(paths: OutputPaths):
    """Finished ones, open ones of another run, and those of other ranks apart."""
    finished_run(paths, [0], run_id="a")
    killed_run(paths, [1], run_id="b")
    finished_run(paths, [2], rank=1, run_id="c")
    with writer(paths, run_id="d") as shards:
        assert 2 == shards.write(rows(1), metadata(3)).number

    assert ["data-r0-00001.arrow.b.part"] == open_parts(paths)
    assert ["data-r0-00000.arrow", "data-r0-00002.arrow", "data-r1-00000.arrow"] == shard_names(paths)


def test_a_number_taken_by_another_run_meanwhile_is_not_overwritten(paths: OutputPaths):
    """Two runs at once can only come of a lock that failed; even then nobody's rows are lost."""
    late = writer(paths, run_id="late")
    record = late.write(rows(2, 1), metadata(1))
    other = b"another run's shard"
    paths.shard(0, 0).write_bytes(other)
    late.close()

    assert 0 == record.number
    assert other == paths.shard(0, 0).read_bytes()
    assert rows(2, 1).equals(read_shard(paths.shard(0, 1)).to_batches()[0])
    journal = read_journals(paths, FINGERPRINT)
    assert "data-r0-00001.arrow" == journal.done[1].shard
    assert ("data-r0-00000.arrow",) == journal.leftovers


def test_a_run_back_from_the_dead_does_not_write_into_a_salvaged_shard(paths: OutputPaths):
    """Its file has the final name now, with a hash that must stay true."""
    zombie = writer(paths)
    zombie.write(rows(2, 0), metadata(0))
    salvage_open_shards(paths, FINGERPRINT)
    before = paths.shard(0, 0).read_bytes()

    with pytest.raises(OutputError, match="taken over"):
        zombie.write(rows(2, 1), metadata(1))
    zombie.abandon()

    assert before == paths.shard(0, 0).read_bytes()
    assert {0} == read_journals(paths, FINGERPRINT).done.keys()


def test_a_zombie_that_only_closes_does_no_harm_either(paths: OutputPaths):
    zombie = writer(paths)
    zombie.write(rows(2, 0), metadata(0))
    salvage_open_shards(paths, FINGERPRINT)

    with pytest.raises(OutputError, match="taken over"):
        zombie.close()
    assert 2 == read_shard(paths.shard(0, 0)).num_rows


def test_an_exception_leaves_the_open_shard_to_the_salvage(paths: OutputPaths):
    """Closing on the way out would give half of a failed run a final name."""

    def failing_run() -> None:
        with writer(paths) as shards:
            shards.write(rows(2, 0), metadata(0))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing_run()

    assert [] == shard_names(paths)
    assert ["data-r0-00000.arrow.run1.part"] == open_parts(paths)


def test_a_writer_is_not_used_after_its_end(paths: OutputPaths):
    shards = writer(paths)
    shards.close()

    with pytest.raises(OutputError):
        shards.write(rows(1), metadata(0))
    with pytest.raises(OutputError):
        shards.close()


FILL = """
import sys
from pathlib import Path
from latentprep.core.errors import DiskError
from latentprep.core.paths import OutputPaths
from tests.writers.builders import metadata, rows, writer

shards = writer(OutputPaths(Path(sys.argv[1])))
try:
    for chunk in range(1000):
        shards.write(rows(20, chunk), metadata(chunk))
        print(chunk, flush=True)
except DiskError as error:
    print(type(error).__name__, error.what, flush=True)
    shards.abandon()
"""


def fill(folder: Path, limit: int | None = None) -> tuple[list[int], str]:
    """Write until the disk refuses; the chunks that were committed, and the last word."""

    def prepare() -> None:
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", FILL, str(folder)],
        cwd=Path(__file__).parents[2],
        preexec_fn=prepare,
        capture_output=True,
        text=True,
    )
    *chunks, last = done.stdout.splitlines()
    return [int(chunk) for chunk in chunks], last + done.stderr


def assert_that_what_was_committed_is_there(paths: OutputPaths, committed: list[int]) -> None:
    journal = read_journals(paths, FINGERPRINT)

    assert set(committed) == journal.done.keys()
    assert [rows(20, chunk) for chunk in committed] == read_shard(paths.shard(0, 0)).to_batches()


def test_a_file_size_limit_stops_in_order_and_keeps_what_was_committed(paths: OutputPaths):
    committed, last = fill(paths.root, limit=200_000)
    salvage_open_shards(paths, FINGERPRINT)

    assert last.startswith("DiskError a file size limit is reached")
    assert len(committed) > 2
    assert_that_what_was_committed_is_there(paths, committed)


def test_a_full_disk_stops_in_order_and_keeps_what_was_committed(tmp_path: Path):
    """A real small file system, where this user may mount one; salvaged after space was freed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True)
    if os.geteuid() or mounted.returncode:
        pytest.skip("may not mount a file system here")
    try:
        committed, last = fill(disk)
        subprocess.run(["mount", "-o", "remount,size=2m", str(disk)], check=True)
        salvage_open_shards(OutputPaths(disk), FINGERPRINT)

        assert last.startswith("DiskError no space left")
        assert len(committed) > 2
        assert_that_what_was_committed_is_there(OutputPaths(disk), committed)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_a_refused_block_is_no_line_and_the_writer_is_done(paths: OutputPaths, monkeypatch: pytest.MonkeyPatch):
    """A line about bytes that are not on disk is the one thing that must never be."""
    shards = writer(paths)
    shards.write(rows(1, 0), metadata(0))

    def fail(_: int) -> None:
        raise OSError(5, "I/O error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(DiskError, match="I/O error"):
        shards.write(rows(1, 1), metadata(1))
    monkeypatch.undo()
    with pytest.raises(OutputError):
        shards.write(rows(1, 2), metadata(2))
    shards.abandon()

    lines = read_journal(paths.journal(0, "run1")).records
    assert [0] == [record.chunk for record in lines if isinstance(record, BlockRecord)]
