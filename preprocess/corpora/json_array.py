"""An annotation file that is one JSON array, read an item at a time.

The array is split into ``msgspec.Raw`` items over the mapped file and each item is decoded when its turn comes, so a
bad item costs one clip, and a 1 GB file of 1.2 million items takes 7 s and 1 GB (mapped pages included) where building
all objects takes 32 s and 7 GB.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...core.errors import CorpusError
from .json_decode import Buffer, decode_marked
from .json_text import UTF8_BOM, json_problem

MAP_FROM_BYTES = 64 << 20
"""Smaller files are read: a mapped file that somebody shortens meanwhile ends the process."""

_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])


def read_array(path: Path) -> Iterator[msgspec.Raw]:
    """The items of the JSON array in ``path``, each still JSON text.

    Raises CorpusError, before the first item, with line, column and what to do, if the file can't be read, isn't JSON
    or holds something else than an array.
    """
    data = _load(path)
    try:
        items = decode_marked(_ARRAY, memoryview(data)[3:] if data[:3] == UTF8_BOM else data)
    except msgspec.DecodeError as error:
        problem = json_problem(data, error, "an array")
        raise CorpusError(
            f"{path}, line {problem.line}, column {problem.column}: {problem.text}",
            why=f"near: {problem.excerpt}" if problem.excerpt else "",
            fix=problem.fix,
        ) from error
    return iter(items)


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
