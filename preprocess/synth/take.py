"""``Take``: what one clip of the demo is to be: who sings what, how long, and in which kind of file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from .audio_file import Subtype, panned, write_audio
from .songs import Language, random_score
from .sung_score import SungScore
from .timbre import VOICES
from .voice import sing

_PAN = (0.9, 0.65)


@dataclass(frozen=True, slots=True)
class Take:
    """One good clip. Positional, because takes are written as a table."""

    song: str
    """Folder of the song, as the corpus spells it."""
    segment: str
    language: Language
    voice: str
    """Key of ``VOICES``."""
    seconds: float
    sample_rate: int
    channels: Literal[1, 2]
    suffix: Literal["wav", "flac"]
    subtype: Subtype

    @property
    def file_name(self) -> str:
        return f"{self.segment}.{self.suffix}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoFile:
    """A good audio file of the demo, and what it holds."""

    path: Path
    sample_rate: int
    channels: int
    subtype: Subtype
    score: SungScore


def record(take: Take, path: Path, rng: np.random.Generator, *, bpm: int | None = None) -> DemoFile:
    """Invent a score for ``take``, sing it and write it to ``path``."""
    voice = VOICES[take.voice]
    score = random_score(rng, take.language, seconds=take.seconds, compass=(voice.low, voice.high), bpm=bpm)
    wave = sing(score, sample_rate=take.sample_rate, voice=voice, rng=rng)
    write_audio(path, panned(wave, *_PAN) if take.channels == 2 else wave, take.sample_rate, subtype=take.subtype)
    return DemoFile(path=path, sample_rate=take.sample_rate, channels=take.channels, subtype=take.subtype, score=score)
