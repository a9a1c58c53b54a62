"""From the bytes of a block to a record batch that is safe to read, or what Arrow says against it.

Offsets, counts and UTF-8 are validated in full, then nulls are refused: what comes after may trust every buffer.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ..core.digest import refuse_nulls
from ..core.schema import row_schema
from .verify_findings import Finding
from .verify_report import DamageCode

ARROW_ERRORS = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for bytes that it can't read."""


def read_rows(data: pa.Buffer) -> pa.RecordBatch:
    """The record batch over the bytes of ``data``, without a copy; nothing in it is validated. Raises ARROW_ERRORS."""
    return pa.ipc.read_record_batch(pa.ipc.read_message(data), row_schema())


def arrow_findings(batch: pa.RecordBatch) -> Iterator[Finding]:
    """Columns that break Arrow's rules, and nulls; if there is one, the batch is not safe to read."""
    for name in batch.schema.names:
        array = batch.column(name)
        if (error := _invalid(array)) is not None:
            rows = [row for row in range(len(array)) if _invalid(array.slice(row, 1)) is not None]
            address = _offset_address(array, rows[0]) if rows else None
            yield Finding(DamageCode.BLOCK_INVALID, np.array(rows, np.int64), address, f"{name}: {error}")
        elif (error := _nulls(array, name)) is not None:
            rows = [row for row in range(len(array)) if _nulls(array.slice(row, 1), name) is not None]
            yield Finding(DamageCode.ROW_NULL, np.array(rows, np.int64), None, error)


def _invalid(array: pa.Array) -> str | None:
    try:
        array.validate(full=True)
    except ARROW_ERRORS as error:
        return str(error)
    return _odd_size(array)


def _odd_size(array: pa.Array) -> str | None:
    """Arrow lets a buffer be longer than needed; it is not by a part of a value, unless its header is damaged."""
    if pa.types.is_boolean(array.type):
        return None
    has_offsets = _has_offsets(array)
    width = 4 if has_offsets else array.type.bit_width // 8
    buffer = array.buffers()[1]
    if buffer is not None and buffer.size % width:
        return f"a buffer of {buffer.size} bytes for values of {width}"
    return _odd_size(array.values) if isinstance(array, pa.ListArray) else None


def _has_offsets(array: pa.Array) -> bool:
    return pa.types.is_list(array.type) or pa.types.is_string(array.type)


def _nulls(array: pa.Array, name: str) -> str | None:
    try:
        refuse_nulls(array, name)
    except ValueError as error:
        return str(error)
    return None


def _offset_address(array: pa.Array, row: int) -> int | None:
    """Where the offset of a list or a text lies; other columns have none."""
    buffer = array.buffers()[1] if _has_offsets(array) else None
    return None if buffer is None else buffer.address + 4 * row
