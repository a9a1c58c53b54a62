"""Decoding JSON so that whatever is wrong with it is a ``DecodeError``: deep nesting and half characters included.

Python's json module writes a file name that is no UTF-8 as a lone surrogate escape, which the parser refuses for the
whole text. Such an escape is replaced by bytes that are no UTF-8 either: these spoil only the value that is decoded
from them. It costs a second pass, and only for texts that were refused.
"""

import mmap
import re
from typing import TypeVar

import msgspec

Buffer = bytes | mmap.mmap

HALF_CHARACTER = b"\xff" * 6
"""Stands for a lone surrogate escape such as \\udcff; as long as one, so that positions stay."""

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""An escaped pair; or, as group 1, half of one; or any other escape."""

T = TypeVar("T")


def decode_json(decoder: msgspec.json.Decoder[T], data: msgspec.Raw | Buffer | memoryview) -> T:
    """``decoder.decode``, with a ``DecodeError`` also for text that is nested too deeply or holds half a character."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        if "UTF-8" not in str(error) or HALF_CHARACTER not in bytes(data):
            raise
        raise msgspec.DecodeError("it holds half of a character, a lone \\ud8.. or \\udc.. escape") from error


def decode_marked(decoder: msgspec.json.Decoder[T], data: Buffer | memoryview) -> T:
    """``decode_json`` of a whole text, whose half characters spoil only what is decoded from them."""
    try:
        return decode_json(decoder, data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        whole = bytes(data)
        marked = mark_half_characters(whole)
        if marked == whole:
            raise
        return decode_json(decoder, marked)


def mark_half_characters(data: bytes) -> bytes:
    """``data`` with each lone surrogate escape replaced by ``HALF_CHARACTER``."""
    return _ESCAPE.sub(lambda match: HALF_CHARACTER if match[1] else match[0], data)
