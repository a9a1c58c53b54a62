"""Files that are there whole or not at all, and what a disk that refuses them is called.

``atomic_write`` writes beside the target, fsyncs, renames over it and fsyncs the folder: a reader, or the next run
after a power cut, sees the old content or the new one. ``rename_noreplace`` is for shards, which must never replace
another run's. Two fsyncs cost 1 to 20 ms on a local disk, so this is for files written once a run, not once a row.
"""

import contextlib
import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ..core.errors import DiskError

DISK_ERRNOS = {
    errno.ENOSPC: "no space left",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file size limit is reached",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the disk reports an I/O error",
    errno.ENODEV: "the device is gone",
    errno.ENOTCONN: "the file system is no longer mounted",
    errno.ESTALE: "the network file system no longer knows the file",
}
_SPACE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
# What kernels and file systems answer that don't know the flag (NFS: EINVAL) or hard links (FAT, some FUSE: EPERM).
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}


@contextlib.contextmanager
def disk_errors(path: Path, *, needed: int | None = None) -> Iterator[None]:
    """Turn a full, failing or vanished disk into ``DiskError``; other errors pass. ``needed``: bytes to be written.

    ``path`` is named if the error itself names no file.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_ERRNOS:
            raise
        named = Path(error.filename) if isinstance(error.filename, str) else path
        raise _disk_error(named, error.errno, needed) from error


def _disk_error(path: Path, code: int, needed: int | None) -> DiskError:
    facts = [f"free there: {_free_text(path)}"]
    if needed is not None:
        facts.append(f"to be written: {needed:,} bytes")
    way_out = "free some space or raise the quota" if code in _SPACE_ERRNOS else "see to the file system"
    return DiskError(
        f"{DISK_ERRNOS[code]}: {path}",
        why="; ".join(facts),
        fix=f"{way_out}, then give the same command again; what was committed is kept",
    )


def _free_text(path: Path) -> str:
    """Free bytes of the file system of ``path``, or of its nearest folder that is still there."""
    for folder in (path, *path.parents):
        with contextlib.suppress(OSError):
            return f"{shutil.disk_usage(folder).free:,} bytes"
    return "unknown"


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write; ``path`` gets its content when the block ends, and is untouched if it raises.

    Raises DiskError if the disk refuses.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_errors(path):
        try:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        fsync_folder(path.parent)


def atomic_write(path: Path, content: bytes | str) -> None:
    """Give ``path`` this content (text as UTF-8), whole or not at all. Raises DiskError if the disk refuses."""
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def fsync_folder(folder: Path) -> None:
    """Make names in ``folder`` durable; a file system that has no such thing is left alone."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)


def rename_noreplace(source: Path, target: Path) -> None:
    """Rename, and raise FileExistsError if ``target`` exists. Folders are not fsynced."""
    try:
        _renameat2(source, target)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _link_and_unlink(source, target)


def _renameat2(source: Path, target: Path) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):  # glibc before 2.28
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if library.renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(source), None, str(target))


def _link_and_unlink(source: Path, target: Path) -> None:
    """Atomic in its refusal to replace. Killed in between, both names stand for one file (see writers/salvage.py)."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        # Neither way is offered. A look before the rename leaves a gap of microseconds, and two runs that finish a
        # shard of one rank and number at once have got past the run's lock already.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.rename(source, target)
    else:
        os.unlink(source)


def write_all(descriptor: int, data: bytes | pa.Buffer) -> None:
    """``os.write`` until everything is written; a signal or a limit of the system (2 GiB) may cut one call short."""
    with memoryview(data) as view:
        rest = view.cast("B")
        while len(rest):
            rest = rest[os.write(descriptor, rest) :]
