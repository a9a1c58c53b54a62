"""``Fingerprint``: one hash over the content of a plan, independent of how Arrow lays it out in memory.

Each column is hashed as its lengths (lists and strings, int32) followed by its flat values, so that slices, spare bytes
and offsets that do not begin at zero make no difference; the number of rows of each record batch goes in first, so
chunk borders count. File sizes and times stay out, since a copied corpus is the same corpus, and so does the text of
faults, which may quote the operating system.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

NOT_CONTENT = frozenset({"file_size", "mtime_ns", "fault_message"})
"""Columns that may differ between two plans of one content."""


class Fingerprint:
    """Feeds texts and record batches to xxh3-128."""

    def __init__(self) -> None:
        self._hash = xxhash.xxh3_128()

    def text(self, text: str) -> None:
        data = text.encode()
        self._hash.update(len(data).to_bytes(8, "little"))
        self._hash.update(data)

    def batch(self, batch: pa.RecordBatch) -> None:
        """Columns that are null throughout stand for their absence and are left out, as are ``NOT_CONTENT``."""
        self._hash.update(batch.num_rows.to_bytes(8, "little"))
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name not in NOT_CONTENT and column.null_count < len(column):
                self.text(name)
                self._array(column)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def _array(self, array: pa.Array) -> None:
        assert array.null_count == 0, "a plan's content has no nulls"
        if pa.types.is_list(array.type):
            self._numbers(pc.call_function("list_value_length", [array]))
            self._array(array.flatten())
        elif pa.types.is_string(array.type):
            self._numbers(pc.call_function("binary_length", [array]))
            self._hash.update(_text_bytes(array))
        else:
            self._numbers(array)

    def _numbers(self, array: pa.Array) -> None:
        self._hash.update(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)).data)


def _text_bytes(array: pa.StringArray) -> memoryview:
    """The characters of all strings, one after another."""
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)
    return memoryview(data)[int(ends[array.offset]) : int(ends[array.offset + len(array)])]
