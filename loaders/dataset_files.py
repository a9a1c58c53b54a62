"""``DatasetFiles``: the shards of a finished output folder, memory-mapped, and row N of them.

Row N is the one that ``datasets.load_from_disk`` gives: shards in state.json's order, blocks in file order. Nothing
but message headers is read until a column is touched, so walking 9,000 blocks takes well under a second and
memory stays flat; each batch is dropped when the next one is read (keeping one costs about 20 kB).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ..core.errors import OutputError
from ..core.paths import OutputPaths
from .row_view import RowView


@dataclass(frozen=True, slots=True)
class Block:
    """One record batch as it lies in a shard."""

    shard: str
    """File name."""
    number: int
    """Position in its shard."""
    first_row: int
    """Number of its first row in the dataset."""
    batch: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class DatasetFiles:
    """The shards of one finished dataset."""

    paths: OutputPaths
    shards: tuple[Path, ...]

    @classmethod
    def open(cls, folder: Path) -> "DatasetFiles":
        """Read ``folder``'s state.json. Raises OutputError if there is none or a shard that it names is missing."""
        paths = OutputPaths(folder)
        try:
            state = json.loads(paths.state.read_bytes())
            shards = tuple(folder / entry["filename"] for entry in state["_data_files"])
        except FileNotFoundError:
            raise _not_finished(paths) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(
                f"{paths.state} cannot be read: {error}", fix="the same `prep svs` command writes it anew"
            ) from error
        for shard in shards:
            if not shard.is_file():
                raise OutputError(f"{shard} is missing, but {paths.state.name} names it", why="rows would be lost")
        return cls(paths, shards)

    def blocks(self) -> Iterator[Block]:
        """All blocks in the dataset's order. Raises OutputError for a shard that is no Arrow stream."""
        first_row = 0
        for shard in self.shards:
            for number, batch in enumerate(_batches(shard)):
                yield Block(shard.name, number, first_row, batch)
                first_row += batch.num_rows

    def row(self, number: int) -> RowView:
        """Row ``number``, counted from 0. Raises OutputError if there is no such row."""
        num_rows = 0
        for block in self.blocks():
            num_rows = block.first_row + block.batch.num_rows
            if block.first_row <= number < num_rows:
                return RowView(number, block.shard, block.number, block.batch.slice(number - block.first_row, 1))
        raise OutputError(f"{self.paths.root} has no row {number}", why=f"it has {num_rows:,} rows, numbered from 0")


def _batches(shard: Path) -> Iterator[pa.RecordBatch]:
    try:
        with pa.memory_map(str(shard)) as source, pa.ipc.open_stream(source) as reader:
            yield from reader
    except (pa.ArrowInvalid, OSError) as error:
        raise OutputError(
            f"{shard} is no Arrow stream: {error}", fix="run the same `prep svs` command again"
        ) from error


def _not_finished(paths: OutputPaths) -> OutputError:
    if paths.work.is_dir():
        return OutputError(
            f"{paths.root} holds no finished dataset: {paths.state.name} is missing",
            why="a run writes it at its end",
            fix="let the same `prep svs` command finish",
        )
    return OutputError(
        f"{paths.root} is not an output folder of prep: it has no {paths.state.name}",
        fix="name the output_dir of a `prep svs` run",
    )
