"""The bytes of an audio file: read in full, hashed, and known to be those that were planned."""

from dataclasses import dataclass

import xxhash

from ...core.errors import ClipFault, FaultCode, Stage
from .header import AudioHeader
from .regular_file import RegularFile

READ_BYTES = 1 << 20
"""Bytes per read while hashing."""


@dataclass(frozen=True, slots=True)
class Content:
    """What reading a file in full tells."""

    hash: str
    """xxh3-128 of its bytes, 32 hexadecimal digits."""
    head: bytes
    """Its first bytes, up to ``READ_BYTES``."""


def read_content(file: RegularFile) -> Content:
    """Read the whole file, so that it lies in the page cache. Raises ClipFault(CHANGED) if its size changes meanwhile."""
    digest = xxhash.xxh3_128()
    offset = 0
    head = b""
    while piece := file.pread(READ_BYTES, offset):
        digest.update(piece)
        offset += len(piece)
        head = head or piece
    if offset != file.size:
        raise ClipFault(Stage.DECODE, FaultCode.CHANGED, f"{file.path} changed while it was read")
    return Content(digest.hexdigest(), head)


def hash_audio(path: str) -> str | None:
    """xxh3-128 of the file's bytes, 32 hexadecimal digits; None if it can't be read as a file."""
    try:
        with RegularFile(path, Stage.SCAN) as file:
            return read_content(file).hash
    except ClipFault:
        return None


def require_unchanged(file: RegularFile, planned: AudioHeader | None) -> None:
    """Raise ClipFault(CHANGED) if the file's size or modification time is not what the plan says."""
    if planned is not None and (planned.file_size, planned.mtime_ns) != (file.size, file.mtime_ns):
        was, now = (planned.file_size, planned.mtime_ns), (file.size, file.mtime_ns)
        message = f"{file.path} changed since it was planned: size and mtime were {was}, are {now}"
        raise ClipFault(Stage.DECODE, FaultCode.CHANGED, message)
