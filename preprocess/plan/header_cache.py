"""``HeaderCache``: what audio headers said, kept by (path, size, mtime), so that a second start opens no audio file.

Decisions:

- A record is a 64-bit hash of path, size and mtime, and what the plan wants of the header (24 bytes). Two of ten million
  files share a hash in one of 400,000 scans, and then one is sorted by a wrong length: what is decoded decides.
- Records go to disk ``SEGMENT_RECORDS`` at a time while the scan runs, so a killed scan loses no more than the last of
  them. Nothing is flushed: a power cut costs time, nothing else.
- Faults are not kept: what was refused is looked at again.
- Ten million records take 240 MB on disk and in memory and are ready in 3 s; finding one takes about 3 us.
- It is a help and no more: where it can't be read or written, headers are read.
"""

import contextlib
import struct
import threading
from bisect import bisect_left
from pathlib import Path
from typing import Self

import numpy as np
import xxhash

from ...core.errors import DiskError
from ..audio.header import AudioHeader
from .header_records import RECORD, RecordFile, read_records, replace_records

SEGMENT_RECORDS = 1024
MAX_UNUSED = 2_000_000
"""So many records of files that a whole scan didn't meet may stay, or twice as many as it met; else they are dropped."""

_PACKED = struct.Struct("<QqII")
_UNKNOWN = -1
"""``num_frames`` of a header that doesn't say it."""


class HeaderCache:
    """Headers by file; a context manager over one scan. Safe to use from several threads, by one process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        records, end = read_records(path)
        self._num_read = len(records)
        keys, first = np.unique(records["key"], return_index=True)
        self._records = records[first]
        self._keys = np.ascontiguousarray(keys).data
        self._used = bytearray(len(keys))
        self._added = bytearray()
        self._file: RecordFile | None = RecordFile(path, end)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        """Store what was added. A scan that failed before it stored anything leaves no file behind."""
        if kind is None or (self._file is not None and self._file.exists):
            self._store()
        if self._file is not None:
            self._file.close()
            if kind is None:
                self._drop_unused()
        self._file = None

    def find(self, path: str, file_size: int, mtime_ns: int) -> AudioHeader | None:
        """The header of the file, if it was read when the file had this size and time."""
        key = _key(path, file_size, mtime_ns)
        at = bisect_left(self._keys, key)
        if at == len(self._keys) or self._keys[at] != key:
            return None
        self._used[at] = 1
        _, num_frames, sample_rate, channels = self._records[at].item()
        return AudioHeader(
            file_size=file_size,
            mtime_ns=mtime_ns,
            num_frames=None if num_frames == _UNKNOWN else num_frames,
            sample_rate=sample_rate,
            channels=channels,
        )

    def add(self, path: str, header: AudioHeader) -> None:
        """Keep what a file's header said, under the size and time that the file had when it was open."""
        num_frames = _UNKNOWN if header.num_frames is None else header.num_frames
        key = _key(path, header.file_size, header.mtime_ns)
        with self._lock:
            self._added += _PACKED.pack(key, num_frames, header.sample_rate, header.channels)
            if len(self._added) >= SEGMENT_RECORDS * RECORD.itemsize:
                self._store()

    def _store(self) -> None:
        """A disk that refuses ends the storing, not the scan: who writes the plan will say so."""
        if self._added and self._file is not None:
            try:
                self._file.append(self._added)
            except OSError:
                self._file.close()
                self._file = None
        self._added.clear()

    def _drop_unused(self) -> None:
        used = np.frombuffer(self._used, np.bool_)
        num_used = int(used.sum())
        if len(used) - num_used <= max(MAX_UNUSED, 2 * num_used):
            return
        added = read_records(self._path)[0][self._num_read :]
        with contextlib.suppress(OSError, DiskError):  # the file stays as large as it was
            replace_records(self._path, np.concatenate([self._records[used], added]))


def _key(path: str, file_size: int, mtime_ns: int) -> int:
    return xxhash.xxh3_64_intdigest(f"{path}\0{file_size}\0{mtime_ns}".encode(errors="surrogateescape"))
