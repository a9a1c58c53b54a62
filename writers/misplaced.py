"""Shards that lie under other names than their own, and their way back.

A file is known by its size and the xxh3-128 of its bytes, so a shard that was renamed, or two whose names were
exchanged, cost a read of these files and no encoding. Renaming goes through temporary names in two rounds (away, then
home), neither of which ever replaces a file: killed in between, ``bring_home`` and a second search finish it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from ..core.paths import parse_shard_name
from .atomic import disk_errors, fsync_folder, rename_noreplace
from .block import hash_file

_SUFFIX = ".moved"
"""Behind the name that the file is on its way to."""


class KnownShard(Protocol):
    """What a shard's line in the journal, or in provenance.json, says."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def xxh3(self) -> str: ...


def find_misplaced(root: Path, wanted: Iterable[KnownShard], candidates: Iterable[str]) -> dict[str, str]:
    """Which of the files ``candidates`` hold the bytes of a shard of ``wanted`` under a wrong name: {name: right name}.

    Only moves that can be made are named: to a name that is free, or that the file there moves away from. So a copy of
    a shard that is where it should be stays where it is. Raises DiskError if a file can't be read.
    """
    owners = {shard.xxh3: shard for shard in wanted}
    sizes = {shard.size for shard in owners.values()}
    found: dict[str, str] = {}
    for name in sorted(set(candidates)):
        path = root / name
        with disk_errors(path):
            if not path.is_file() or path.stat().st_size not in sizes:
                continue
            owner = owners.get(hash_file(path))
        if owner is not None and owner.name not in found.values():
            found[name] = owner.name
    return _possible(root, found)


def _possible(root: Path, found: Mapping[str, str]) -> dict[str, str]:
    moves = {name: target for name, target in found.items() if name != target}
    while blocked := [name for name, to in moves.items() if to not in moves and (root / to).exists()]:
        for name in blocked:
            del moves[name]
    return moves


def move_shards(root: Path, moves: Mapping[str, str]) -> None:
    """Give every file its right name. Raises DiskError if the disk refuses."""
    with disk_errors(root):
        for name, target in moves.items():
            rename_noreplace(root / name, root / (target + _SUFFIX))
        fsync_folder(root)
    bring_home(root)


def bring_home(root: Path) -> None:
    """Finish moves that were begun, where the right name is free. Raises DiskError if the disk refuses."""
    with disk_errors(root):
        for path in sorted(root.glob(f"data-*.arrow{_SUFFIX}")):
            target = path.name.removesuffix(_SUFFIX)
            if parse_shard_name(target) is not None and not (root / target).exists():
                rename_noreplace(path, root / target)
        fsync_folder(root)
