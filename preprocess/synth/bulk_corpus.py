"""Bulk corpora: thousands of clips at the price of fifty, for tests and benchmarks of everything but the sound.

Some base clips are sung once per sample rate; each clip is one of them, started elsewhere, wrapped around and given a
gain of its own. No two files hold equal samples, every length is what its score says, but the words are not what is
heard. Mixed with a -66 dBFS hiss, so that no cut through a rest is silent. One core writes 3,000 clips of 2 to 12 s
(5.8 h) as 16 kHz WAV in 8 s; as FLAC of 44.1 and 48 kHz it takes about 7 ms a clip.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile

from .annotation import score_fields
from .songs import LANGUAGES, random_score
from .timbre import VOICES
from .voice import sing

NUM_BASES = 48
"""Sung clips that all others are cut from, over all sample rates."""
HISS = 0.0005
FAST_FLAC = 0.0
"""libsndfile's compression level, 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkCorpus:
    """A corpus of type json_file that was written."""

    annotation_path: Path
    audio_root: Path
    num_clips: int
    seconds: float
    """Audio of all clips together."""


def write_bulk_corpus(
    root: Path,
    *,
    num_clips: int,
    seconds: tuple[float, float] = (2.0, 12.0),
    sample_rates: tuple[int, ...] = (44100, 48000),
    format: Literal["FLAC", "WAV"] = "FLAC",
    num_songs: int | None = None,
    seed: int = 0,
) -> BulkCorpus:
    """Write ``num_clips`` clips of even distribution over ``seconds`` to ``root``/audio and ``root``/annotations.json.

    Items are named ``Singer-1#song-0002#000017`` (song_id_indices 0 and 1 name the song), in ``num_songs`` songs (one
    for 20 clips by default). 16 bit mono; clip n has the n-th of ``sample_rates`` in turn.
    """
    rng = np.random.default_rng(seed)
    audio_root = root / "audio"
    songs = _song_names(num_songs or -(-num_clips // 20))
    for song in songs:
        (audio_root / song).mkdir(parents=True, exist_ok=True)
    bases = _sung_bases(num_clips, seconds[1], sample_rates, rng)
    items, total = [], 0.0
    for number in range(num_clips):
        sample_rate = sample_rates[number % len(sample_rates)]
        song = songs[int(rng.integers(len(songs)))]
        score = random_score(rng, LANGUAGES[number % len(LANGUAGES)], seconds=rng.uniform(*seconds))
        name = f"{song}/{number:06d}.{format.lower()}"
        base = bases[sample_rate][int(rng.integers(len(bases[sample_rate])))]
        samples = _cut(base, round(score.seconds * sample_rate), 0.4 + 0.6 * number / num_clips, rng)
        _write(audio_root / name, samples, sample_rate)
        items.append({"item_name": f"{song}#{number:06d}", "wav_fn": name, "bpm": score.bpm} | score_fields(score))
        total += len(samples) / sample_rate
    annotation_path = root / "annotations.json"
    annotation_path.write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    return BulkCorpus(annotation_path=annotation_path, audio_root=audio_root, num_clips=num_clips, seconds=total)


def _song_names(num_songs: int) -> list[str]:
    return [f"Singer-{song % 7 + 1}#song-{song:04d}" for song in range(num_songs)]


def _sung_bases(
    num_clips: int, seconds: float, sample_rates: tuple[int, ...], rng: np.random.Generator
) -> dict[int, list[np.ndarray]]:
    """float32 waves [S] of ``seconds`` or a little more, per sample rate."""
    num_each = max(1, -(-min(NUM_BASES, num_clips) // len(sample_rates)))
    return {rate: [_sung_base(rng, seconds, rate) for _ in range(num_each)] for rate in sample_rates}


def _sung_base(rng: np.random.Generator, seconds: float, sample_rate: int) -> np.ndarray:
    voice = list(VOICES.values())[int(rng.integers(len(VOICES)))]
    score = random_score(rng, "zh", seconds=seconds + 0.1, compass=(voice.low, voice.high))
    wave = sing(score, sample_rate=sample_rate, voice=voice, rng=rng)
    return wave + np.float32(HISS) * rng.standard_normal(len(wave), dtype=np.float32)


def _cut(base: np.ndarray, num_samples: int, gain: float, rng: np.random.Generator) -> np.ndarray:
    """int16 [num_samples] of ``base`` from a random place on, wrapped around."""
    start = int(rng.integers(len(base)))
    wave = np.concatenate([base[start:], base[:start]])[:num_samples]
    return (wave * np.float32(gain * 32767)).astype(np.int16)


def _write(path: Path, samples: np.ndarray, sample_rate: int) -> None:
    level = FAST_FLAC if path.suffix == ".flac" else None
    soundfile.write(path, samples, sample_rate, subtype="PCM_16", compression_level=level)
