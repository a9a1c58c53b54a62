"""Columns of a record batch read without the others: out of its header and a few byte ranges.

A row's latents are 98 % of its bytes, and what the index needs is 150 bytes a row. Byte ranges are read instead of
mapped (a mapped page that the disk can't deliver kills the process), and whoever reads may be remote.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from .ipc_message import BodyLayout, HeaderError, MessageHeader, Read, parse_body_layout

_GAP = 1 << 16
"""Ranges that lie no further apart are read as one: 64 KiB take less time than another request, also on a disk."""

_TYPES_WITH_OFFSETS = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)


class _Unreadable(Exception):
    """A column of a type that is not taken apart here."""


def read_columns(read: Read, header: MessageHeader, schema: pa.Schema, names: Sequence[str]) -> dict[str, pa.Array]:
    """The columns ``names`` of the record batch that ``header`` is about.

    A compressed batch, and one with types of which only Arrow knows the layout, is read whole. Raises OSError,
    HeaderError, and pa.ArrowException or ValueError for what Arrow can't read.
    """
    try:
        layout = parse_body_layout(read(header.offset, header.body_offset - header.offset), header.offset)
        if layout.is_compressed:
            raise _Unreadable
        return _Columns(read, header, layout, schema).read(names)
    except _Unreadable:
        batch = read_batch(read, header, schema)
        return {name: batch.column(name) for name in names}


def read_batch(read: Read, header: MessageHeader, schema: pa.Schema) -> pa.RecordBatch:
    """The whole record batch. Raises OSError, and pa.ArrowException or ValueError for what Arrow can't read."""
    data = pa.py_buffer(read(header.offset, header.end - header.offset))
    return pa.ipc.read_record_batch(pa.ipc.read_message(data), schema)


class _Columns:
    def __init__(self, read: Read, header: MessageHeader, layout: BodyLayout, schema: pa.Schema) -> None:
        self._read, self._header, self._layout, self._schema = read, header, layout, schema

    def read(self, names: Sequence[str]) -> dict[str, pa.Array]:
        places: dict[str, tuple[int, int]] = {}
        array = buffer = 0
        for field in self._schema:
            places[field.name] = (array, buffer)
            arrays, buffers = _parts(field.type)
            array, buffer = array + arrays, buffer + buffers
        if (array, buffer) != (len(self._layout.arrays), len(self._layout.buffers)):
            raise HeaderError(self._header.offset, "the record batch has not the parts of its schema's columns")
        wanted = [
            number
            for name in names
            for number in range(places[name][1], places[name][1] + _parts(self._schema.field(name).type)[1])
        ]
        data = self._buffers(wanted)
        return {name: self._array(self._schema.field(name).type, *places[name], data) for name in names}

    def _buffers(self, numbers: Sequence[int]) -> dict[int, pa.Buffer]:
        data: dict[int, pa.Buffer] = {}
        for start, end, members in _merged({number: self._layout.buffers[number] for number in numbers}):
            if end > self._header.body_length:
                raise HeaderError(self._header.offset, "a buffer goes beyond its message")
            piece = pa.py_buffer(self._read(self._header.body_offset + start, end - start))
            if piece.size != end - start:
                raise HeaderError(self._header.offset, "the file ends within the message")
            for number in members:
                offset, length = self._layout.buffers[number]
                data[number] = piece.slice(offset - start, length)
        return data

    def _array(self, kind: pa.DataType, array: int, buffer: int, data: Mapping[int, pa.Buffer]) -> pa.Array:
        length, nulls = self._layout.arrays[array]
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        own = 2 if is_list else _parts(kind)[1]
        buffers = [data[number] if data[number].size else None for number in range(buffer, buffer + own)]
        children = [self._array(kind.value_type, array + 1, buffer + 2, data)] if is_list else None
        if buffers[-1] is None:  # of no rows, or of nothing but empty texts
            buffers[-1] = pa.py_buffer(b"")
        if not length:
            return pa.array([], kind)
        made = pa.Array.from_buffers(kind, length, buffers, nulls, children=children)
        made.validate(full=True)
        return made


def _merged(ranges: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, int, list[int]]]:
    """(start, end, numbers of the ranges within), rising."""
    start = end = -1
    members: list[int] = []
    for number, (offset, length) in sorted(ranges.items(), key=lambda pair: pair[1]):
        if members and offset > end + _GAP:
            yield start, end, members
            members = []
        if not members:
            start, end = offset, offset
        end = max(end, offset + length)
        members.append(number)
    if members:
        yield start, end, members


def _parts(kind: pa.DataType) -> tuple[int, int]:
    """(arrays, buffers) that a column of this type consists of."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        arrays, buffers = _parts(kind.value_type)
        return 1 + arrays, 2 + buffers
    if pa.types.is_fixed_size_list(kind):
        arrays, buffers = _parts(kind.value_type)
        return 1 + arrays, 1 + buffers
    if any(is_kind(kind) for is_kind in _TYPES_WITH_OFFSETS):
        return 1, 3
    if pa.types.is_primitive(kind) or pa.types.is_boolean(kind):
        return 1, 2
    raise _Unreadable
