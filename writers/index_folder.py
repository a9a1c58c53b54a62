"""The index of any folder of shards: of this tool, of ``datasets.save_to_disk``, of the tool that it replaces.

Which shards, in which order: state.json says; without one, every ``*.arrow`` by name. Where a journal is left its
checksums are taken; other blocks are read to make some, or go without.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import OutputError
from ..core.index import Index, IndexHeader, open_index
from ..core.paths import OutputPaths
from ..core.units import LatentSpec
from .index_build import FolderOfShards, ShardFiles, build_index
from .index_scan import KnownBlock, ScanRules, ShardToScan
from .verify_expect import Expected, expect


@dataclass(frozen=True, slots=True)
class ListedShards:
    """The shards of a dataset, in its order."""

    names: tuple[str, ...]
    fingerprint: str
    """``_fingerprint`` of state.json; "" without one."""


def listed_shards(state: bytes | None, names: Mapping[str, int], where: str, index_name: str) -> ListedShards:
    """The shards that state.json lists; without one, all of ``names`` (name to size) that are Arrow files.

    Raises OutputError for a state.json that can't be read, or that takes rows out of their order.
    """
    if state is None:
        arrow = tuple(sorted(name for name in names if name.endswith(".arrow") and name != index_name))
        if not arrow:
            raise OutputError(f"{where} holds no shards: neither state.json nor any *.arrow is there")
        return ListedShards(arrow, "")
    try:
        content = json.loads(state)
        listed = tuple(str(entry["filename"]) for entry in content["_data_files"])
        fingerprint, mapped = str(content.get("_fingerprint") or ""), content.get("_indices_data_files")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"state.json of {where} can't be read: {error!r}") from error
    if mapped:
        raise OutputError(
            f"{where} takes its rows through a file of indices ({mapped})",
            why="rows are read by where they lie",
            fix="save it anew after Dataset.flatten_indices()",
        )
    if missing := [name for name in listed if name not in names]:
        raise OutputError(f"{where} lacks {missing[0]}, which state.json lists", why="its rows would be lost")
    return ListedShards(listed, fingerprint)


def index_shards(
    files: ShardFiles, state: bytes | None, sizes: Mapping[str, int], where: str, target: Path, *, checksums: bool
) -> IndexHeader:
    """Build the index of the shards of ``sizes`` (name to bytes), wherever they lie. Raises OutputError, DiskError."""
    listed = listed_shards(state, sizes, where, target.name)
    shards = [ShardToScan(name=name, size=sizes[name]) for name in listed.names]
    return build_index(files, shards, ScanRules(checksums=checksums), listed.fingerprint, target)


def index_folder(folder: Path, target: Path | None = None, *, checksums: bool = True) -> IndexHeader:
    """Build the index of a local folder; into the folder, or into ``target``. Raises OutputError, DiskError."""
    paths = OutputPaths(folder)
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.arrow")}
    state = paths.state.read_bytes() if paths.state.exists() else None
    listed = listed_shards(state, sizes, str(folder), paths.index.name)
    known, spec = _known(paths)
    shards = [ShardToScan(name=name, size=sizes[name], known=known.get(name, {})) for name in listed.names]
    rules = ScanRules(spec=spec, checksums=checksums)
    return build_index(FolderOfShards(folder), shards, rules, listed.fingerprint, target or paths.index)


def known_blocks(expected: Expected) -> dict[str, dict[int, KnownBlock]]:
    """Of each shard what the journal knows of its blocks."""
    return {
        shard.name: {
            block.offset: KnownBlock(block.length, block.record.xxh3)
            for block in shard.blocks or ()
            if block.record is not None
        }
        for shard in expected.shards
    }


def _known(paths: OutputPaths) -> tuple[dict[str, dict[int, KnownBlock]], LatentSpec | None]:
    """What the metadata of a folder of ours knows; nothing of another one."""
    if not (paths.work.is_dir() or paths.provenance.exists()):
        return {}, None
    expected = expect(paths)
    return known_blocks(expected), expected.spec


def try_index(path: Path) -> Index | str:
    """The index at ``path``, or why it can't be used."""
    try:
        return open_index(path)
    except FileNotFoundError:
        return "the file is not there"
    except OutputError as error:
        return error.what
