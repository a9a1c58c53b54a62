"""The pitch contour of a sung score: steps, glides, vibrato, scoops and jitter, in cents around the written notes.

Computed 400 times a second and interpolated to samples. The vibrato of a note is a sine about the note's middle, hence
odd around it: over any window centred on the middle it averages to nothing, and the note sits on the score's pitch.
"""

from collections.abc import Sequence

import numpy as np

from .sung_score import SungNote, SungScore
from .timbre import Voice

CONTROL_HZ = 400.0
"""Points of the contour per second; glides last 30 ms or more."""
GLIDE_S = 0.09
"""Longest portamento between two notes."""
SCOOP_CENTS = 90.0
"""How far below its pitch the first note of a phrase begins."""
JITTER_CENTS = 3.0
"""Standard deviation of the slow wander of the pitch."""
VIBRATO_FROM_S = 0.3
"""Shorter notes are sung straight."""


def pitch_contour(score: SungScore, *, sample_rate: int, voice: Voice, rng: np.random.Generator) -> np.ndarray:
    """f0 in Hz per audio sample: float64 [S], S = round(score.seconds * sample_rate). Rests take a neighbour's pitch."""
    notes = list(score.notes())
    times = np.arange(int(score.seconds * CONTROL_HZ) + 2) / CONTROL_HZ
    cents = _steps_and_glides(notes, times) + _jitter(times, rng)
    for before, note in zip([None, *notes], notes, strict=False):
        if note.is_sung:
            cents += _vibrato(times, note, voice, rng)
            if before is None or not before.is_sung:
                cents -= _scoop(times, note)
    num_samples = round(score.seconds * sample_rate)
    return np.interp(np.arange(num_samples) / sample_rate, times, midi_to_hz(cents / 100.0))


def midi_to_hz(pitch: np.ndarray) -> np.ndarray:
    """Frequencies of MIDI pitches in equal temperament: a' = 440 Hz = pitch 69."""
    return 440.0 * 2.0 ** ((pitch - 69.0) / 12.0)


def smoothstep(x: np.ndarray) -> np.ndarray:
    """0 below 0, 1 above 1, 3x^2 - 2x^3 between."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


def _steps_and_glides(notes: Sequence[SungNote], times: np.ndarray) -> np.ndarray:
    pitches = _pitches_over_rests(notes)
    cents = np.full(len(times), 100.0 * pitches[0])
    for index in range(1, len(notes)):
        before, note = notes[index - 1], notes[index]
        step = 100.0 * (pitches[index] - pitches[index - 1])
        is_legato = before.is_sung and note.is_sung
        glide = min(GLIDE_S, 0.4 * min(before.seconds, note.seconds)) if is_legato else 1 / CONTROL_HZ
        if step:
            cents += step * smoothstep((times - note.start) / glide + 0.5)
    return cents


def _pitches_over_rests(notes: Sequence[SungNote]) -> list[int]:
    """Pitch per note; a rest takes the next sung pitch, and after the last one keeps it."""
    pitches = [note.pitch for note in notes]
    following = next((pitch for pitch in reversed(pitches) if pitch), 60)
    for index in range(len(pitches) - 1, -1, -1):
        following = pitches[index] or following
        pitches[index] = following
    return pitches


def _jitter(times: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A smooth wander: normal deviates 12 times a second, joined by lines."""
    knots = np.arange(int(times[-1] * 12) + 2) / 12
    return np.interp(times, knots, JITTER_CENTS * rng.standard_normal(len(knots)))


def _vibrato(times: np.ndarray, note: SungNote, voice: Voice, rng: np.random.Generator) -> np.ndarray:
    """Cents of the vibrato: it grows in over a quarter second and is gone before the note ends."""
    rate = voice.vibrato_hz * rng.uniform(0.94, 1.06)
    depth = voice.vibrato_cents * rng.uniform(0.6, 1.1)
    if note.seconds < VIBRATO_FROM_S:
        return np.zeros(len(times))
    growth = smoothstep((times - note.start - 0.12) / 0.25) * smoothstep((note.end - times) / 0.12)
    return depth * growth * np.sin(2 * np.pi * rate * (times - (note.start + note.end) / 2))


def _scoop(times: np.ndarray, note: SungNote) -> np.ndarray:
    """Cents below the pitch at the start of a phrase, gone within a third of the note."""
    length = min(0.11, note.seconds / 3)
    return SCOOP_CENTS * (times >= note.start) * smoothstep(1.0 - (times - note.start) / length)
