"""Views on a block's columns that know where their bytes lie, and what a check of rows hands back.

A check makes one mask over all values of a block and finds the rows and the first byte only if something is wrong, so
a good block costs a few passes of numpy over its buffers: no row is ever a Python object.

R rows of a block, V values of all rows together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .verify_report import DamageCode

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows of a block that break one rule."""

    code: DamageCode
    rows: Indices
    """Positions in the block, ascending."""
    address: int | None
    """In memory, of the first value that breaks it."""
    message: str


@dataclass(frozen=True, slots=True)
class ScalarColumn:
    """A column of numbers: one value a row."""

    name: str
    values: npt.NDArray[Any]
    """[R]"""

    @classmethod
    def of(cls, batch: pa.RecordBatch, name: str) -> "ScalarColumn":
        """Of a numeric column without nulls."""
        return cls(name, batch.column(name).to_numpy(zero_copy_only=True))

    def wrong(self, code: DamageCode, mask: Mask, message: str) -> Iterator[Finding]:
        """A finding if ``mask`` [R] is true anywhere; ``{value}`` in the message becomes the first value's text."""
        if mask.any():
            rows = np.flatnonzero(mask)
            yield Finding(code, rows, _address(self.values, rows[0]), _text(message, self.name, self.values[rows[0]]))


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A list column: bounds over one flat array of values."""

    name: str
    bounds: Indices
    """[R + 1], the first is 0."""
    items: pa.Array
    """[V]"""

    @classmethod
    def of(cls, batch: pa.RecordBatch, name: str) -> "ListColumn":
        """Of a list column without nulls."""
        return cls.of_array(batch.column(name), name)

    @classmethod
    def of_array(cls, array: pa.Array, name: str) -> "ListColumn":
        """Of a list array without nulls."""
        bounds = array.offsets.to_numpy().astype(np.int64)
        return cls(name, bounds - bounds[0], array.flatten())

    @property
    def lengths(self) -> Indices:
        """[R]"""
        return np.diff(self.bounds)

    @property
    def starts(self) -> Indices:
        """[R]"""
        return self.bounds[:-1]

    @property
    def values(self) -> npt.NDArray[Any]:
        """[V], without a copy; for numbers only."""
        return self.items.to_numpy(zero_copy_only=True)

    def rows_of(self, positions: Indices) -> Indices:
        """Rows that hold these values, each once."""
        return np.unique(np.searchsorted(self.bounds, positions, side="right") - 1)

    def wrong(self, code: DamageCode, mask: Mask, message: str) -> Iterator[Finding]:
        """A finding if ``mask`` [V] is true anywhere; ``{value}`` in the message becomes the first value's text."""
        if mask.any():
            at = np.flatnonzero(mask)
            value = self.items[int(at[0])].as_py()
            yield Finding(
                code, self.rows_of(at), item_address(self.items, int(at[0])), _text(message, self.name, value)
            )

    def wrong_length(self, code: DamageCode, mask: Mask, message: str) -> Iterator[Finding]:
        """A finding if ``mask`` [R] is true anywhere; ``{value}`` is the first wrong length."""
        if mask.any():
            rows = np.flatnonzero(mask)
            address = item_address(self.items, int(self.bounds[rows[0]]))
            yield Finding(code, rows, address, _text(message, self.name, self.lengths[rows[0]]))


def item_address(items: pa.Array, position: int) -> int | None:
    """Of a value, or of a text's first byte; None behind the last one."""
    if position >= len(items):
        return None
    buffers = items.buffers()
    if pa.types.is_string(items.type):
        offsets = np.frombuffer(buffers[1], np.int32)
        return buffers[2].address + int(offsets[items.offset + position]) if buffers[2] is not None else None
    if pa.types.is_list(items.type):
        return buffers[1].address + 4 * (items.offset + position)
    return buffers[1].address + (items.offset + position) * (items.type.bit_width // 8)


def _address(values: npt.NDArray[Any], position: int) -> int:
    return int(values.__array_interface__["data"][0]) + int(position) * values.itemsize


def _text(message: str, name: str, value: object) -> str:
    return message.replace("{name}", name).replace("{value}", str(value))
