"""Clips on which a run measures what its precision costs: made up, so that figures of two runs can be compared."""

import numpy as np
import numpy.typing as npt

from ...core.units import LatentSpec

PROBE_SECONDS = 2.0
_PITCHES_HZ = (110.0, 220.0, 440.0)
_HARMONICS = 12


def probe_clips(spec: LatentSpec) -> list[npt.NDArray[np.float32]]:
    """Three voices with vibrato, twelve harmonics and a little noise, and one clip of noise: [S] each, peak at most 1."""
    rng = np.random.default_rng(0)
    seconds = np.arange(round(PROBE_SECONDS * spec.sample_rate)) / spec.sample_rate
    noise = rng.standard_normal(len(seconds))
    voices = [_voice(pitch, seconds) + 0.005 * noise for pitch in _PITCHES_HZ]
    return [clip.astype(np.float32) for clip in (*voices, np.clip(0.2 * noise, -1, 1))]


def _voice(pitch: float, seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    phase = 2 * np.pi * pitch * seconds + 0.5 * np.sin(2 * np.pi * 5.5 * seconds)
    tone = sum((np.sin(k * phase) / k for k in range(1, _HARMONICS + 1)), np.zeros_like(seconds))
    return 0.3 * tone
