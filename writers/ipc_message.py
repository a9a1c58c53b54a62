"""The header of an Arrow IPC message: where it and its body lie, read without the body.

A message is ``FFFFFFFF``, the length of its metadata (int32), the metadata (a flatbuffer ``Message``, padded to 8
bytes) and the body. pyarrow hands out a message only together with its body, and from a map, where a page that the disk
can't deliver kills the process; reading the five fields needed here out of the flatbuffer takes 20 us and as many
kilobytes as a block's facts have. The layout is that of Arrow's ``Message.fbs``, format version 5.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Read = Callable[[int, int], bytes]
"""(offset, length) -> bytes; fewer where the file ends."""

SCHEMA = 1
RECORD_BATCH = 3

_PREFIX = struct.Struct("<II")
_CONTINUATION = 0xFFFFFFFF


class HeaderError(ValueError):
    """The bytes at ``offset`` of the file are no message, or the file ends within it."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageHeader:
    """What a message says of itself; offsets and lengths in bytes of the file."""

    offset: int
    kind: int
    """``SCHEMA``, ``RECORD_BATCH`` or another of Arrow's ``MessageHeader`` union."""
    body_offset: int
    body_length: int
    num_rows: int
    """0 unless it is a record batch."""
    custom_metadata: Mapping[str, str]

    @property
    def end(self) -> int:
        """Offset of the next message."""
        return self.body_offset + self.body_length


def walk_headers(read: Read, size: int) -> Iterator[MessageHeader]:
    """The messages of a stream file of ``size`` bytes, up to its end mark.

    Raises HeaderError at the first thing that is neither a whole message nor the end mark.
    """
    offset = 0
    while (header := read_header(read, offset, size)) is not None:
        yield header
        offset = header.end


def read_header(read: Read, offset: int, size: int) -> MessageHeader | None:
    """The message at ``offset``, or None if the end mark stands there. Raises HeaderError."""
    prefix = read(offset, _PREFIX.size)
    if len(prefix) < _PREFIX.size:
        raise HeaderError(offset, "the stream ends without an end mark")
    continuation, length = _PREFIX.unpack(prefix)
    if continuation != _CONTINUATION:
        raise HeaderError(offset, f"{prefix.hex(' ')} is not the beginning of a message")
    if length == 0:
        return None
    if length > size - offset - _PREFIX.size:
        raise HeaderError(offset, f"a message header of {length:,} bytes goes beyond the end of the file")
    header = parse_header(read(offset, _PREFIX.size + length), offset)
    if header.end > size:
        raise HeaderError(offset, f"the message would end at {header.end:,}, the file ends at {size:,}")
    return header


def parse_header(data: bytes | memoryview, offset: int = 0) -> MessageHeader:
    """The message that ``data`` begins with, its whole header at least; ``offset`` is where it lies in the file.

    Raises HeaderError.
    """
    try:
        continuation, length = _PREFIX.unpack_from(data)
        metadata = bytes(data[_PREFIX.size : _PREFIX.size + length])
        if continuation != _CONTINUATION or len(metadata) != length:
            raise HeaderError(offset, "not the beginning of a message")
        message = _Table(metadata, _u32(metadata, 0))
        kind = message.number(1, "<B")
        return MessageHeader(
            offset=offset,
            kind=kind,
            body_offset=offset + _PREFIX.size + length,
            body_length=_length(message.number(3, "<q")),
            num_rows=_length(message.table(2).number(0, "<q")) if kind == RECORD_BATCH else 0,
            custom_metadata={pair.text(0): pair.text(1) for pair in message.tables(4)},
        )
    except (struct.error, UnicodeDecodeError, _OutOfBounds) as error:
        raise HeaderError(offset, f"a message header that can't be read: {error}") from error


@dataclass(frozen=True, slots=True)
class BodyLayout:
    """Where the parts of a record batch lie in its message's body; arrays and buffers in the order of Arrow's format."""

    arrays: tuple[tuple[int, int], ...]
    """(length, nulls)"""
    buffers: tuple[tuple[int, int], ...]
    """(offset in the body, length)"""
    is_compressed: bool


def parse_body_layout(data: bytes | memoryview, offset: int = 0) -> BodyLayout:
    """The layout of the record batch that ``data`` begins with, its whole header at least. Raises HeaderError."""
    try:
        length = _PREFIX.unpack_from(data)[1]
        metadata = bytes(data[_PREFIX.size : _PREFIX.size + length])
        batch = _Table(metadata, _u32(metadata, 0)).table(2)
        return BodyLayout(batch.pairs(1), batch.pairs(2), batch.has(3))
    except (struct.error, _OutOfBounds) as error:
        raise HeaderError(offset, f"a record batch's layout that can't be read: {error}") from error


class _OutOfBounds(Exception):
    """A flatbuffer's offset points out of it."""


def _length(value: int) -> int:
    if value < 0:
        raise _OutOfBounds(f"a length of {value}")
    return value


def _u32(data: bytes, at: int) -> int:
    return _unpack("<I", data, at)


def _unpack(kind: str, data: bytes, at: int) -> int:
    if not 0 <= at < len(data):  # a negative offset would count from the end
        raise _OutOfBounds(f"an offset of {at} in {len(data)} bytes")
    return struct.unpack_from(kind, data, at)[0]


class _Table:
    """A table of a flatbuffer; fields are numbered as in the schema file, a union takes two numbers."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position
        self._vtable = position - _unpack("<i", data, position)
        self._vtable_size = _unpack("<H", data, self._vtable)

    def number(self, field: int, kind: str) -> int:
        """0 if it is absent: the default of every field read here."""
        at = self._field(field)
        return 0 if at is None else _unpack(kind, self._data, at)

    def table(self, field: int) -> "_Table":
        at = self._field(field)
        if at is None:
            raise _OutOfBounds(f"no field {field}")
        return _Table(self._data, at + _u32(self._data, at))

    def tables(self, field: int) -> Iterator["_Table"]:
        at = self._field(field)
        if at is not None:
            vector = at + _u32(self._data, at)
            for slot in range(vector + 4, vector + 4 + 4 * _u32(self._data, vector), 4):
                yield _Table(self._data, slot + _u32(self._data, slot))

    def has(self, field: int) -> bool:
        return self._field(field) is not None

    def pairs(self, field: int) -> tuple[tuple[int, int], ...]:
        """A vector of structs of two int64; empty if it is absent."""
        at = self._field(field)
        if at is None:
            return ()
        vector = at + _u32(self._data, at)
        count = _u32(self._data, vector)
        values = struct.unpack_from(f"<{2 * count}q", self._data, vector + 4)
        return tuple(zip(values[::2], values[1::2], strict=True))

    def text(self, field: int) -> str:
        at = self._field(field)
        if at is None:
            return ""
        start = at + _u32(self._data, at)
        end = start + 4 + _u32(self._data, start)
        if end > len(self._data):
            raise _OutOfBounds(f"a text up to {end} in {len(self._data)} bytes")
        return self._data[start + 4 : end].decode()

    def _field(self, number: int) -> int | None:
        slot = 4 + 2 * number
        if slot >= self._vtable_size:
            return None
        distance = _unpack("<H", self._data, self._vtable + slot)
        return self._position + distance if distance else None
