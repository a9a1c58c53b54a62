"""Writes a plan's file: gathers the clips in plan order, fingerprints them, seals the file, gives it its name.

Chunks are gathered many at a time, since the clips of any chunk come from the whole of the spill: a 24th of the clips, so
that the spill is read 24 times however large the run is, but at least ``GATHER_ROWS``. That takes some 100 MB up to a
million clips, and 700 MB for ten million, whose 7 GB of spill should fit in the machine's page cache.
"""

import os
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .batches import Int64s
from .checksum import write_checksum
from .clip_table import REFUSED_SCHEMA, ClipTable
from .cut import Cut
from .fingerprint import Fingerprint
from .plan import BATCH_FIELD, PLAN_SCHEMA, SEAL_KEY, PlanHead

GATHER_ROWS = 32_768
MAX_GATHERINGS = 24


def write_plan(path: Path, head: PlanHead, table: ClipTable, cut: Cut) -> str:
    """Write the plan to ``path``, replacing what is there only when it is complete; returns the fingerprint.

    Raises ``OSError`` or ``DiskError`` for a full or read-only disk; the temporary file beside ``path`` is removed then.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        fingerprint = _write(temporary, head, table, cut)
        write_checksum(temporary, path)
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return fingerprint


def _write(path: Path, head: PlanHead, table: ClipTable, cut: Cut) -> str:
    fingerprint = Fingerprint()
    fingerprint.text(head.identity.to_json())
    fingerprint.text(head.limits.to_json())
    if head.extension is not None:
        fingerprint.text(head.extension.to_json())
    with path.open("wb") as file:
        with pa.ipc.new_file(file, PLAN_SCHEMA.with_metadata(head.to_metadata())) as writer:
            for batch in chain(_chunks(table, cut), _refused(table)):
                fingerprint.batch(batch)
                writer.write_batch(batch)
                del batch  # a slice of what was gathered, which the next gathering must not find in memory
            seal = fingerprint.hexdigest()
            writer.write_batch(_with_columns([], [], 0), custom_metadata={SEAL_KEY: seal})
        file.flush()
        os.fsync(file.fileno())
    return seal


def _chunks(table: ClipTable, cut: Cut) -> Iterator[pa.RecordBatch]:
    """One record batch of ``PLAN_SCHEMA`` per chunk."""
    numbers, starts = cut.batch, cut.chunk_starts
    rows_at_once = max(GATHER_ROWS, len(numbers) // MAX_GATHERINGS)
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + rows_at_once, side="right")) - 1)
        low, high = int(starts[first]), int(starts[last])
        yield from _split(table.gather(cut.order[low:high]), numbers[low:high], starts[first : last + 1] - low)
        first = last


def _split(clips: pa.RecordBatch, numbers: npt.NDArray[np.int32], starts: Int64s) -> Iterator[pa.RecordBatch]:
    for start, stop in pairwise(starts.tolist()):
        chunk = clips.slice(start, stop - start)
        batch_column = pa.array(numbers[start:stop], BATCH_FIELD.type)
        yield _with_columns([*chunk.columns, batch_column], [*chunk.schema.names, BATCH_FIELD.name], len(chunk))


def _refused(table: ClipTable) -> Iterator[pa.RecordBatch]:
    for batch in table.refused():
        yield _with_columns(batch.columns, REFUSED_SCHEMA.names, batch.num_rows)


def _with_columns(columns: list[pa.Array], names: list[str], num_rows: int) -> pa.RecordBatch:
    """A record batch of ``PLAN_SCHEMA`` with these columns, all others null."""
    given = dict(zip(names, columns, strict=True))
    arrays = [given[field.name] if field.name in given else pa.nulls(num_rows, field.type) for field in PLAN_SCHEMA]
    return pa.record_batch(arrays, schema=PLAN_SCHEMA)


def _sync_folder(folder: Path) -> None:
    """Make the rename durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
