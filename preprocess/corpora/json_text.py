"""What is wrong with a text that should be JSON: line, column, the text around it, and what to do.

The parser names a byte; people need a line. Three mistakes are common enough to be recognised by name: JSON Lines in
a .json file, NaN (which Python's own json module writes), and a copy that was cut off.
"""

import re
from dataclasses import dataclass
from typing import Literal

import msgspec

from .json_decode import HALF_CHARACTER, Buffer, decode_json, mark_half_characters

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BYTE = re.compile(r" \(byte (\d+)\)$")
_NOT_A_NUMBER = re.compile(rb"-?(NaN|Infinity|nan|inf)\b")
_KINDS = {
    "array": "an array",
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "a boolean",
    "null": "null",
}
UTF8_BOM = b"\xef\xbb\xbf"

TopLevel = Literal["an array", "an object"]


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonProblem:
    """Why a text is not the JSON that it should be."""

    line: int
    """From 1."""
    column: int
    """In characters, from 1."""
    text: str
    excerpt: str
    """What stands at the place, in one line."""
    fix: str


def json_problem(data: Buffer, error: msgspec.DecodeError, expected: TopLevel) -> JsonProblem:
    """Describe why ``data`` failed to be decoded with msgspec's ``error`` as ``expected``."""
    if encoding := _wide_encoding(data):
        return _at(data, 0, f"the file is {encoding}", "save it as UTF-8")
    if not data[:4096].strip(b" \t\r\n\xef\xbb\xbf"):
        return _at(data, 0, "the file is empty", "export the annotations again")
    message = str(error)
    if isinstance(error, msgspec.ValidationError):
        return _wrong_top_level(data, message, expected)
    if match := _BYTE.search(message):
        return _malformed(data, int(match[1]) + _bom(data), message[: match.start()])
    if "nested too deeply" in message:
        return _at(data, 0, "the file is nested too deeply", "is this the right file?")
    if "half of a character" in message and HALF_CHARACTER not in data[:]:
        return _half_character(data)
    if "UTF-8" in message or "half of a character" in message:
        return _not_utf8(data)
    return _cut_off(data)


def _wide_encoding(data: Buffer) -> str | None:
    """UTF-32 or UTF-16, told by its mark or, as JSON begins with ASCII, by where the zeros are."""
    start = data[:4]
    zeros = bytes(byte != 0 for byte in start)
    if start in (b"\xff\xfe\0\0", b"\0\0\xfe\xff") or zeros in (b"\1\0\0\0", b"\0\0\0\1"):
        return "UTF-32"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or zeros in (b"\1\0\1\0", b"\0\1\0\1", b"\1\0", b"\0\1"):
        return "UTF-16"
    return None


def _bom(data: Buffer) -> int:
    return 3 if data[:3] == UTF8_BOM else 0


def _malformed(data: Buffer, offset: int, message: str) -> JsonProblem:
    text = "not JSON: " + message.removeprefix("JSON is malformed: ")
    if "trailing characters" in message:
        offset -= 1  # msgspec names the byte after the first of them
        if data[offset : offset + 1] == b"{":
            return _json_lines(data, offset)
    offset -= data[offset - 1 : offset] == b"-"  # it names the I of -Infinity
    if token := _NOT_A_NUMBER.match(data[offset : offset + 10]):
        fix = "write null or a number; json.dumps(..., allow_nan=False) helps"
        return _at(data, offset, f"{token[0].decode()} is not JSON", fix)
    return _at(data, offset, text, "export the annotations again, or correct the place")


def _json_lines(data: Buffer, offset: int) -> JsonProblem:
    fix = "put the objects into one array, e.g. with `jq -s . IN > OUT`"
    return _at(data, offset, "the file is JSON Lines: a second object begins here", fix)


def _cut_off(data: Buffer) -> JsonProblem:
    return _at(data, len(data), "the file ends in the middle", "was it copied completely? Export or copy it again")


def _half_character(data: Buffer) -> JsonProblem:
    at = mark_half_characters(data[:]).find(HALF_CHARACTER)
    text = f"not JSON: {data[at : at + len(HALF_CHARACTER)].decode()} is half of a character"
    return _at(data, at, text, "write the text as UTF-8 instead of \\u escapes")


def _not_utf8(data: Buffer) -> JsonProblem:
    try:
        data[:].decode()
    except UnicodeDecodeError as error:
        return _at(data, error.start, "the text is not UTF-8", "save the file as UTF-8")
    return _cut_off(data)


def _wrong_top_level(data: Buffer, message: str, expected: TopLevel) -> JsonProblem:
    """The text is JSON at its start, but not an array (or object) at the top."""
    body = memoryview(data)[_bom(data) :]
    try:
        value = decode_json(_OBJECT, body)
    except msgspec.ValidationError as error:
        kind = str(error).partition("got ")[2].strip("`")
        held = _KINDS.get(kind, "another type")
        return _at(data, 0, f"the file holds {held}, expected {expected}", "is this the right file?")
    except msgspec.DecodeError as error:
        return json_problem(data, error, expected)
    if expected == "an object":  # it is one; a value in it can't be held, like 1e999
        return _at(data, 0, message, "correct the value")
    keys = ", ".join(list(value)[:8]) or "none"
    arrays = [key for key, raw in value.items() if bytes(memoryview(raw)[:1]) == b"["]
    fix = (
        f"write its {arrays[0]!r} alone, e.g. with `jq .{arrays[0]} IN > OUT`" if arrays else "is this the right file?"
    )
    return _at(data, 0, f"the file holds an object with the keys {keys}; expected {expected}", fix)


def _at(data: Buffer, offset: int, text: str, fix: str) -> JsonProblem:
    line, column = line_and_column(data, offset)
    return JsonProblem(line=line, column=column, text=text, excerpt=_excerpt(data, offset), fix=fix)


def line_and_column(data: Buffer, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of the byte at ``offset``; the column in characters."""
    start = data.rfind(b"\n", 0, offset) + 1
    line, at = 1, data.find(b"\n", 0, start)
    while at >= 0:
        line, at = line + 1, data.find(b"\n", at + 1, start)
    return line, len(data[start:offset].decode("utf-8-sig", "replace")) + 1


def _excerpt(data: Buffer, offset: int) -> str:
    around = data[max(offset - 30, 0) : offset + 30].decode("utf-8", "ignore").removeprefix("\ufeff")
    return " ".join(around.split())
