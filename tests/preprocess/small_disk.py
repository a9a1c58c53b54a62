"""Real file systems of a few megabytes that tests fill up, break and take away. They need root and skip without it."""

import contextlib
import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

EXT4_SHUTDOWN = 0x8004587D
"""ioctl that makes an ext4 answer EIO from now on: what an unplugged disk does."""
PAGE = 4096


class SmallDisk:
    """A mounted file system, and what lies on it in the way."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._filler = root / "filler"

    def fill(self, leave: int = 0) -> None:
        """Leave so many bytes free, whole pages."""
        with open(self._filler, "ab", buffering=0) as file, contextlib.suppress(OSError):
            while (free := self.free) > leave:
                file.write(bytes(max(PAGE, min(1 << 20, free - leave) // PAGE * PAGE)))

    def clear(self) -> None:
        """Free what ``fill`` took."""
        self._filler.unlink()

    @property
    def free(self) -> int:
        found = os.statvfs(self.root)
        return found.f_bavail * found.f_frsize


@contextlib.contextmanager
def small_tmpfs(root: Path, size: int) -> Iterator[SmallDisk]:
    """A tmpfs of ``size`` bytes."""
    root.mkdir()
    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(root))
    try:
        yield SmallDisk(root)
    finally:
        unmount(root)


class LoopDisk(SmallDisk):
    """An ext4 in a file."""

    def __init__(self, root: Path, image: Path) -> None:
        super().__init__(root)
        self._image = image

    def mount(self, *options: str) -> None:
        mount("-o", ",".join(["loop", "errors=remount-ro", *options]), str(self._image), str(self.root))

    def unmount(self) -> None:
        unmount(self.root)

    def fail_to_read_only(self) -> None:
        """What ext4 does when it meets damage."""
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        device = next(device for device, root, *_ in mounts if root == str(self.root))
        trigger = Path(f"/sys/fs/ext4/{Path(device).name}/trigger_fs_error")
        if not trigger.exists():
            pytest.skip("this kernel's ext4 can't be told to fail")
        trigger.write_text("a test")

    def unplug(self) -> None:
        """Every access is an I/O error from now on."""
        folder = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, EXT4_SHUTDOWN, struct.pack("I", 2))
        except OSError as error:
            pytest.skip(f"this kernel's ext4 can't be shut down: {error}")
        finally:
            os.close(folder)


@contextlib.contextmanager
def loop_disk(root: Path) -> Iterator[LoopDisk]:
    """An ext4 of 16 MiB, mounted."""
    root.mkdir()
    image = root.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(16 << 20)
    command("mkfs.ext4", "-q", str(image))
    disk = LoopDisk(root, image)
    disk.mount()
    try:
        yield disk
    finally:
        disk.unmount()


def mount(*arguments: str) -> None:
    """``mount``; skips the test where it is refused."""
    command("mount", *arguments)


def unmount(root: Path) -> None:
    """Take it away, in use or not; nothing happens if it is away."""
    subprocess.run(["umount", "--lazy", root], capture_output=True, check=False)


def command(*arguments: str) -> None:
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"there is no {arguments[0]}")
    if done.returncode:
        pytest.skip(f"{' '.join(arguments[:3])} ... is refused here: {done.stderr.strip()}")
