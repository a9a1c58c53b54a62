"""Glottal pulses: a periodic excitation that follows a pitch contour and holds no partial beyond Nyquist.

One period lies in a table of its harmonics, and the phase of the contour reads it. Each note gets the table with as
many harmonics as fit under the sample rate at the note's highest pitch: two reads and one product per sample whatever
the number of harmonics, where adding them up costs a sine each (300 at 80 Hz and 48 kHz).
"""

from collections.abc import Iterable

import numpy as np

TABLE_SIZE = 1 << 14
"""Points per period. Linear interpolation of the 300th harmonic is then 0.2 % off, far below the formants' skirts."""
BANDWIDTH = 0.47
"""Highest partial as a share of the sample rate."""


def glottal_pulses(
    f0_hz: np.ndarray, spans: Iterable[tuple[int, int]], *, sample_rate: int, tilt: float, phase: float
) -> np.ndarray:
    """Excitation float32 [S] for the contour ``f0_hz`` [S]; zero outside ``spans`` (sample ranges of sung notes).

    ``tilt`` is the exponent by which harmonics fall, ``phase`` the first sample's place in the period, 0..1.
    """
    phases = np.cumsum(f0_hz) / sample_rate + phase
    pulses = np.zeros(len(f0_hz), dtype=np.float32)
    for start, stop in spans:
        if stop > start:
            num_harmonics = max(1, int(BANDWIDTH * sample_rate / f0_hz[start:stop].max()))
            pulses[start:stop] = _read(_period(num_harmonics, tilt), phases[start:stop])
    return pulses


def _period(num_harmonics: int, tilt: float) -> np.ndarray:
    """One period with its first point repeated at the end: float32 [TABLE_SIZE + 1]."""
    harmonics = np.arange(1, num_harmonics + 1)
    spectrum = np.zeros(TABLE_SIZE // 2 + 1, dtype=np.complex64)
    # Partials that all start together are a click; a phase that grows with the harmonic spreads it over the period.
    spectrum[1 : num_harmonics + 1] = harmonics**-tilt * np.exp(1j * 0.6 * np.sqrt(harmonics))
    table = np.fft.irfft(spectrum, TABLE_SIZE).astype(np.float32) * TABLE_SIZE
    return np.append(table, table[0])


def _read(table: np.ndarray, phases: np.ndarray) -> np.ndarray:
    place = (phases - np.floor(phases)) * TABLE_SIZE
    index = place.astype(np.int32)
    fraction = (place - index).astype(np.float32)
    left = table[index]
    return left + (table[index + 1] - left) * fraction
