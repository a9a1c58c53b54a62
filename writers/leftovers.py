"""Shards of this dataset's own plans that no journal speaks of any more, and their way out of the output folder.

A journal that lost the line of a finished shard (cut, damaged in its first line) makes a leftover of it: its chunks are
written again. Left where it lies it would be read by everything that takes ``data-*.arrow`` for the dataset, its rows
twice. It is moved, not deleted: reading its headers proves that the blocks are of these plans, not that nobody wants it.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from ..core.paths import OutputPaths
from .atomic import disk_errors, fsync_folder
from .block import FINGERPRINT_KEY
from .ipc_message import RECORD_BATCH, HeaderError, walk_headers


def set_aside(paths: OutputPaths, names: Iterable[str], plans: Collection[str]) -> list[str]:
    """Move those of the files ``names`` whose blocks are of ``plans`` to ``.prep/leftover``; returns their names.

    To be called when every chunk is in another shard. Raises DiskError if the disk refuses.
    """
    moved = [name for name in names if _is_of(paths.root / name, plans)]
    if moved:
        with disk_errors(paths.leftover_dir):
            paths.leftover_dir.mkdir(exist_ok=True)
            for name in moved:
                os.replace(paths.root / name, paths.leftover_dir / name)
            fsync_folder(paths.leftover_dir)
            fsync_folder(paths.root)
    return moved


def _is_of(path: Path, plans: Collection[str]) -> bool:
    """Whether it is whole, and every block in it says that one of ``plans`` made it."""
    with disk_errors(path), open(path, "rb", buffering=0) as file:
        descriptor = file.fileno()
        size = os.fstat(descriptor).st_size
        try:
            headers = list(walk_headers(lambda at, length: os.pread(descriptor, length, at), size))
        except HeaderError:
            return False
    blocks = [header for header in headers if header.kind == RECORD_BATCH]
    return bool(blocks) and all(block.custom_metadata.get(FINGERPRINT_KEY) in plans for block in blocks)
