"""Bytes of a block's body that belong to no buffer. Arrow pads every buffer to 8 bytes with zeros."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa


def first_dirty_byte(batch: pa.RecordBatch, body: pa.Buffer) -> int | None:
    """Address of the first byte of ``body`` that is in no buffer of ``batch`` and is not zero.

    None if there is none, or if the buffers don't lie in ``body`` (a compressed body).
    """
    reached = body.address
    for start, end in sorted(_spans(batch)):
        if start < reached or end > body.address + body.size:
            return None
        if (dirty := _first_not_zero(body, reached, start)) is not None:
            return dirty
        reached = end
    return _first_not_zero(body, reached, body.address + body.size)


def _spans(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    for column in batch.columns:
        for buffer in column.buffers():
            if buffer is not None and buffer.size:
                yield buffer.address, buffer.address + buffer.size


def _first_not_zero(body: pa.Buffer, start: int, end: int) -> int | None:
    gap = np.frombuffer(body.slice(start - body.address, end - start), np.uint8)
    return start + int(np.argmax(gap != 0)) if gap.any() else None
