"""``read_plain_file``: the bytes of a small file that a user named, and of nothing that may never end.

A path may lead to a FIFO, which blocks whoever opens it, or to a device, which has no last byte. The kind is looked up
on the open descriptor: one round trip less to a file server than a look at the path before, and the path can't change
in between.
"""

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


def read_plain_file(path: str | Path, *, max_bytes: int) -> bytes:
    """The whole content.

    Raises OSError, whose ``strerror`` says what stands there, if it can't be read, is no regular file, or has more
    than ``max_bytes``; ValueError for a path that no file can have.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        _check(os.fstat(descriptor), str(path), max_bytes)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _check(found: os.stat_result, path: str, max_bytes: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "a device or a FIFO, not a file", path)
    if found.st_size > max_bytes:
        raise OSError(errno.EFBIG, f"{found.st_size >> 20:,} MiB, far more than such a file holds", path)
