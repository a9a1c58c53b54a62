"""``build_index``: from the shards of a dataset to its index.arrow.

Shards are read in threads, a few ahead of the file that is written, so memory stays flat: 16 shards' lines at most.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from os import O_RDONLY
from os import close as close_file
from os import open as open_file
from pathlib import Path
from typing import Protocol

from ..core.errors import OutputError
from ..core.index import IndexedShard, IndexHeader
from ..core.paths import OutputPaths
from ..core.schema import row_schema
from ..core.units import LatentSpec
from .index_file import IndexBuilder, IndexedRows
from .index_scan import KnownBlock, ScanRules, ShardScan, ShardToScan, scan_shard
from .ipc_message import Read
from .ledger import ClosedShard
from .verify_shard import read_at

MAX_THREADS = 16
"""Most of a scan is waiting for short reads."""


class ShardFiles(Protocol):
    """Where shards lie: a folder, or a remote store."""

    def reader(self, name: str) -> AbstractContextManager[Read]:
        """Reads ranges of the shard ``name``, in one thread. Raises OSError."""
        ...


class FolderOfShards:
    """Shards in a local folder; bytes are read, not mapped: a mapped page that the disk can't deliver kills."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def reader(self, name: str) -> Iterator[Read]:
        descriptor = open_file(self._folder / name, O_RDONLY)
        try:
            yield lambda offset, length: read_at(descriptor, offset, length)
        finally:
            close_file(descriptor)


def build_index(
    files: ShardFiles, shards: Sequence[ShardToScan], rules: ScanRules, fingerprint: str, target: Path
) -> IndexHeader:
    """Write the index of ``shards``, in this order, to ``target``. ``fingerprint`` is state.json's, "" without one.

    Raises OutputError for a shard that is broken or of another schema than the first, DiskError if the disk refuses.
    """
    builder = IndexBuilder()
    first: ShardScan | None = None
    shape: tuple[int, int] | None = None
    for shard, scan in _scans(files, shards, rules):
        first = first or scan
        if not scan.schema.equals(first.schema):
            raise OutputError(
                f"{shard.name} has other columns than {shards[0].name}",
                why="rows of one dataset are read by one schema",
                fix="give each kind of shards a folder of its own",
            )
        if scan.latent_shape is not None and shape not in (None, scan.latent_shape):
            raise OutputError(f"{shard.name} has latents of {scan.latent_shape}, the shards before it of {shape}")
        shape = scan.latent_shape or shape
        for line in scan.lines:
            builder.add(line)
    patch_size, latent_dim = shape or (1, 1)
    rows = IndexedRows(
        schema=(first.schema if first else row_schema()).remove_metadata(),
        patch_size=patch_size,
        latent_dim=latent_dim,
    )
    return builder.write(target, [IndexedShard(shard.name, shard.size) for shard in shards], fingerprint, rows)


def write_index(paths: OutputPaths, shards: Sequence[ClosedShard], fingerprint: str, spec: LatentSpec) -> None:
    """Write index.arrow of a finished run: places and checksums are held against the journal's, no latent is read.

    ``fingerprint`` is the one that state.json will have. Raises OutputError, DiskError.
    """
    build_index(
        FolderOfShards(paths.root),
        [
            ShardToScan(
                name=shard.name,
                size=shard.size,
                known={
                    block.record.offset: KnownBlock(block.record.length, block.record.xxh3) for block in shard.blocks
                },
            )
            for shard in sorted(shards, key=lambda shard: (shard.rank, shard.number))
        ],
        ScanRules(spec=spec),
        fingerprint,
        paths.index,
    )


def _scans(
    files: ShardFiles, shards: Sequence[ShardToScan], rules: ScanRules
) -> Iterator[tuple[ShardToScan, ShardScan]]:
    def scan(shard: ShardToScan) -> ShardScan:
        try:
            with files.reader(shard.name) as read:
                return scan_shard(shard, read, rules)
        except OSError as error:
            raise OutputError(f"{shard.name} can't be read: {error}") from error

    with ThreadPoolExecutor(min(MAX_THREADS, max(1, len(shards)))) as pool:
        rest = iter(shards)
        ahead: list[tuple[ShardToScan, Future[ShardScan]]] = [
            (shard, pool.submit(scan, shard)) for shard in islice(rest, MAX_THREADS)
        ]
        try:
            while ahead:
                shard, future = ahead.pop(0)
                yield shard, future.result()
                ahead += [(shard, pool.submit(scan, shard)) for shard in islice(rest, 1)]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
