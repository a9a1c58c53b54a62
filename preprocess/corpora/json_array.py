"""An annotation file that is one JSON array, read an item at a time.

The array is split into ``msgspec.Raw`` items over the mapped file and each item is decoded when its turn comes, so a
bad item costs one clip, and a 1 GB file of 1.2 million items takes 7 s and 1 GB (mapped pages included) where building
all objects takes 32 s and 7 GB.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from ...core.errors import CorpusError
from .json_text import UTF8_BOM, Buffer, json_problem

MAP_FROM_BYTES = 64 << 20
"""Smaller files are read: a mapped file that somebody shortens meanwhile ends the process."""

HALF_CHARACTER = b"\xff" * 6
"""Stands for a lone surrogate escape such as \\udcff, which Python writes for file names that are no UTF-8."""

_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""An escaped pair; or, as group 1, half of one; or any other escape."""

T = TypeVar("T")


def read_array(path: Path) -> Iterator[msgspec.Raw]:
    """The items of the JSON array in ``path``, each still JSON text.

    Raises CorpusError, before the first item, with line, column and what to do, if the file can't be read, isn't JSON
    or holds something else than an array.
    """
    data = _load(path)
    try:
        items = _split(data)
    except msgspec.DecodeError as error:
        problem = json_problem(data, error, "an array")
        raise CorpusError(
            f"{path}, line {problem.line}, column {problem.column}: {problem.text}",
            why=f"near: {problem.excerpt}" if problem.excerpt else "",
            fix=problem.fix,
        ) from error
    return iter(items)


def decode_json(decoder: msgspec.json.Decoder[T], data: msgspec.Raw | Buffer | memoryview) -> T:
    """``decoder.decode``, with a ``DecodeError`` also for text that is nested too deeply or holds half a character."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        if HALF_CHARACTER not in bytes(data):
            raise
        raise msgspec.DecodeError("it holds half of a character, a lone \\ud8.. or \\udc.. escape") from error


def _split(data: Buffer) -> list[msgspec.Raw]:
    """The array's items. Halves of characters are marked, so that they spoil their own item alone."""
    body = memoryview(data)[3:] if data[:3] == UTF8_BOM else data
    try:
        return decode_json(_ARRAY, body)
    except msgspec.DecodeError as error:
        if not any(word in str(error) for word in ("surrogate", "hex escape")):
            raise
        return decode_json(_ARRAY, mark_half_characters(bytes(body)))


def mark_half_characters(data: bytes) -> bytes:
    """``data`` with each lone surrogate escape replaced by as many bytes that are no UTF-8."""
    return _ESCAPE.sub(lambda match: HALF_CHARACTER if match[1] else match[0], data)


def _load(path: Path) -> Buffer:
    if path.exists() and not path.is_file():
        raise CorpusError(f"{path} is not a file", why="a FIFO or a device may never end", fix="check json_path")
    try:
        with path.open("rb") as file:
            if path.stat().st_size < MAP_FROM_BYTES:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror}", fix="check json_path") from error
