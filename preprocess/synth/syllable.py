"""``Syllable``: the consonant class and the vowel that a lyric word is sung on.

Kana are read from their Unicode names, Latin words from their letters; a Han character gets a syllable by a hash of
itself. That is no pronunciation, but the same word always sounds the same, which is what a listener of a demo and a
model trained on it need.
"""

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from zlib import crc32


class Vowel(StrEnum):
    A = "a"
    E = "e"
    I = "i"  # noqa: E741 - the vowel's name
    O = "o"  # noqa: E741
    U = "u"
    Y = "y"
    SCHWA = "schwa"


class Onset(StrEnum):
    """How a syllable begins."""

    NONE = "none"
    PLOSIVE = "plosive"
    FRICATIVE = "fricative"
    SIBILANT = "sibilant"
    NASAL = "nasal"
    LIQUID = "liquid"


@dataclass(frozen=True, slots=True)
class Syllable:
    onset: Onset
    vowel: Vowel


_ONSET_OF_LETTER = (
    dict.fromkeys("PTKBDGQ", Onset.PLOSIVE)
    | dict.fromkeys("FHVXW", Onset.FRICATIVE)
    | dict.fromkeys("SZCJ", Onset.SIBILANT)
    | dict.fromkeys("MN", Onset.NASAL)
    | dict.fromkeys("LR", Onset.LIQUID)
)
_VOWEL_OF_LETTER = {"A": Vowel.A, "E": Vowel.E, "I": Vowel.I, "O": Vowel.O, "U": Vowel.U, "Y": Vowel.Y}
_ALL = [Syllable(onset, vowel) for onset in Onset for vowel in Vowel if vowel is not Vowel.SCHWA]


@lru_cache(maxsize=4096)
def syllable_of(word: str) -> Syllable:
    """The syllable ``word`` is sung on: always the same one for the same word."""
    first = word[:1]
    name = unicodedata.name(first, "")
    if name.startswith(("HIRAGANA LETTER", "KATAKANA LETTER")):
        return _spelled(name.rsplit(" ", 1)[-1])
    if name.startswith("LATIN"):
        return _spelled(unicodedata.normalize("NFKD", word).upper())
    return _ALL[crc32(word.encode()) % len(_ALL)]


def _spelled(letters: str) -> Syllable:
    onset = _ONSET_OF_LETTER.get(letters[0], Onset.NONE)
    vowel = next((_VOWEL_OF_LETTER[letter] for letter in letters if letter in _VOWEL_OF_LETTER), Vowel.SCHWA)
    return Syllable(onset, vowel)
