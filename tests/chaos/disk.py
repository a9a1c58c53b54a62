"""The disk that a round writes to, and two ways to fill it: a small tmpfs, or a limit on the size of files.

A tmpfs has to be mounted (root, or ``unshare -rm``); every file on it then gets ENOSPC, journal, lock and plan included.
The limit is set from outside on the running processes, needs no privilege, and works on the machine's own disk.
"""

import contextlib
import os
import random
import resource
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

TMPFS_BYTES = 64 << 20
MIN_FILE_BYTES = 4096
"""A limit on the size of files also holds for the boards in the temporary folder, which is not the disk that is full."""
LEFT_BYTES = 1 << 17
"""At most that much is left free on a disk that is full: so it is full in the midst of a file."""


class Disk:
    """A folder to write to."""

    def __init__(self, root: Path, *, tmpfs: bool) -> None:
        self.root = root
        self.tmpfs = tmpfs
        self._filler = root / "filler"

    def fill(self, rng: random.Random, pids: Iterable[int], output_dir: Path) -> None:
        """Leave nearly no room for the processes ``pids`` and those that they start."""
        left = rng.choice((0, rng.randrange(LEFT_BYTES)))
        if self.tmpfs:
            self._fill_up(left)
        else:
            limit_file_size(pids, max(MIN_FILE_BYTES, rng.randrange(1 + _largest(output_dir)) + left))

    def _fill_up(self, left: int) -> None:
        with open(self._filler, "ab") as file, contextlib.suppress(OSError):
            free = shutil.disk_usage(self.root).free
            os.posix_fallocate(file.fileno(), 0, max(1, free - left))

    def free(self) -> None:
        """Make room again. A limit ends with the processes that it was set on."""
        self._filler.unlink(missing_ok=True)


def limit_file_size(pids: Iterable[int], limit: int) -> None:
    """Let writes beyond ``limit`` bytes of a file fail with EFBIG."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))


def _largest(output_dir: Path) -> int:
    """Size of the largest open shard."""
    sizes = [0]
    for path in output_dir.glob(".prep/open/*.part"):
        with contextlib.suppress(OSError):
            sizes.append(path.stat().st_size)
    return max(sizes)


@contextlib.contextmanager
def open_disk(folder: Path, *, tmpfs: bool) -> Iterator[Disk]:
    """A disk at ``folder``, a tmpfs if that is asked for and can be mounted; emptied at the end."""
    folder.mkdir(parents=True)
    mounted = tmpfs and _mount(folder)
    try:
        yield Disk(folder, tmpfs=mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=True)
        shutil.rmtree(folder)


def _mount(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", folder]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
