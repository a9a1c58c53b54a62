"""Sounds, and files that break in every way that audio files break."""

import io
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from latentprep.core.units import LatentSpec

SPEC = LatentSpec(sample_rate=16_000, hop_length=640, patch_size=4, latent_dim=64)
"""The geometry of VoxCPM2: a patch has 2,560 samples."""

Wave = npt.NDArray[np.float32]


def tone(seconds: float = 1.0, rate: int = 16_000, amplitude: float = 0.3) -> Wave:
    """A sine of 220 Hz with a little noise, so that no codec finds it trivial; [S] float32."""
    time = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(0).normal(size=len(time)) * 0.02
    return (amplitude * (np.sin(2 * np.pi * 220 * time) + noise)).astype(np.float32)


def encode(
    wave: npt.NDArray[np.floating], rate: int = 16_000, format: str = "WAV", subtype: str | None = None
) -> bytes:
    """The bytes of an audio file; ``wave`` is [S] or [S, C]."""
    buffer = io.BytesIO()
    soundfile.write(buffer, wave, rate, format=format, subtype=subtype)
    return buffer.getvalue()


def with_data_size(wav: bytes, size: int) -> bytes:
    """A WAV with another number in its data chunk's size field."""
    start = wav.index(b"data") + 4
    return wav[:start] + struct.pack("<I", size) + wav[start + 4 :]


def with_flac_total(flac: bytes, total: int) -> bytes:
    """A FLAC with another number of samples in its STREAMINFO."""
    packed = int.from_bytes(flac[18:26]) >> 36 << 36 | total
    return flac[:18] + packed.to_bytes(8) + flac[26:]


def with_mp3_count(mp3: bytes, count: int) -> bytes:
    """An MP3 with another number of frames in its Xing header."""
    start = mp3.index(b"Xing") + 8
    return mp3[:start] + count.to_bytes(4) + mp3[start + 4 :]


def without_xing(mp3: bytes) -> bytes:
    """An MP3 from its second frame on."""
    return mp3[mp3.index(mp3[:2], 2) :]


def with_wav_rate(wav: bytes, rate: int) -> bytes:
    """A WAV that states another sample rate."""
    return wav[:24] + struct.pack("<I", rate) + wav[28:]


def rf64(wave: Wave, rate: int = 16_000) -> bytes:
    """An RF64 file: its sizes stand in a ds64 chunk."""
    return encode(wave, rate, "RF64", "PCM_16")


def extensible(wave: Wave, rate: int = 16_000) -> bytes:
    """A WAVE_FORMAT_EXTENSIBLE file."""
    return encode(wave, rate, "WAVEX", "PCM_24")


def put(folder: Path, name: str, content: bytes) -> str:
    """Write a file; returns its path."""
    path = folder / name
    path.write_bytes(content)
    return str(path)
