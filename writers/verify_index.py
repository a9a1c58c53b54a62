"""index.arrow held against the shards: which shards, where blocks lie, and what it says of every row.

The quick check compares places and checksums; the full one scans the shards' small columns once more (1 % of their
bytes) and compares every value. A damaged shard is passed over: it is named already, and its repair writes the index.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..core.digest import Digests
from ..core.errors import OutputError
from ..core.index import Index
from .hf_dataset import dataset_fingerprint
from .index_file import PLAIN_ROW_FACTS, BlockLine
from .index_folder import known_blocks, try_index
from .index_scan import ScanRules, ShardToScan, scan_shard
from .provenance import ShardFacts
from .verify_expect import Expected
from .verify_report import DamageCode, Problem
from .verify_shard import ShardResult, read_at


def index_problems(
    expected: Expected, results: Sequence[ShardResult], digests: Digests | None, *, quick: bool
) -> Iterator[Problem]:
    """What is wrong with the index of a finished dataset; nothing, if the run has not finished.

    ``digests`` of all rows, if they are known: the fingerprint of the dataset is made of them.
    """
    if expected.state is None and expected.provenance is None:
        return
    check = _IndexCheck(expected, [result for result in results if not result.shard.is_open])
    yield from (check.problem(*found) for found in check.run(digests, quick))


class _IndexCheck:
    def __init__(self, expected: Expected, results: Sequence[ShardResult]) -> None:
        self._expected, self._results = expected, results

    def problem(self, message: str, shard: str = "") -> Problem:
        name = self._expected.paths.index.name
        return Problem(code=DamageCode.INDEX, shard=name, message=f"{shard}: {message}" if shard else message)

    def run(self, digests: Digests | None, quick: bool) -> Iterator[tuple[str, str] | tuple[str]]:
        index = try_index(self._expected.paths.index)
        if isinstance(index, str):
            yield (index,)
            return
        listed = [(shard.name, shard.size) for shard in index.header.shards]
        if listed != [(result.shard.name, self._size(result)) for result in self._results]:
            yield ("it is about other shards than the dataset has",)
            return
        if digests is not None and self._fingerprint(digests) not in (None, index.header.fingerprint):
            yield ("it belongs to another state of this dataset",)
        for number, result in enumerate(self._results):
            blocks = np.flatnonzero(index.block_shards == number).tolist()
            if result.damaged is None and (message := self._compare(index, blocks, result, quick)):
                yield (message, result.shard.name)

    def _size(self, result: ShardResult) -> int:
        return result.size if result.shard.size is None else result.shard.size

    def _fingerprint(self, digests: Digests) -> str | None:
        shards = [
            ShardFacts(name=result.shard.name, size=0, rows=0, xxh3=result.shard.xxh3 or result.xxh3 or "")
            for result in self._results
        ]
        if self._expected.fingerprint is None or not all(shard.xxh3 for shard in shards):
            return None
        return dataset_fingerprint(shards, self._expected.fingerprint, digests)

    def _compare(self, index: Index, blocks: Sequence[int], result: ShardResult, quick: bool) -> str | None:
        places = [(int(index.offsets[block]), int(index.lengths[block])) for block in blocks]
        if places != [(block.place.offset, block.length) for block in result.blocks]:
            return "blocks lie elsewhere than it says"
        for block, record in zip(blocks, (each.record for each in result.shard.blocks or ()), strict=False):
            if record is not None and record.xxh3 != index.checksum(block):
                return "a block has another checksum than it says"
        return None if quick else self._compare_rows(index, blocks, result)

    def _compare_rows(self, index: Index, blocks: Sequence[int], result: ShardResult) -> str | None:
        known = known_blocks(self._expected)[result.shard.name]
        shard = ShardToScan(name=result.shard.name, size=result.size, known=known)
        try:
            with open(result.shard.path, "rb", buffering=0) as file:
                scan = scan_shard(
                    shard,
                    lambda offset, length: read_at(file.fileno(), offset, length),
                    ScanRules(),  # patches are counted: provenance.json may be what is wrong
                )
        except (OSError, OutputError) as error:
            return f"it can't be compared: {error}"
        for number, (block, line) in enumerate(zip(blocks, scan.lines, strict=True)):
            if (what := _difference(line_of(index, block), line)) is not None:
                return f"block {number}: {what} is not what the shard says"
        return None


def _difference(found: BlockLine, wanted: BlockLine) -> str | None:
    """The first field or column that differs."""
    for name in ("offset", "length", "checksum", "chunk"):
        if getattr(found, name) != getattr(wanted, name):
            return name
    columns = zip(PLAIN_ROW_FACTS.names, found.rows.columns, wanted.rows.columns, strict=True)
    return next((name for name, a, b in columns if not a.equals(b)), None)


def line_of(index: Index, block: int) -> BlockLine:
    """The line about ``block``, as it was given to ``IndexBuilder``."""
    row = index.table.slice(block, 1)
    rows = [row.column(name).combine_chunks().flatten().cast(kind) for name, kind in _plain_types()]
    return BlockLine(
        shard=row.column("shard")[0].as_py(),
        offset=int(index.offsets[block]),
        length=int(index.lengths[block]),
        checksum=index.checksum(block),
        chunk=int(index.chunks[block]),
        rows=pa.RecordBatch.from_arrays(rows, schema=PLAIN_ROW_FACTS),
    )


def _plain_types() -> Iterator[tuple[str, pa.DataType]]:
    return zip(PLAIN_ROW_FACTS.names, PLAIN_ROW_FACTS.types, strict=True)
