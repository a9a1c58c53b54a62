"""``SungScore``: the score that a synthesized clip is sung from, and that its annotation states.

The lists are those of a row (docs/format.md): words, one entry a note for pitch, value and the note's word. Durations
in seconds are not stored beside the note values but computed from them, so that the two cannot disagree.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..score.note_value import NOTE_QUARTERS, score_seconds

BREATH = "AP"
"""Word of an audible breath."""
SILENCE = "SP"
"""Word of a silent rest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SungNote:
    """One note with its place in time."""

    index: int
    word_index: int
    pitch: int
    """MIDI pitch, 0 = rest."""
    start: float
    """Seconds from the start of the score."""
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def is_sung(self) -> bool:
        return self.pitch > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SungScore:
    """Words and notes of one clip; the lists obey docs/format.md."""

    word: tuple[str, ...]
    pitch: tuple[int, ...]
    """MIDI pitch per note, 0 = rest."""
    note: tuple[str, ...]
    """Note value token per note."""
    pitch2word: tuple[int, ...]
    """Index of each note's word, not falling."""
    bpm: int
    """Quarters per minute."""

    @property
    def seconds(self) -> float:
        """Length of the whole score."""
        return score_seconds(self.note, self.bpm)

    @property
    def pitch_dur(self) -> tuple[float, ...]:
        """Seconds per note."""
        return tuple(score_seconds((note,), self.bpm) for note in self.note)

    @property
    def word_dur(self) -> tuple[float, ...]:
        """Seconds per word: the sum of its notes."""
        quarters = [0.0] * len(self.word)
        for note, word_index in zip(self.note, self.pitch2word, strict=True):
            quarters[word_index] += NOTE_QUARTERS[note]
        return tuple(count * (60 / self.bpm) for count in quarters)

    def notes(self) -> Iterator[SungNote]:
        """Every note with its start and end, in order; sums run in quarters, where they are exact."""
        quarters = 0.0
        for index, (pitch, note, word_index) in enumerate(zip(self.pitch, self.note, self.pitch2word, strict=True)):
            start, quarters = quarters * 60 / self.bpm, quarters + NOTE_QUARTERS[note]
            end = quarters * 60 / self.bpm
            yield SungNote(index=index, word_index=word_index, pitch=pitch, start=start, end=end)
