"""Invented songs: melodies that walk over a scale, and lyrics written for this purpose in three languages.

The total length is met exactly on a grid of 64th notes (a sixteenth of a quarter): all twelve note values are 2 to 96
grid units, and every number of units from 2 on is a sum of 2s and 3s, so a score never overshoots and never gets stuck.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from ..score.note_value import NOTE_QUARTERS
from .lyrics import LINES
from .sung_score import BREATH, SILENCE, SungScore

Language = Literal["zh", "ja", "en"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

UNITS_PER_QUARTER = 16
_UNITS = {token: round(quarters * UNITS_PER_QUARTER) for token, quarters in NOTE_QUARTERS.items()}
_TOKENS = tuple(_UNITS)
_LENGTHS = np.array([_UNITS[token] for token in _TOKENS])
_LIKING = np.array([1.0, 4, 14, 24, 8, 1.5, 0.5, 2, 6, 8, 2.5, 0.8])
"""How often each value is chosen, in the order of NOTE_QUARTERS: 1 2 4 8 16 32, then dotted."""
_REST_LIKING = np.where(_LENGTHS <= UNITS_PER_QUARTER, _LIKING, 0.05)
_SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10), (0, 2, 4, 7, 9), (0, 3, 5, 7, 10))
_STEPS = np.array([-4, -2, -2, -1, -1, -1, 0, 1, 1, 1, 2, 2, 4])
_MELISMA = 0.14
"""Chance that a word goes on for another note."""
_SILENCE_INSIDE = 0.05
"""Chance of a silent rest after a word."""


def random_score(
    rng: np.random.Generator,
    language: Language,
    *,
    seconds: float,
    compass: tuple[int, int] = (55, 74),
    bpm: int | None = None,
) -> SungScore:
    """A score of ``seconds`` (to half a 64th note, one 32nd at least) within the MIDI pitches of ``compass``.

    Lines of lyric are sung in random order, most with a breath before. ``bpm`` is drawn from 60 to 164 if not given.
    """
    bpm = bpm or int(rng.integers(60, 165))
    units = max(2, round(seconds * bpm / 60 * UNITS_PER_QUARTER))
    draft = _Draft(rng=rng, units_left=units, melody=_Melody.random(rng, compass))
    while draft.units_left:
        draft.add_line(LINES[language][int(rng.integers(len(LINES[language])))])
    return draft.score(bpm)


@dataclass(slots=True)
class _Melody:
    """A walk over the tones of one scale."""

    rng: np.random.Generator
    tones: list[int]
    place: int

    @classmethod
    def random(cls, rng: np.random.Generator, compass: tuple[int, int]) -> "_Melody":
        low, high = compass
        scale, tonic = _SCALES[int(rng.integers(len(_SCALES)))], int(rng.integers(12))
        tones = [pitch for pitch in range(low, high + 1) if (pitch - tonic) % 12 in scale] or [low]
        return cls(rng, tones, len(tones) // 2)

    def next_pitch(self) -> int:
        place = self.place + int(self.rng.choice(_STEPS))
        if not 0 <= place < len(self.tones):
            place = 2 * self.place - place  # turn round at the edge of the compass
        self.place = min(max(place, 0), len(self.tones) - 1)
        return self.tones[self.place]


@dataclass(slots=True)
class _Draft:
    """A score that is being written; ``units_left`` falls to 0."""

    rng: np.random.Generator
    units_left: int
    melody: _Melody
    words: list[str] = field(default_factory=list)
    pitches: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pitch2word: list[int] = field(default_factory=list)

    def add_line(self, line: tuple[str, ...]) -> None:
        if self.units_left > UNITS_PER_QUARTER and self.rng.uniform() < 0.85:
            self._add_rest(BREATH, self.units_left // 2)  # or a short score would be all breath, and have no lyric
        for word in line:
            if self.units_left:
                self._add_word(word)
            if self.units_left and self.rng.uniform() < _SILENCE_INSIDE:
                self._add_rest(SILENCE, self.units_left)

    def score(self, bpm: int) -> SungScore:
        return SungScore(
            word=tuple(self.words),
            pitch=tuple(self.pitches),
            note=tuple(self.notes),
            pitch2word=tuple(self.pitch2word),
            bpm=bpm,
        )

    def _add_word(self, word: str) -> None:
        self.words.append(word)
        self._add_note(self.melody.next_pitch(), _LIKING)
        while self.units_left and self.rng.uniform() < _MELISMA:
            self._add_note(self.melody.next_pitch(), _LIKING)

    def _add_rest(self, word: str, longest: int) -> None:
        self.words.append(word)
        self._add_note(0, np.where(_LENGTHS <= longest, _REST_LIKING, 0.0))

    def _add_note(self, pitch: int, liking: np.ndarray) -> None:
        rest = self.units_left - _LENGTHS
        chances = liking * ((rest == 0) | (rest >= 2))
        token = _TOKENS[int(self.rng.choice(len(_TOKENS), p=chances / chances.sum()))]
        self.pitches.append(pitch)
        self.notes.append(token)
        self.pitch2word.append(len(self.words) - 1)
        self.units_left -= _UNITS[token]
