"""Timbres: the formants of vowels, consonants and breath, and the frequency response they add up to.

Resonators are analog and evaluated at the frequencies of a discrete Fourier transform, so a voice has one timbre at
every sample rate and there is no recursive filter to run in Python. Neighbouring formants have opposite signs, which
keeps the parallel sum free of zeros between them. Formant frequencies are round textbook values for an adult male;
other voices scale them by the length of their vocal tract.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .syllable import Onset, Vowel


@dataclass(frozen=True, slots=True)
class Formant:
    hz: float
    bandwidth: float
    """Hz between the -3 dB points."""
    level: float
    """dB relative to the strongest one."""


Timbre = tuple[Formant, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Voice:
    """One kind of singer."""

    name: str
    low: int
    """Lowest comfortable MIDI pitch."""
    high: int
    tract: float
    """Factor on formant frequencies: short vocal tracts resonate higher."""
    tilt: float
    """Exponent by which the glottal harmonics fall: 1 is -6 dB an octave."""
    ring: float
    """dB added to formants 3 and 4 (the singer's formant)."""
    breathiness: float
    """Share of noise in the excitation of vowels, 0..1."""
    vibrato_hz: float
    vibrato_cents: float
    """Peak deviation of a grown vibrato."""


VOICES: dict[str, Voice] = {
    voice.name: voice
    for voice in (
        Voice(
            name="soprano",
            low=62,
            high=81,
            tract=1.17,
            tilt=0.95,
            ring=0,
            breathiness=0.05,
            vibrato_hz=5.9,
            vibrato_cents=30,
        ),
        Voice(
            name="alto",
            low=55,
            high=74,
            tract=1.11,
            tilt=0.9,
            ring=1,
            breathiness=0.06,
            vibrato_hz=5.6,
            vibrato_cents=26,
        ),
        Voice(
            name="tenor",
            low=48,
            high=69,
            tract=1.0,
            tilt=0.8,
            ring=6,
            breathiness=0.03,
            vibrato_hz=5.5,
            vibrato_cents=28,
        ),
        Voice(
            name="bass",
            low=41,
            high=60,
            tract=0.94,
            tilt=0.75,
            ring=5,
            breathiness=0.03,
            vibrato_hz=5.1,
            vibrato_cents=24,
        ),
    )
}

_BANDWIDTHS = (80.0, 100.0, 140.0, 180.0, 260.0)
_VOWELS: dict[Vowel, tuple[tuple[float, ...], tuple[float, ...]]] = {
    Vowel.A: ((740, 1120, 2500, 3300, 4300), (0, -4, -16, -20, -28)),
    Vowel.E: ((500, 1800, 2500, 3400, 4300), (0, -9, -14, -18, -26)),
    Vowel.I: ((300, 2200, 2950, 3500, 4400), (0, -13, -15, -18, -26)),
    Vowel.O: ((480, 850, 2450, 3250, 4150), (0, -6, -22, -23, -32)),
    Vowel.U: ((330, 760, 2300, 3200, 4100), (0, -10, -26, -27, -36)),
    Vowel.Y: ((300, 1750, 2200, 3300, 4200), (0, -12, -15, -21, -30)),
    Vowel.SCHWA: ((500, 1450, 2450, 3350, 4250), (0, -8, -16, -20, -28)),
}
BREATH_TIMBRE: Timbre = (Formant(900, 900, -4), Formant(1700, 900, 0), Formant(3400, 1600, -4), Formant(5200, 2400, -9))
ONSET_TIMBRES: dict[Onset, Timbre] = {
    Onset.PLOSIVE: (Formant(1800, 1400, 0), Formant(3800, 2400, -4)),
    Onset.FRICATIVE: (Formant(1500, 2200, -3), Formant(4500, 4000, 0)),
    Onset.SIBILANT: (Formant(5600, 2200, 0), Formant(7600, 2600, -3)),
    Onset.NASAL: (Formant(260, 90, 0), Formant(1150, 220, -16), Formant(2400, 320, -24)),
    Onset.LIQUID: (Formant(350, 90, 0), Formant(1250, 160, -12), Formant(2300, 260, -20)),
}


def vowel_timbre(vowel: Vowel, voice: Voice, f0_hz: float) -> Timbre:
    """Formants of ``vowel`` as ``voice`` sings it at ``f0_hz``.

    A fundamental above the first formant would lose its resonance; singers open the jaw, which moves the formant up
    to it, and so does this function.
    """
    hz, levels = _VOWELS[vowel]
    formants = [Formant(f * voice.tract, b, level) for f, b, level in zip(hz, _BANDWIDTHS, levels, strict=True)]
    formants[0] = replace(formants[0], hz=max(formants[0].hz, 1.04 * f0_hz))
    formants[1] = replace(formants[1], hz=max(formants[1].hz, 1.3 * formants[0].hz))
    formants[2:4] = [replace(formant, level=formant.level + voice.ring) for formant in formants[2:4]]
    return tuple(formants)


def response(timbre: Sequence[Formant], freqs_hz: np.ndarray) -> np.ndarray:
    """Complex gain of ``timbre`` at ``freqs_hz`` [K] (float32, the first may be 0): complex64 [K].

    Sum of band-passes jfB / (F^2 - f^2 + jfB), each 1 at its own F: the parallel form of formant synthesis.
    """
    total = np.zeros(len(freqs_hz), dtype=np.complex64)
    squared = freqs_hz * freqs_hz
    sign = 1.0
    for formant in timbre:
        damping = np.complex64(1j * formant.bandwidth) * freqs_hz
        total += (
            np.float32(sign * 10 ** (formant.level / 20)) * damping / (np.float32(formant.hz**2) - squared + damping)
        )
        sign = -sign
    return total
