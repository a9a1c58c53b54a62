"""The checksum of a plan's file, in a file beside it: whether a stored plan is what was written.

A flipped bit in a plan names another audio file, or another size of one: its clip would be skipped as missing or changed,
and the run would end with exit code 0. So the parent reads a stored plan once before it trusts it: 2 GB/s from memory, a
plan has some 700 bytes a clip. It lies in a file of its own because an Arrow file's footer comes last and counts, too.
"""

from pathlib import Path

from ...writers.atomic import atomic_write, disk_errors
from ...writers.block import hash_file


def checksum_path(plan: Path) -> Path:
    """Where the checksum of the plan file ``plan`` lies."""
    return plan.with_name(plan.name + ".xxh3")


def write_checksum(written: Path, plan: Path) -> None:
    """Note the checksum of ``written``, which is about to be renamed to ``plan``. Raises DiskError if the disk refuses."""
    atomic_write(checksum_path(plan), hash_file(written) + "\n")


def is_damaged(plan: Path) -> bool:
    """Whether the bytes of a plan aren't those that were written; False if its checksum is gone.

    Raises DiskError if the disk refuses.
    """
    path = checksum_path(plan)
    with disk_errors(plan):
        if not path.is_file():
            return False
        return hash_file(plan) != path.read_text(encoding="latin-1").strip()
