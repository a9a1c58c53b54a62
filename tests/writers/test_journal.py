import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import DiskError, OutputError
from latentprep.writers.journal import CommittedChunk, JournalWriter, committed_chunks, journal_header, read_journal
from latentprep.writers.records import BlockRecord, ClosedRecord, DroppedRecord, Record, decode_line, encode_line
from tests.writers.builders import skipped

RECORDS: list[Record] = [
    BlockRecord(
        chunk=7, number=0, offset=1752, length=4096, rows=3, xxh3="ab", audio_seconds=1.25, warnings={"loud": 2}
    ),
    BlockRecord(chunk=8, number=None, skipped=(skipped(0, "感受"), skipped(1, 'a"b\n'))),
    ClosedRecord(rank=0, run_id="r", number=0, name="data-r0-00000.arrow", size=5, xxh3="c", rows=3, offsets=(1752,)),
    DroppedRecord(rank=0, run_id="r", number=0),
]


def write_journal(path: Path, records: list[Record]) -> None:
    journal = JournalWriter(path, journal_header(0, "r", "fp"))
    for record in records:
        journal.append(record)
    journal.close()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_survives_its_line(record: Record):
    line = encode_line(record)

    assert record == decode_line(line[:-1])
    assert 1 == line.count(b"\n"), "free text in a message must not make a second line"


def test_a_line_is_json_that_anyone_can_read():
    told = json.loads(encode_line(RECORDS[0]))["record"]

    assert ("block", 7, 1752) == (told["type"], told["chunk"], told["offset"])


@given(st.data())
def test_a_line_with_any_byte_changed_is_not_read(data):
    """Half a disk sector of zeros, or one flipped bit, must not send the salvage to wrong bytes."""
    line = encode_line(data.draw(st.sampled_from(RECORDS)))[:-1]
    at = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.integers(1, 255))

    assert decode_line(line[:at] + bytes([line[at] ^ other]) + line[at + 1 :]) is None


def test_a_journal_is_read_as_it_was_written(tmp_path: Path):
    write_journal(tmp_path / "j", RECORDS)
    journal = read_journal(tmp_path / "j")

    assert tuple(RECORDS) == journal.records
    assert (False, 0) == (journal.torn_tail, journal.damaged_lines)
    assert journal.header is not None
    assert (0, "r", "fp", 1) == (
        journal.header.rank,
        journal.header.run_id,
        journal.header.fingerprint,
        journal.header.part,
    )


def test_a_journal_cut_at_any_byte_keeps_the_lines_before_the_cut(tmp_path: Path):
    """Every byte of the file, from none to all."""
    path = tmp_path / "j"
    write_journal(path, RECORDS)
    whole = path.read_bytes()
    ends = [i for i, byte in enumerate(whole) if byte == ord("\n")]

    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        journal = read_journal(path)
        # A line whose last byte is there says all it has to say, with or without the line end.
        complete = sum(end <= cut for end in ends)
        assert tuple(RECORDS[: max(0, complete - 1)]) == journal.records, cut
        assert (complete > 0) == (journal.header is not None), cut
        assert (cut not in (0, *ends, *(end + 1 for end in ends))) == journal.torn_tail, cut


def test_garbage_after_and_between_the_lines_is_counted_and_passed_over(tmp_path: Path):
    path = tmp_path / "j"
    write_journal(path, RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\x00\xff{}\n", *lines[2:], b"\x00" * 5000]))
    journal = read_journal(path)

    assert tuple(RECORDS) == journal.records
    assert (True, 1) == (journal.torn_tail, journal.damaged_lines)


def test_nothing_counts_without_a_header(tmp_path: Path):
    """It might be another plan's."""
    path = tmp_path / "j"
    write_journal(path, RECORDS)
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])

    assert (None, ()) == (read_journal(path).header, read_journal(path).records)


def test_a_journal_is_never_written_twice(tmp_path: Path):
    """Two processes that append to one file would tear each other's lines."""
    write_journal(tmp_path / "j", [])

    with pytest.raises(FileExistsError):
        JournalWriter(tmp_path / "j", journal_header(0, "r", "fp"))


def test_after_a_line_that_could_not_be_written_there_is_no_other(tmp_path: Path):
    """It would stand behind the torn one on the same line, and be lost with it."""
    journal = JournalWriter(tmp_path / "j", journal_header(0, "r", "fp"))
    full = JournalWriter.__new__(JournalWriter)
    full.__dict__ |= journal.__dict__ | {"_descriptor": open("/dev/full", "wb", buffering=0).fileno()}  # noqa: SIM115

    with pytest.raises((DiskError, OSError)):
        full.append(RECORDS[0])
    with pytest.raises(OutputError, match="earlier line"):
        full.append(RECORDS[1])
    journal.close()


def test_what_a_dead_worker_committed_is_known(tmp_path: Path):
    """Its chunk must not be given out again: it would be in the dataset twice."""
    write_journal(tmp_path / "j", RECORDS)

    assert (CommittedChunk(7, 3, 0), CommittedChunk(8, 0, 2)) == committed_chunks(tmp_path / "j")
    assert () == committed_chunks(tmp_path / "never written")
