"""``RegularFile``: an audio file that is open, and known to be a file.

A path of an annotation may name anything. The kind is looked up before the file is opened, since opening a FIFO blocks
until somebody writes (or wakes the writer), and once more on the open descriptor, since a path can change in between.
"""

import errno
import os
import stat
from typing import Self

from ...core.errors import ClipFault, FaultCode, Stage

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class RegularFile:
    """A context manager over one open descriptor.

    Raises ClipFault at ``stage``: missing_audio, not_a_file, unreadable, empty_file.
    """

    def __init__(self, path: str, stage: Stage) -> None:
        self.path, self.stage = path, stage
        try:
            found = os.lstat(path)
            self.is_link = stat.S_ISLNK(found.st_mode)
            """The path's last part is a symbolic link."""
            require_file(path, os.stat(path) if self.is_link else found, stage)
            self.fd = os.open(path, _FLAGS)
        except (OSError, ValueError) as error:
            raise file_fault(path, error, stage) from error
        try:
            found = os.fstat(self.fd)
            require_file(path, found, stage)
            if found.st_size == 0:
                raise ClipFault(stage, FaultCode.EMPTY_FILE, f"{path} has zero bytes")
        except BaseException:
            os.close(self.fd)
            raise
        self.size = found.st_size
        """Bytes."""
        self.mtime_ns = found.st_mtime_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        os.close(self.fd)

    def pread(self, length: int, offset: int = 0) -> bytes:
        """Up to ``length`` bytes from ``offset``, without moving the position. Raises ClipFault(UNREADABLE)."""
        try:
            return os.pread(self.fd, length, offset)
        except OSError as error:
            raise file_fault(self.path, error, self.stage) from error

    def rewind(self) -> None:
        """Move the descriptor's position to the first byte, for a reader that uses it."""
        os.lseek(self.fd, 0, os.SEEK_SET)


def require_file(path: str, found: os.stat_result, stage: Stage) -> None:
    """Raise ClipFault(NOT_A_FILE) unless ``found`` is a regular file's."""
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "not a file")
        raise ClipFault(stage, FaultCode.NOT_A_FILE, f"{path} is {kind}")


def file_fault(path: str, error: OSError | ValueError, stage: Stage) -> ClipFault:
    """The fault that an error of the file system stands for. A ValueError is a name that no file can have."""
    if isinstance(error, ValueError):
        return ClipFault(stage, FaultCode.MISSING_AUDIO, f"{path!r} can't be a file's name: {error}")
    if error.errno in _ABSENT:
        return ClipFault(stage, FaultCode.MISSING_AUDIO, f"{path} does not exist")
    return ClipFault(stage, FaultCode.UNREADABLE, f"{path}: {error.strerror or error}")
