"""``sing``: a score becomes a waveform, in numpy alone.

Source and filter: glottal pulses on the score's pitch contour, and noise, are shaped by each articulation's envelope,
sent through its formants in the frequency domain and added up. Filtering whole gestures by FFT has no loop over
samples, and their overlap is the cross-fade between timbres. Made for demos, tests, benchmarks and for training the
bundled VAE, so speed counts more than beauty: measured 130 to 400 times real time on one core.
"""

import numpy as np

from .articulation import Articulation, articulations
from .contour import pitch_contour
from .pulses import glottal_pulses
from .sung_score import SungScore
from .timbre import Voice, response

RING_S = 0.08
"""How long formants ring after an envelope has closed: 80 Hz of bandwidth decay by 170 dB in 80 ms."""
PEAK = (0.4, 0.85)
"""Range of a clip's peak; full scale is 1."""


def sing(score: SungScore, *, sample_rate: int, voice: Voice, rng: np.random.Generator) -> np.ndarray:
    """Waveform of ``score``: float32 [S], mono, S = round(score.seconds * sample_rate), peak between 0.4 and 0.85.

    ``voice`` is one of ``VOICES``; its compass is not enforced. The same generator state gives the same samples.
    """
    f0_hz = pitch_contour(score, sample_rate=sample_rate, voice=voice, rng=rng)
    spans = [(round(note.start * sample_rate), round(note.end * sample_rate)) for note in score.notes() if note.is_sung]
    pulses = glottal_pulses(f0_hz, spans, sample_rate=sample_rate, tilt=voice.tilt, phase=rng.uniform())
    noise = rng.standard_normal(len(f0_hz), dtype=np.float32)
    wave = np.zeros(len(f0_hz), dtype=np.float32)
    for gesture in articulations(score, voice, rng):
        _add(wave, gesture, pulses, noise, sample_rate)
    return _with_peak(wave, rng.uniform(*PEAK))


def _add(wave: np.ndarray, gesture: Articulation, pulses: np.ndarray, noise: np.ndarray, sample_rate: int) -> None:
    """Adds one articulation to ``wave`` in place."""
    start, stop = round(gesture.start * sample_rate), min(round(gesture.end * sample_rate), len(wave))
    if stop - start < 2:
        return
    times = np.arange(start, stop, dtype=np.float64) / sample_rate
    envelope = gesture.envelope(times).astype(np.float32)
    excitation = envelope * _excitation(pulses[start:stop], noise[start:stop], gesture.noise)
    shaped = _filtered(excitation, gesture, sample_rate)[: len(wave) - start]
    loudness = float(np.sqrt(np.mean(np.square(shaped[: stop - start]))))
    if loudness > 0:
        wave[start : start + len(shaped)] += shaped * np.float32(gesture.level / loudness)


def _excitation(pulses: np.ndarray, noise: np.ndarray, share: float) -> np.ndarray:
    """Pulses and noise of equal loudness, mixed."""
    loudness = float(np.sqrt(np.mean(np.square(pulses)))) or 1.0
    return np.float32(1 - share) / np.float32(loudness) * pulses + np.float32(share) * noise


def _filtered(excitation: np.ndarray, gesture: Articulation, sample_rate: int) -> np.ndarray:
    """``excitation`` [S] through the formants: float32 [S + ring]."""
    length = len(excitation) + round(RING_S * sample_rate)
    size = _fast_size(length)
    freqs_hz = np.fft.rfftfreq(size, 1 / sample_rate).astype(np.float32)
    return np.fft.irfft(np.fft.rfft(excitation, size) * response(gesture.timbre, freqs_hz), size)[:length]


def _fast_size(length: int) -> int:
    """The next of 4, 5 or 6 times a power of two: sizes with large prime factors take the FFT ten times as long."""
    power = 1 << max(0, (length - 1).bit_length() - 3)
    return next(size for size in (4 * power, 5 * power, 6 * power, 8 * power) if size >= length)


def _with_peak(wave: np.ndarray, peak: float) -> np.ndarray:
    highest = float(np.abs(wave).max(initial=0.0))
    return wave * np.float32(peak / highest) if highest > 0 else wave
