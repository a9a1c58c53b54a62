"""The journal of one worker incarnation: what it committed, one line at a time. It alone says what is done.

Each incarnation writes its own file, so no two processes ever append to one; nothing is ever rewritten. A line is
appended after the bytes it speaks of are on disk, and is on disk itself (fdatasync) before anyone hears of it. All
journals of an output folder together are read by ``ledger.read_journals``.
"""

import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import OutputError
from ..core.paths import WHOLE, Part
from .atomic import disk_errors, fsync_folder, write_all
from .lineage import Lineage, plans_of
from .records import BlockRecord, JournalHeader, Record, decode_line, encode_line


class JournalWriter:
    """Appends records to a new journal. Not safe for use by two threads at once."""

    def __init__(self, path: Path, header: JournalHeader) -> None:
        """Create the file with its header line. Raises FileExistsError if it exists, DiskError if the disk refuses."""
        self._path = path
        self._broken = False
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            fsync_folder(path.parent)
        self.append(header)

    def append(self, record: Record) -> None:
        """Append one line; it is on disk when this returns. Raises DiskError if the disk refuses."""
        if self._broken:
            raise OutputError(f"an earlier line could not be written to {self._path}")
        self._broken = True  # a line after a torn one would be lost with it
        with disk_errors(self._path):
            write_all(self._descriptor, encode_line(record))
            os.fdatasync(self._descriptor)
        self._broken = False

    def close(self) -> None:
        os.close(self._descriptor)


def journal_header(
    rank: int, run_id: str, fingerprint: Lineage, *, part: Part = WHOLE, salvage: bool = False
) -> JournalHeader:
    """Header of a journal that this process is about to write for the last plan of ``fingerprint``."""
    *extends, plan = plans_of(fingerprint)
    return JournalHeader(
        rank=rank,
        run_id=run_id,
        fingerprint=plan,
        extends=tuple(extends),
        part=part.number,
        parts=part.count,
        host=socket.gethostname(),
        pid=os.getpid(),
        started=time.time(),
        salvage=salvage,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalFile:
    """One journal as it was read."""

    path: Path
    header: JournalHeader | None
    """None if its line can't be read: then nothing the file says counts."""
    records: tuple[Record, ...]
    """The readable lines after the header, in order."""
    torn_tail: bool
    """The last line has no end: it was being written when the process or the machine died."""
    damaged_lines: int
    """Whole lines whose sum is wrong."""

    @property
    def blocks(self) -> tuple[BlockRecord, ...]:
        return tuple(record for record in self.records if isinstance(record, BlockRecord))


def read_journal(path: Path) -> JournalFile:
    """Read one journal; lines that are torn or damaged are left out and counted. Raises OSError if it can't be read."""
    *lines, tail = path.read_bytes().split(b"\n")
    decoded = [decode_line(line) for line in lines]
    last = decode_line(tail) if tail else None
    records = [record for record in (*decoded, last) if record is not None]
    header = records[0] if records and isinstance(records[0], JournalHeader) else None
    return JournalFile(
        path=path,
        header=header,
        records=tuple(records[1:]) if header else (),
        torn_tail=bool(tail) and last is None,
        damaged_lines=decoded.count(None),
    )


def put_aside(path: Path) -> None:
    """Take a journal that nobody can read out of the way of every later reading; its bytes are kept.

    Raises DiskError if the disk refuses.
    """
    with disk_errors(path):
        path.rename(path.with_name(path.name + ".damaged"))


@dataclass(frozen=True, slots=True)
class CommittedChunk:
    """A chunk that is on disk."""

    chunk_id: int
    num_rows: int
    num_skipped: int


def committed_chunks(path: Path) -> tuple[CommittedChunk, ...]:
    """What the incarnation that wrote the journal ``path`` has committed; nothing if it never came to write one.

    A dead worker's chunks are looked up here before they are given to another one: so no chunk is committed twice.
    """
    if not path.exists():
        return ()
    return tuple(CommittedChunk(block.chunk, block.rows, len(block.skipped)) for block in read_journal(path).blocks)
