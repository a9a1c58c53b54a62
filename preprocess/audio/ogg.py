"""Does an Ogg file end where its writer ended it?

A complete stream closes with a page that carries the end-of-stream flag (RFC 3533, section 6). libsndfile plays a cut
file up to its last whole page and says nothing.
"""

CAPTURE = b"OggS"
"""The first bytes of every page, and so of a file."""

MAX_PAGE_BYTES = 27 + 255 + 255 * 255
"""Longest page there can be: header, segment table, segments."""

_END_OF_STREAM = 0x04
_HEADER_BYTES = 27


def ends_early(tail: bytes) -> bool:
    """Whether an Ogg file whose last ``MAX_PAGE_BYTES`` (or all) are ``tail`` was cut."""
    start = tail.rfind(CAPTURE)
    page = tail[start:]
    if start < 0 or len(page) < _HEADER_BYTES or not page[5] & _END_OF_STREAM:
        return True
    num_segments = page[26]
    segments = page[_HEADER_BYTES : _HEADER_BYTES + num_segments]
    return len(segments) < num_segments or len(page) < _HEADER_BYTES + num_segments + sum(segments)
