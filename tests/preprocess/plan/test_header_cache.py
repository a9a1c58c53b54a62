"""Headers kept between scans: what goes in comes out, and a damaged file costs time and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.audio.header import AudioHeader
from latentprep.preprocess.plan import header_cache
from latentprep.preprocess.plan.header_cache import SEGMENT_RECORDS, HeaderCache
from latentprep.preprocess.plan.header_records import MAGIC, RECORD, read_records

from .builders import header

KILLED = """
import os, signal, sys
from pathlib import Path
from latentprep.preprocess.plan.header_cache import HeaderCache
from tests.preprocess.plan.builders import header
with HeaderCache(Path(sys.argv[1])) as cache:
    for number in range(int(sys.argv[2])):
        cache.add(str(number), header())
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _stored(path: Path, names: list[str]) -> None:
    with HeaderCache(path) as cache:
        for name in names:
            cache.add(name, header())


def _num_found(path: Path, names: list[str]) -> int:
    with HeaderCache(path) as cache:
        return sum(cache.find(name, 1_000_000, 1) is not None for name in names)


@pytest.mark.parametrize(
    "found",
    [
        header(),
        header(num_frames=None, sample_rate=0, channels=0),
        header(num_frames=(1 << 62), sample_rate=768_000, channels=255, file_size=1 << 50, mtime_ns=-5),
    ],
)
def test_a_header_comes_back_as_it_was(tmp_path: Path, found: AudioHeader) -> None:
    """With an unknown length, and at the ends of what its numbers hold."""
    with HeaderCache(tmp_path / "h") as cache:
        cache.add("a.wav", found)

    again = HeaderCache(tmp_path / "h")

    assert found == again.find("a.wav", found.file_size, found.mtime_ns)


def test_another_path_size_or_time_is_another_file(tmp_path: Path) -> None:
    """Else a file that was replaced would be planned by the length of the old one."""
    _stored(tmp_path / "h", ["a.wav"])

    cache = HeaderCache(tmp_path / "h")

    assert header() == cache.find("a.wav", 1_000_000, 1)
    assert [None] * 3 == [
        cache.find(*key) for key in [("b.wav", 1_000_000, 1), ("a.wav", 9, 1), ("a.wav", 1_000_000, 2)]
    ]


@given(st.lists(st.text(), max_size=8), st.lists(st.text(), max_size=8))
def test_what_was_added_in_any_scan_is_found_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, first: list[str], second: list[str]
) -> None:
    """Twice the same file included."""
    path = tmp_path_factory.mktemp("cache") / "h"
    _stored(path, first)
    _stored(path, second)

    cache = HeaderCache(path)

    for name in [*first, *second, "never added"]:
        assert (name in first or name in second) is (cache.find(name, 1_000_000, 1) is not None)


@given(cut=st.integers(0, 10_000), flip=st.none() | st.integers(0, 10_000))
def test_a_torn_or_flipped_file_loses_records_and_never_changes_one(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flip: int | None
) -> None:
    """And what is added after the damage is found again."""
    path = tmp_path_factory.mktemp("cache") / "h"
    _stored(path, ["a", "b"])
    _stored(path, ["c"])
    data = bytearray(path.read_bytes())
    if flip is not None:
        data[flip % len(data)] ^= 0x40
    path.write_bytes(data[: cut % (len(data) + 1)])

    with HeaderCache(path) as cache:
        assert {cache.find(name, 1_000_000, 1) for name in "abc"} <= {header(), None}
        cache.add("d", header())

    assert 1 == _num_found(path, ["d"])


@pytest.mark.parametrize("content", [b"", MAGIC, b"something else entirely, and longer than a head", MAGIC + bytes(16)])
def test_what_is_no_cache_is_replaced(tmp_path: Path, content: bytes) -> None:
    """A later version's file, or anything that came to lie there."""
    (tmp_path / "h").write_bytes(content)
    _stored(tmp_path / "h", ["a"])

    assert 1 == _num_found(tmp_path / "h", ["a"])


def test_a_place_where_nothing_can_be_read_or_written_is_an_empty_cache(tmp_path: Path) -> None:
    """It is a help; the scan goes on without it."""
    (tmp_path / "h").mkdir()
    _stored(tmp_path / "h", ["a"] * (SEGMENT_RECORDS + 1))

    assert 0 == _num_found(tmp_path / "h", ["a"])
    assert 0 == _num_found(tmp_path / "no folder" / "h", ["a"])


def test_a_killed_scan_keeps_what_it_had_stored(tmp_path: Path) -> None:
    """kill -9 in the middle: all but the last segment."""
    names = [str(number) for number in range(3 * SEGMENT_RECORDS - 1)]
    root = Path(__file__).parents[3]

    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "h"), str(len(names))], cwd=root, check=False)

    assert -9 == done.returncode
    assert 2 * SEGMENT_RECORDS == _num_found(tmp_path / "h", names)


def test_a_scan_that_fails_at_once_leaves_no_file_and_a_later_one_keeps_everything(tmp_path: Path) -> None:
    """A folder made for a run that came to nothing is taken away; headers of many files are worth keeping."""

    def fail_after(count: int) -> None:
        with HeaderCache(tmp_path / "h") as cache:
            for number in range(count):
                cache.add(str(number), header())
            raise RuntimeError("broken JSON")

    with pytest.raises(RuntimeError):
        fail_after(3)
    assert [] == list(tmp_path.iterdir())
    with pytest.raises(RuntimeError):
        fail_after(SEGMENT_RECORDS + 3)
    assert SEGMENT_RECORDS + 3 == len(read_records(tmp_path / "h")[0])


def test_records_that_no_scan_needs_any_more_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus that is copied each week would make the file grow for ever."""
    monkeypatch.setattr(header_cache, "MAX_UNUSED", 10)
    path = tmp_path / "h"
    _stored(path, [f"old {number}" for number in range(40)])
    with HeaderCache(path) as cache:
        assert all(cache.find(f"old {number}", 1_000_000, 1) for number in range(4))
        cache.add("new", header())

    assert 5 == len(read_records(path)[0])
    assert 24 == RECORD.itemsize
    assert 5 == _num_found(path, [*(f"old {number}" for number in range(40)), "new"])
