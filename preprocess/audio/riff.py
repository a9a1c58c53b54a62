"""RIFF, RF64 and BW64 WAV headers: enough to know a file's length without opening it in a decoder.

Sizes in such headers lie: writers to a pipe leave 0, 0x7FFFFFFF or 0xFFFFFFFF, and a copy can be cut short. So the
stated size is kept beside what the file has room for, and nobody allocates by the former.
"""

import struct
from dataclasses import dataclass

FORMATS = {1: "PCM", 3: "FLOAT", 6: "ALAW", 7: "ULAW"}
"""Format tags whose frames all have ``block_align`` bytes."""

_EXTENSIBLE = 0xFFFE
_IN_DS64 = 0xFFFFFFFF
"""The 32-bit size field of a RF64 file: the size stands in its ds64 chunk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WavLayout:
    """What a WAV header says, and where its samples lie."""

    container: str
    """RIFF, RF64 or BW64."""
    coding: str
    """A value of ``FORMATS``."""
    bits: int
    """Per sample, as stored."""
    sample_rate: int
    channels: int
    block_align: int
    """Bytes per frame (one sample of each channel)."""
    data_offset: int
    """Where the samples begin; the four bytes before it are the stated size."""
    stated_bytes: int
    """Size of the samples as the header has it."""

    def available_bytes(self, file_size: int) -> int:
        """Bytes from the first sample to the file's end."""
        return max(0, file_size - self.data_offset)

    def is_unfinished(self, file_size: int) -> bool:
        """The file ends before the stated size, or its writer never came back to fill it in."""
        available = self.available_bytes(file_size)
        return self.stated_bytes > available or (self.stated_bytes == 0 < available)

    def num_frames(self, file_size: int) -> int:
        """Samples per channel that the file can hold, at most as many as stated."""
        available = self.available_bytes(file_size)
        return min(self.stated_bytes or available, available) // self.block_align


def parse_wav(head: bytes) -> WavLayout | None:
    """Read the first bytes of a file; None if it is no WAV of a plain coding, or its samples begin further on."""
    if len(head) < 12 or head[:4] not in (b"RIFF", b"RF64", b"BW64") or head[8:12] != b"WAVE":
        return None
    sound: _Sound | None = None
    long_size = 0
    offset = 12
    while offset + 8 <= len(head):
        name, size = struct.unpack_from("<4sI", head, offset)
        offset += 8
        if name == b"data":
            stated = long_size if size == _IN_DS64 and head[:4] != b"RIFF" else size
            return _layout(head[:4].decode(), sound, offset, stated) if sound else None
        if name == b"ds64" and offset + 16 <= len(head):
            (long_size,) = struct.unpack_from("<Q", head, offset + 8)
        if name == b"fmt " and offset + 16 <= len(head):
            sound = _sound(head[offset : offset + size])
        offset += size + size % 2
    return None


@dataclass(frozen=True, slots=True)
class _Sound:
    coding: str
    channels: int
    sample_rate: int
    block_align: int
    bits: int


def _sound(chunk: bytes) -> _Sound | None:
    tag, channels, sample_rate, _, block_align, bits = struct.unpack_from("<HHIIHH", chunk)
    if tag == _EXTENSIBLE and len(chunk) >= 26:
        (tag,) = struct.unpack_from("<H", chunk, 24)
    if tag not in FORMATS or not channels or not sample_rate or not block_align:
        return None
    return _Sound(FORMATS[tag], channels, sample_rate, block_align, bits)


def _layout(container: str, sound: _Sound, data_offset: int, stated_bytes: int) -> WavLayout:
    return WavLayout(
        container=container,
        coding=sound.coding,
        bits=sound.bits,
        sample_rate=sound.sample_rate,
        channels=sound.channels,
        block_align=sound.block_align,
        data_offset=data_offset,
        stated_bytes=stated_bytes,
    )
