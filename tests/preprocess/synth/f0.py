"""A pitch tracker to judge synthesized and decoded singing with: normalised autocorrelation, numpy alone.

Each frame is compared with itself, shifted by every lag of the search range, over a window of fixed length; the first
lag whose likeness comes near the best one wins (the later ones are its multiples, an octave and more below), and the
last multiple of it within the range, divided back, gives the fine value.
"""

import numpy as np

LOWEST_HZ = 70.0
HIGHEST_HZ = 1100.0
HOP_S = 0.01
WINDOW_S = 0.03
VOICED_FROM = 0.75
"""Likeness of a frame with itself one period later, 0..1, from which on it counts as voiced."""
QUIET_DB = -45.0
"""Frames that far below the loudest one are unvoiced."""


def f0_track(wave: np.ndarray, sample_rate: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, f0_hz, voiced), each [N], every 10 ms, of ``wave`` [S]; times are the frames' centres in seconds.

    ``f0_hz`` is meaningful where ``voiced`` is true. Between 70 and 1,100 Hz; within 3 cents on harmonic sounds.
    """
    window, longest = round(WINDOW_S * sample_rate), int(sample_rate / LOWEST_HZ) + 2
    frames = _frames(wave, window + longest, round(HOP_S * sample_rate))
    likeness = _likeness(frames, window, longest)
    shortest = int(sample_rate / HIGHEST_HZ)
    best = likeness[:, shortest:-1].max(axis=1)
    periods = np.array([_period(row, shortest) for row in likeness])
    power = np.mean(np.square(frames, dtype=np.float64), axis=1)
    voiced = (best > VOICED_FROM) & (power > power.max() * 10 ** (QUIET_DB / 10))
    times = (np.arange(len(frames)) * round(HOP_S * sample_rate) + (window + longest) / 2) / sample_rate
    return times, sample_rate / periods, voiced


def cents_between(f0_hz: np.ndarray, pitch: int) -> np.ndarray:
    """Deviation of ``f0_hz`` from a MIDI pitch, in cents."""
    return 1200 * np.log2(f0_hz / 440.0) - 100 * (pitch - 69)


def _frames(wave: np.ndarray, length: int, hop: int) -> np.ndarray:
    padded = np.pad(wave.astype(np.float32), (0, max(0, length - len(wave))))
    return np.lib.stride_tricks.sliding_window_view(padded, length)[::hop]


def _likeness(frames: np.ndarray, window: int, longest: int) -> np.ndarray:
    """Correlation coefficient of each frame's first ``window`` samples with those ``lag`` later: [N, longest]."""
    length = window + longest
    size = 1 << (length - 1).bit_length()
    head = np.fft.rfft(frames[:, :window], size)
    products = np.fft.irfft(np.conj(head) * np.fft.rfft(frames, size), size)[:, :longest]
    sums = np.cumsum(np.pad(np.square(frames, dtype=np.float64), ((0, 0), (1, 0))), axis=1)
    energies = np.maximum(sums[:, window:length] - sums[:, :longest], 1e-12)
    return products / np.sqrt(energies * energies[:, :1])


def _period(likeness: np.ndarray, shortest: int) -> float:
    """Period in samples, with a fraction, from one frame's likeness [longest]."""
    inner = likeness[1:-1]
    is_peak = (inner >= likeness[:-2]) & (inner > likeness[2:])
    peaks = np.flatnonzero(is_peak) + 1
    peaks = peaks[peaks >= shortest]
    if not len(peaks):
        return float(shortest)
    first = int(peaks[np.argmax(likeness[peaks] > 0.92 * likeness[peaks].max())])
    period = _summit(likeness, first)
    for multiple in range(2, 1 + int((len(likeness) - 2) / period)):
        near = peaks[np.abs(peaks - multiple * period) < 0.2 * period]
        if not len(near) or likeness[near].max() < 0.9 * likeness[first]:
            break
        period = _summit(likeness, int(near[np.argmax(likeness[near])])) / multiple
    return period


def _summit(curve: np.ndarray, peak: int) -> float:
    """Place of the parabola's top through the three points around ``peak``."""
    left, middle, right = curve[peak - 1 : peak + 2]
    bend = left - 2 * middle + right
    return peak + 0.5 * (left - right) / bend if bend < 0 else float(peak)
