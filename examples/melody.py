"""How much of a melody a codec keeps: f0 in the middles of notes against the score. For train_tiny_vae.py."""

import math
from dataclasses import dataclass

import numpy as np

from latentprep.preprocess.synth.sung_score import SungScore

RATE = 16_000


@dataclass(frozen=True, slots=True)
class Take:
    """One synthesized clip and the score it was sung from."""

    score: SungScore
    wave: np.ndarray


def f0_hz(wave: np.ndarray, centre: int) -> float | None:
    """f0 around sample ``centre`` by normalised autocorrelation over 64 ms, 70 to 1,100 Hz; None where unvoiced."""
    half = 512
    frame = wave[centre - half : centre + half].astype(np.float64)
    if len(frame) < 2 * half or np.sqrt(np.mean(frame**2)) < 1e-3:
        return None
    lags = np.arange(RATE // 1100, RATE // 70 + 2)
    scores = np.array([_similarity(frame[:-lag], frame[lag:]) for lag in lags])
    peaks = [i for i in range(1, len(lags) - 1) if scores[i - 1] < scores[i] >= scores[i + 1]]
    if not peaks or max(scores[i] for i in peaks) < 0.6:
        return None
    best = max(scores[i] for i in peaks)
    i = next(i for i in peaks if scores[i] > 0.93 * best)  # the shortest good period, not a multiple of it
    left, mid, right = scores[i - 1 : i + 2]
    return RATE / (lags[i] + 0.5 * (left - right) / (left - 2 * mid + right))


def _similarity(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b) + 1e-12))


def melody_accuracy(takes: list[Take], waves: list[np.ndarray]) -> tuple[float, float]:
    """(share of frames within 50 cents of the score, share of frames that are voiced), in the middles of notes."""
    right = voiced = total = 0
    for take, wave in zip(takes, waves, strict=True):
        for note in take.score.notes():
            if not note.is_sung or note.seconds < 0.2:
                continue
            for place in (0.4, 0.5, 0.6):
                total += 1
                f0 = f0_hz(wave, round((note.start + place * note.seconds) * RATE))
                voiced += f0 is not None
                cents = 1e9 if f0 is None else 1200 * math.log2(f0 / 440) - 100 * (note.pitch - 69)
                right += abs(cents) <= 50
    return right / max(voiced, 1), voiced / max(total, 1)
