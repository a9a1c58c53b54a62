"""Rules between blocks: a chunk is in one block, and a (corpus, item) in one row.

Items are compared by 64 bits of their hash: 8 bytes a row, so ten million rows fit in 160 MB with their order, and two
different items are taken for one in about one of 400,000 such datasets.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from .verify_arrow import read_rows
from .verify_block import BlockResult
from .verify_report import DamageCode, Problem
from .verify_shard import ShardResult, read_at

_MAX_NAMED = 20
"""Duplicates that are named; for each one its block is read again."""


def across_problems(results: Sequence[ShardResult]) -> Iterator[Problem]:
    """Chunks and items that are there twice."""
    blocks = [(result, block) for result in results for block in result.blocks]
    firsts: dict[int, BlockResult] = {}
    distinct: list[tuple[ShardResult, BlockResult]] = []
    for result, block in blocks:
        first = firsts.setdefault(block.chunk, block) if block.chunk is not None else block
        if first is block:
            distinct.append((result, block))
            continue
        message = f"its chunk {block.chunk} is also block {first.place.number} of {first.place.shard}"
        yield _problem(DamageCode.BLOCK_TWICE, message, block)
    yield from _duplicate_items([pair for pair in distinct if len(pair[1].item_hashes) and not pair[1].is_damaged])


def _problem(code: DamageCode, message: str, block: BlockResult, row: int | None = None, num_rows: int = 0) -> Problem:
    place = block.place
    return Problem(
        code=code,
        message=message,
        shard=place.shard,
        block=place.number,
        row=row,
        byte_offset=place.offset,
        num_rows=num_rows,
    )


def _duplicate_items(blocks: Sequence[tuple[ShardResult, BlockResult]]) -> Iterator[Problem]:
    """One problem for each block that holds items which came before."""
    if not blocks:
        return
    hashes = np.concatenate([block.item_hashes for _, block in blocks])
    bounds = np.cumsum([0, *(len(block.item_hashes) for _, block in blocks)])
    order = np.argsort(hashes, kind="stable")
    repeated = np.flatnonzero(hashes[order][1:] == hashes[order][:-1]) + 1
    later, before = order[repeated], order[repeated - 1]
    owners = np.searchsorted(bounds, later, side="right") - 1
    for count, number in enumerate(np.unique(owners).tolist()):
        mine = later[owners == number]
        at = int(mine.min())
        earlier = int(before[later == at][0])
        first = int(np.searchsorted(bounds, earlier, side="right")) - 1
        result, block = blocks[number]
        row = at - int(bounds[number])
        place = blocks[first][1].place
        where = f"row {earlier - int(bounds[first])} of block {place.number} of {place.shard}"
        name = _item_name(result, block, row) if count < _MAX_NAMED else "its (corpus, item)"
        others = f" (and {len(mine) - 1:,} more such rows in this block)" if len(mine) > 1 else ""
        message = f"{name} is also {where}{others}"
        yield _problem(DamageCode.DUPLICATE_ITEM, message, block, row, len(mine))


def _item_name(result: ShardResult, block: BlockResult, row: int) -> str:
    with open(result.shard.path, "rb", buffering=0) as file:
        batch = read_rows(pa.py_buffer(read_at(file.fileno(), block.place.offset, block.length)))
    return "/".join(batch.column(name)[row].as_py() for name in ("dataset_name", "item_name"))
