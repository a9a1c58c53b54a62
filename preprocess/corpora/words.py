"""Lyric words: which of them are lyric at all, and how a plain transcription is split into words.

A word of a weak transcription is one Han, kana or hangul character with its combining marks, or a run of letters, marks
and digits of any other script; apostrophes and joiners between two of them stay (``don't``). Everything else
separates. So every letter and digit of a transcription stands in exactly one word, and text is never normalized: a
word is the annotator's own bytes. Costs 10 us for 50 characters.
"""

import re
import unicodedata
from collections.abc import Sequence

MARKERS = frozenset({"AP", "SP", "", "-", "_"})
"""Words that stand for breath, silence or nothing. Any word in angle brackets is one, too."""

APOSTROPHES = "'\u2019\uff07"
"""Not U+02BC: Unicode calls that one a letter."""
JOINERS = "\u200c\u200d"
"""Zero width (non-)joiner: inside a word of Persian or of an Indic script they are part of its spelling."""


def is_marker(word: str) -> bool:
    """Whether ``word`` is a rest or a marker rather than lyric."""
    word = word.strip()
    return word in MARKERS or (word.startswith("<") and word.endswith(">"))


def has_lyric(words: Sequence[str]) -> bool:
    """Whether any word is more than a rest or a marker."""
    # The set first: it settles nearly every word without a call.
    return any(word not in MARKERS and not is_marker(word) for word in words)


# Kinds of characters, one letter each, so that the kinds of a text are a text that a regular expression can read.
_SINGLE = "S"  # a word of its own
_LEAD, _TAIL = "J", "j"  # conjoining hangul letters: leads, then vowels and finals, are one syllable, so one word
_RUN = "R"  # letter or digit of a script that writes words
_MARK = "M"  # belongs to the character before it
_LINK = "L"  # stays between two characters of a run
_BREAK = " "

_WORD = re.compile(r"SM*|J[JM]*[jM]*|j[jM]*|R(?:[RM]|L(?=R))*")

# First and last code point. Unassigned code points inside are not letters and never get here.
_SINGLE_BLOCKS = (
    (0x3005, 0x3007),  # 々 〆 〇
    (0x3031, 0x3035),  # vertical kana repeat marks
    (0x303B, 0x303C),
    (0x3041, 0x30FF),  # hiragana, katakana
    (0x3131, 0x318E),  # hangul letters that don't conjoin
    (0x31F0, 0x31FF),  # small katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),  # hangul syllables
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width katakana
    (0xFFA0, 0xFFDC),  # half-width hangul
    (0x1AFF0, 0x1B16F),  # kana supplements
    (0x20000, 0x3FFFF),  # Han extensions
)
_LEAD_BLOCKS = ((0x1100, 0x115F), (0xA960, 0xA97F))
_TAIL_BLOCKS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FF))


def _within(code: int, blocks: Sequence[tuple[int, int]]) -> bool:
    return any(first <= code <= last for first, last in blocks)


def _kind(code: int) -> str:
    char = chr(code)
    if char in APOSTROPHES or char in JOINERS:
        return _LINK
    category = unicodedata.category(char)
    if category[0] == "M":
        return _MARK
    if category[0] not in "LN":
        return _BREAK
    if _within(code, _LEAD_BLOCKS):
        return _LEAD
    if _within(code, _TAIL_BLOCKS):
        return _TAIL
    return _SINGLE if _within(code, _SINGLE_BLOCKS) else _RUN


class _Kinds(dict[int, str]):
    # For str.translate. A corpus uses a few thousand characters; each is classified once.
    def __missing__(self, code: int) -> str:
        kind = self[code] = _kind(code)
        return kind


_KINDS = _Kinds()


def split_words(transcription: str) -> tuple[str, ...]:
    """Words of a transcription, in order; empty if it has no letter and no digit."""
    kinds = transcription.translate(_KINDS)
    return tuple(transcription[match.start() : match.end()] for match in _WORD.finditer(kinds))
