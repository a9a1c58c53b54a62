"""Articulations: the gestures that a sung score is made of, each an envelope over an excitation in one timbre.

A sung word is an onset (noise burst or hum) and a vowel that its notes share; AP is a breath; SP is nothing. The
envelopes of neighbours overlap by some milliseconds, so that one timbre turns into the next without a gap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from .contour import midi_to_hz, smoothstep
from .sung_score import BREATH, SungNote, SungScore
from .syllable import Onset, Syllable, syllable_of
from .timbre import BREATH_TIMBRE, ONSET_TIMBRES, Timbre, Voice, vowel_timbre

OVERLAP_S = 0.018
"""How long a vowel reaches into the next word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Articulation:
    """One gesture; times in seconds from the start of the score."""

    start: float
    attack: float
    """Seconds until it is fully there."""
    release: float
    """Seconds over which it fades, before ``end``."""
    end: float
    level: float
    """Root mean square over the whole gesture, before the clip is normalised."""
    noise: float
    """Share of noise in the excitation: 0 is voiced only, 1 is unvoiced."""
    timbre: Timbre

    def envelope(self, times: np.ndarray) -> np.ndarray:
        """Gain 0..1 at ``times``."""
        rise = smoothstep((times - self.start) / self.attack)
        return rise * smoothstep((self.end - times) / self.release)


@dataclass(frozen=True, slots=True)
class _OnsetShape:
    seconds: float
    closure: float
    """Share of it that is silent, before a burst."""
    level: float
    noise: float


_ONSET_SHAPES: dict[Onset, _OnsetShape] = {
    Onset.PLOSIVE: _OnsetShape(0.06, 0.6, 0.3, 1.0),
    Onset.FRICATIVE: _OnsetShape(0.08, 0.0, 0.08, 1.0),
    Onset.SIBILANT: _OnsetShape(0.1, 0.0, 0.16, 1.0),
    Onset.NASAL: _OnsetShape(0.07, 0.0, 0.4, 0.0),
    Onset.LIQUID: _OnsetShape(0.05, 0.0, 0.5, 0.0),
}


def articulations(score: SungScore, voice: Voice, rng: np.random.Generator) -> Iterator[Articulation]:
    """Every gesture of ``score`` in order of time; levels follow an arc over the clip."""
    notes = list(score.notes())
    for (word_index, is_sung), group in groupby(notes, key=lambda note: (note.word_index, note.is_sung)):
        run = list(group)
        after = notes[run[-1].index + 1] if run[-1].index + 1 < len(notes) else None
        arc = 0.75 + 0.25 * np.sin(np.pi * run[0].start / score.seconds)
        level = float(arc * rng.uniform(0.8, 1.0))
        if is_sung:
            yield from _sung_word(run, syllable_of(score.word[word_index]), voice, level, after)
        elif score.word[word_index] == BREATH:
            yield _breath(run, rng)


def _sung_word(
    run: Sequence[SungNote], syllable: Syllable, voice: Voice, level: float, after: SungNote | None
) -> Iterator[Articulation]:
    start, end = run[0].start, run[-1].end
    vowel_start = start
    if syllable.onset is not Onset.NONE:
        onset = _onset(syllable.onset, start, 0.25 * run[0].seconds, level)
        vowel_start = onset.end - min(0.01, onset.release)
        yield onset
    is_followed = after is not None and after.is_sung
    highest = float(midi_to_hz(np.array([note.pitch for note in run])).max())
    length = end - vowel_start
    yield Articulation(
        start=vowel_start,
        attack=min(0.035, 0.3 * length),
        release=min(0.03 if is_followed else 0.09, 0.4 * length),
        end=end + OVERLAP_S if is_followed else end,
        level=level,
        noise=voice.breathiness,
        timbre=vowel_timbre(syllable.vowel, voice, highest),
    )


def _onset(onset: Onset, start: float, longest: float, level: float) -> Articulation:
    shape = _ONSET_SHAPES[onset]
    seconds = min(shape.seconds, longest)
    burst = seconds * (1 - shape.closure)
    return Articulation(
        start=start + seconds - burst,
        attack=burst * (0.15 if shape.closure else 0.45),
        release=burst * 0.5,
        end=start + seconds,
        level=shape.level * level,
        noise=shape.noise,
        timbre=ONSET_TIMBRES[onset],
    )


def _breath(run: Sequence[SungNote], rng: np.random.Generator) -> Articulation:
    """Air drawn in through the rest: it swells, and stops shortly before the next word."""
    start, seconds = run[0].start, run[-1].end - run[0].start
    return Articulation(
        start=start + 0.1 * seconds,
        attack=0.5 * seconds,
        release=0.2 * seconds,
        end=start + 0.95 * seconds,
        level=float(rng.uniform(0.03, 0.06)),
        noise=1.0,
        timbre=BREATH_TIMBRE,
    )
