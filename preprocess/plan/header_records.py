"""The file of ``HeaderCache``: records of 24 bytes in checked segments, appended while headers are read.

    magic                     8 bytes
    segment, again and again  number of records (u64), xxh3-64 of their bytes (u64), the records

What is torn or damaged ends the reading there; who appends cuts it off first.
"""

import os
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from ...writers.atomic import atomic_file

MAGIC = b"LPHEAD1\n"
RECORD = np.dtype([("key", "<u8"), ("num_frames", "<i8"), ("sample_rate", "<u4"), ("channels", "<u4")])
_SEGMENT = struct.Struct("<QQ")

Records = npt.NDArray[np.void]


def read_records(path: Path) -> tuple[Records, int]:
    """All records up to the first damage, and the byte where they end; none and 0 where no file can be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return np.zeros(0, RECORD), 0
    if not data.startswith(MAGIC):
        return np.zeros(0, RECORD), 0
    parts, end = [np.zeros(0, RECORD)], len(MAGIC)
    while len(data) >= end + _SEGMENT.size:
        count, checksum = _SEGMENT.unpack_from(data, end)
        start = end + _SEGMENT.size
        stop = start + count * RECORD.itemsize
        if not count or stop > len(data) or xxhash.xxh3_64_intdigest(memoryview(data)[start:stop]) != checksum:
            break
        parts.append(np.frombuffer(data, RECORD, count, start))
        end = stop
    return np.concatenate(parts), end


class RecordFile:
    """Appends segments; the file is made with the first. Raises OSError for a disk that refuses."""

    def __init__(self, path: Path, end: int) -> None:
        """``end`` is where the good part of the file ends, as ``read_records`` says."""
        self._path, self._end, self._descriptor = path, end, -1

    @property
    def exists(self) -> bool:
        """Whether there is a file to append to."""
        return self._end > 0

    def append(self, records: bytes | bytearray) -> None:
        """Append one segment; a part of one that a full disk left is cut off by the next reader."""
        if self._descriptor < 0:
            self._open()
        os.write(self._descriptor, _segment(records))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._descriptor, self._end)
        if not self._end:
            os.write(self._descriptor, MAGIC)
            self._end = len(MAGIC)


def replace_records(path: Path, records: Records) -> None:
    """Write the file anew. Raises OSError for a disk that refuses."""
    with atomic_file(path) as file:
        file.write(MAGIC)
        if len(records):
            file.write(_segment(records.tobytes()))


def _segment(records: bytes | bytearray) -> bytes:
    return _SEGMENT.pack(len(records) // RECORD.itemsize, xxhash.xxh3_64_intdigest(records)) + records
