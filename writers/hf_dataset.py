"""``state.json`` and ``dataset_info.json``: what makes the folder a dataset for ``datasets.load_from_disk``.

Written from 3.6 to 5.x alike: features in the spelling that all of them read (core/schema.py), and a fingerprint that
is never null, since ``datasets`` then pickles the whole table to make one. It is derived from what the shards hold, so
results that ``datasets`` cached for other rows, or for another order of rows, are not taken for this one's.

``state.json`` comes last: while it isn't there, or is the old one, no half of a dataset can be loaded.
"""

import json
from collections.abc import Sequence
from typing import Any, Protocol

import xxhash

from ..core.digest import Digests
from ..core.errors import OutputError
from ..core.paths import OutputPaths
from ..core.schema import features
from .atomic import atomic_write
from .ledger import ClosedShard


def write_hf_metadata(
    paths: OutputPaths, shards: Sequence[ClosedShard], fingerprint: str, digests: Digests, *, description: str = ""
) -> None:
    """Declare ``shards`` the dataset, in the order (rank, number). ``fingerprint`` is the plan's.

    Raises OutputError if there are no rows (``datasets`` can't open such a folder) or if a shard shows blocks that don't
    count (repair.drop_hidden_blocks comes first); DiskError if the disk refuses.
    """
    if not digests.num_rows:
        raise OutputError(
            f"there are no rows to make a dataset of in {paths.root}",
            why="every clip was skipped; an empty folder can't be opened as a dataset",
            fix=f"see {paths.skipped} for the reasons",
        )
    for shard in shards:
        if shard.num_hidden:
            raise OutputError(f"{shard.name} holds {shard.num_hidden} blocks that don't count")
    ordered = sorted(shards, key=lambda shard: (shard.rank, shard.number))
    atomic_write(paths.dataset_info, _to_json(info_content(ordered, digests, description)))
    atomic_write(paths.state, _to_json(state_content(ordered, fingerprint, digests)))


class ShardLike(Protocol):
    """What the metadata says of a shard, or makes its fingerprint of."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def xxh3(self) -> str: ...


def info_content(shards: Sequence[ShardLike], digests: Digests, description: str = "") -> dict[str, Any]:
    """What ``dataset_info.json`` holds."""
    num_bytes = sum(shard.size for shard in shards)
    return {
        "citation": "",
        "dataset_size": num_bytes,
        "description": description,
        "features": features(),
        "homepage": "",
        "license": "",
        "splits": {"train": {"name": "train", "num_bytes": num_bytes, "num_examples": digests.num_rows}},
    }


def state_content(shards: Sequence[ShardLike], fingerprint: str, digests: Digests) -> dict[str, Any]:
    """What ``state.json`` holds for these shards, in this order; ``fingerprint`` is the plan's."""
    return {
        "_data_files": [{"filename": shard.name} for shard in shards],
        "_fingerprint": dataset_fingerprint(shards, fingerprint, digests),
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }


def dataset_fingerprint(shards: Sequence[ShardLike], fingerprint: str, digests: Digests) -> str:
    """``_fingerprint`` of state.json: 16 hexadecimal digits, as ``datasets`` makes them. ``fingerprint`` is the plan's."""
    content = [fingerprint, digests.full_hex, str(digests.num_rows), *(shard.xxh3 for shard in shards)]
    return xxhash.xxh3_64_hexdigest("\n".join(content).encode())


def _to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
