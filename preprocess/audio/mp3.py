"""MP3 frames: what a file says of its length, how many frames there really are, and a length that can be believed.

libsndfile takes the count of the Xing header for the length and gives no sample beyond it; without that header it takes
an estimate. A count that is too low, or an estimate from a quiet beginning, costs the rest of the file without a word (a
file of 4 s without its Xing header gave 1.2 s). So frames are counted by walking over their headers, about 1 us each or
3 % of decoding, and libsndfile is given a copy with the true count where it would be wrong.

The parent reads headers with this alone: libmpg123, behind libsndfile, prints what it thinks of a file to stderr.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
"""Hz by version bits (3 = MPEG 1, 2 = MPEG 2, 0 = MPEG 2.5)."""
_KBITS_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBITS_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_LAYER_3 = 1
_MONO = 3
_INFO_INDEX = 9
"""Bitrate index of a made-up Info frame: 128 or 80 kbit/s, room for its 48 bytes at every rate."""
_LAME_AT = 120
"""Bytes from the mark of a full Xing header to the encoder's name; delay and padding follow 21 bytes later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mp3Layout:
    """The first frame of an MP3 file, and what its Xing header says."""

    sample_rate: int
    channels: int
    frame_samples: int
    """Samples per channel of a frame."""
    offset: int
    """Of the first frame: behind an ID3v2 tag."""
    lengths: tuple[int, ...]
    """Bytes of a frame by bitrate index, without its padding byte; 0 = none that can be walked over."""
    mark: int | None
    """Offset of the word Xing or Info; None if there is no such header."""
    stated_frames: int | None
    """Frames of sound by that header."""
    trimmed_samples: int
    """Samples of encoder delay and padding, which decoders cut."""

    @property
    def stated_samples(self) -> int | None:
        """Samples per channel by the Xing header."""
        if self.stated_frames is None:
            return None
        return max(0, self.stated_frames * self.frame_samples - self.trimmed_samples)


def is_mpeg(head: bytes) -> bool:
    """Whether libsndfile would hand a file that begins with ``head`` to libmpg123, or search it for what an ID3 tag hides."""
    return head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0 and head[1] & 6 != 0)


def tag_bytes(head: bytes) -> int:
    """Length of the ID3v2 tag at the beginning of a file; 0 if there is none."""
    if len(head) < 10 or head[:3] != b"ID3":
        return 0
    size = 0
    for byte in head[6:10]:
        size = size << 7 | byte & 0x7F
    return 10 + size + (10 if head[5] & 0x10 else 0)


def parse_mp3(content: bytes, offset: int) -> Mp3Layout | None:
    """Read the frame at ``offset`` of a file's first bytes; None if that is no frame of Layer III with a known length."""
    header = content[offset : offset + 4]
    if len(header) < 4 or header[0] != 0xFF or header[1] >> 5 != 7 or header[1] >> 1 & 3 != _LAYER_3:
        return None
    version, rate_index = header[1] >> 3 & 3, header[2] >> 2 & 3
    if version not in _RATES or rate_index == 3:
        return None
    rate, channels = _RATES[version][rate_index], 1 if header[3] >> 6 == _MONO else 2
    kbits, samples = (_KBITS_1, 1152) if version == 3 else (_KBITS_2, 576)
    lengths = (*(samples * 125 * kbit // rate for kbit in kbits), 0)
    if not lengths[header[2] >> 4]:
        return None
    checksum = 0 if header[1] & 1 else 2
    mark, stated, trimmed = _xing(content, offset + 4 + checksum + _side_info(samples, channels))
    return Mp3Layout(
        sample_rate=rate,
        channels=channels,
        frame_samples=samples,
        offset=offset,
        lengths=lengths,
        mark=mark,
        stated_frames=stated,
        trimmed_samples=trimmed,
    )


def _side_info(frame_samples: int, channels: int) -> int:
    """Bytes between a frame's header and its sound (ISO 11172-3, 13818-3); a Xing header stands behind them."""
    if frame_samples == 1152:
        return 17 if channels == 1 else 32
    return 9 if channels == 1 else 17


def _xing(content: bytes, mark: int) -> tuple[int | None, int | None, int]:
    """Offset of the header, its number of frames, its trimmed samples. The count field comes first, if its flag is set."""
    if content[mark : mark + 4] not in (b"Xing", b"Info") or len(content) < mark + 12:
        return None, None, 0
    flags = content[mark + 7]
    stated = int.from_bytes(content[mark + 8 : mark + 12]) if flags & 1 else None
    lame = mark + _LAME_AT
    if flags & 15 != 15 or content[lame : lame + 4] not in (b"LAME", b"Lavc", b"Lavf"):
        return mark, stated, 0
    packed = int.from_bytes(content[lame + 21 : lame + 24])
    return mark, stated, (packed >> 12) + (packed & 0xFFF)


def estimated_samples(head: bytes, layout: Mp3Layout, num_bytes: int) -> int | None:
    """Samples per channel of ``num_bytes`` of frames, if all the first ones, in ``head``, have one bit rate."""
    rates = {head[offset + 2] >> 4 for offset in frame_offsets(head, layout)}
    if len(rates) != 1:
        return None
    return num_bytes // layout.lengths[rates.pop()] * layout.frame_samples


def frame_offsets(content: bytes, layout: Mp3Layout) -> Iterator[int]:
    """Where each whole frame of a file begins, the Xing header's included; what lies between frames is passed over."""
    end, offset, kind = len(content), layout.offset, content[layout.offset + 1] & 0xFE
    rate, lengths = content[layout.offset + 2] & 0x0C, layout.lengths

    def length_at(at: int) -> int:
        if at + 4 > end or content[at] != 0xFF or content[at + 1] & 0xFE != kind or content[at + 2] & 0x0C != rate:
            return 0
        length = lengths[content[at + 2] >> 4]
        return length + (content[at + 2] >> 1 & 1) if length else 0

    lost = False
    while offset < end:
        length = length_at(offset)
        if length and (not lost or offset + length >= end or length_at(offset + length)):
            if offset + length > end:
                return
            yield offset
            offset, lost = offset + length, False
        else:
            found = content.find(b"\xff", offset + 1)
            offset, lost = (end if found < 0 else found), True


def with_true_count(content: bytes, layout: Mp3Layout) -> bytes | None:
    """The file with a count of frames as they are, if libsndfile would give fewer samples than there are; else None."""
    found = sum(1 for _ in frame_offsets(content, layout)) - (layout.mark is not None)
    if found < 2:  # a header by chance: libsndfile shall see it as it is
        return None
    if layout.stated_frames is None:
        return (
            content[: layout.offset] + _info_frame(content, layout, found) + content[_sound_offset(content, layout) :]
        )
    if layout.stated_frames >= found or layout.mark is None:
        return None
    return content[: layout.mark + 8] + found.to_bytes(4) + content[layout.mark + 12 :]


def _sound_offset(content: bytes, layout: Mp3Layout) -> int:
    """Of the first frame that is sound: a Xing header without a count is left out."""
    if layout.mark is None:
        return layout.offset
    third = content[layout.offset + 2]
    return layout.offset + layout.lengths[third >> 4] + (third >> 1 & 1)


def _info_frame(content: bytes, layout: Mp3Layout, num_frames: int) -> bytes:
    """A frame of silence that holds nothing but a count."""
    sync, kind, third, fourth = content[layout.offset : layout.offset + 4]
    header = bytes((sync, kind | 1, _INFO_INDEX << 4 | third & 0x0C, fourth))  # no checksum, no padding byte
    body = (
        header
        + bytes(_side_info(layout.frame_samples, layout.channels))
        + b"Info"
        + (1).to_bytes(4)
        + num_frames.to_bytes(4)
    )
    return body.ljust(layout.lengths[_INFO_INDEX], b"\0")
