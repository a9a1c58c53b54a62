"""A shard while it is written: a ``.part`` file in ``.prep/open`` that takes blocks and gets a final name at its end.

Its name is unique to rank, number and run, and it is created O_EXCL. The final name is taken by a rename that never
replaces; if another run took the number meanwhile, the shard moves on to the next free one.
"""

import itertools
import os
from pathlib import Path

import msgspec
import pyarrow as pa
import xxhash

from ..core.errors import OutputError
from ..core.paths import OutputPaths, parse_open_shard_name, parse_shard_name, shard_name
from .atomic import disk_errors, fsync_folder, rename_noreplace, write_all
from .block import END_MARK, schema_bytes
from .journal import JournalWriter
from .records import ClosedRecord


def next_number(paths: OutputPaths, rank: int) -> int:
    """A shard number above every one of this rank that is there, finished or open."""
    finished = (parse_shard_name(name) for name in _names(paths.root))
    opened = (parse_open_shard_name(name) for name in _names(paths.open_dir))
    taken = [name[1] for name in itertools.chain(finished, opened) if name is not None and name[0] == rank]
    return max(taken, default=-1) + 1


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


class PartFile:
    """An open shard with its schema message written; blocks are appended, then the end mark."""

    def __init__(self, paths: OutputPaths, rank: int, run_id: str) -> None:
        """Take a number and create the file. Raises DiskError if the disk refuses."""
        with disk_errors(paths.open_dir):
            paths.open_dir.mkdir(parents=True, exist_ok=True)
            self.number = next_number(paths, rank)
            self.path = paths.open_shard(rank, self.number, run_id)
            self._descriptor: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            self.size = 0
            self._hash = xxhash.xxh3_128()
            try:
                fsync_folder(paths.open_dir)
                self._append(schema_bytes())
            except OSError:
                self.close()
                raise

    def append(self, data: pa.Buffer) -> int:
        """Append a block and make it durable; returns its offset. Raises DiskError, or OutputError if another run
        took the shard over."""
        self._refuse_if_taken_over()
        offset = self.size
        with disk_errors(self.path, needed=len(data)):
            self._append(data)
            os.fdatasync(self._file)
        return offset

    def finish(self) -> str:
        """Append the end mark, make the file durable and close it; returns the xxh3-128 of the whole file."""
        self._refuse_if_taken_over()
        with disk_errors(self.path):
            self._append(END_MARK)
            os.fsync(self._file)
        self.close()
        return self._hash.hexdigest()

    def close(self) -> None:
        """Let go of the file as it is; nothing happens the second time."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def _file(self) -> int:
        if self._descriptor is None:
            raise OutputError(f"{self.path} is closed already")
        return self._descriptor

    def _append(self, data: bytes | pa.Buffer) -> None:
        write_all(self._file, data)
        self._hash.update(data)
        self.size += len(data)

    def _refuse_if_taken_over(self) -> None:
        """A node that was given up for dead may come back after its shard was salvaged; it must not write into it."""
        mine = os.fstat(self._file)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            there = None
        if there is None or not os.path.samestat(mine, there) or mine.st_size != self.size:
            raise OutputError(
                f"the open shard {self.path} was taken over or changed by another process",
                why="a run that was believed dead is still writing, or someone touched .prep/open",
                fix="end the other run; this one's committed blocks are kept",
            )


def publish(paths: OutputPaths, journal: JournalWriter, part: Path, closed: ClosedRecord) -> ClosedRecord:
    """Write the "closed" line and give ``part``, complete and on disk, its final name; returns the line that counts.

    A name that is taken by another file makes it move on to the next free number, with a new line.
    """
    journal.append(closed)
    while not _take_name(part, paths.root / closed.name):
        closed = msgspec.structs.replace(closed, name=shard_name(closed.rank, next_number(paths, closed.rank)))
        journal.append(closed)
    return closed


def _take_name(part: Path, final: Path) -> bool:
    with disk_errors(final):
        try:
            rename_noreplace(part, final)
        except FileExistsError:
            if not os.path.samefile(part, final):
                return False
            part.unlink()  # killed between link and unlink on a file system that can't rename without replacing
        fsync_folder(final.parent)
        fsync_folder(part.parent)
    return True
