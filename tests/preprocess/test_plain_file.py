"""Small files that users name."""

import os
from pathlib import Path

import pytest

from latentprep.preprocess.plain_file import read_plain_file


def refusal(path: str | Path, max_bytes: int = 100) -> str | None:
    with pytest.raises(OSError) as caught:
        read_plain_file(path, max_bytes=max_bytes)
    return caught.value.strerror


def test_a_file_is_read_up_to_the_limit(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"12345")

    assert b"12345" == read_plain_file(tmp_path / "x", max_bytes=5)
    assert "0 MiB, far more than such a file holds" == refusal(tmp_path / "x", 4)


def test_what_never_ends_is_not_read(tmp_path: Path):
    """A FIFO without a writer would block the whole run, a device fill the memory."""
    os.mkfifo(tmp_path / "pipe")

    assert "a device or a FIFO, not a file" == refusal(tmp_path / "pipe")
    assert "a device or a FIFO, not a file" == refusal("/dev/zero")


def test_what_is_not_there_or_a_folder_is_named_by_the_system(tmp_path: Path):
    assert "No such file or directory" == refusal(tmp_path / "nothing")
    assert "Is a directory" == refusal(tmp_path)


def test_no_descriptor_stays_open(tmp_path: Path):
    """Corpora have hundreds of thousands of song folders."""
    before = len(os.listdir("/proc/self/fd"))
    for path in (tmp_path, Path("/dev/zero"), tmp_path / "nothing"):
        refusal(path)

    assert before == len(os.listdir("/proc/self/fd"))
