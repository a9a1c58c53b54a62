"""Writing audio files whose bytes depend on the samples alone.

libsndfile stamps the time of writing into float WAV files (the PEAK chunk), so those are written here by hand; FLAC and
integer WAV files are its own.
"""

import struct
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile

Subtype = Literal["PCM_16", "PCM_24", "FLOAT"]
_IEEE_FLOAT = 3


def write_audio(path: Path, wave: np.ndarray, sample_rate: int, *, subtype: Subtype = "PCM_16") -> None:
    """Write float32 ``wave`` [S] or [S, C] to ``path``, as WAV or FLAC by its suffix; makes missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if subtype == "FLOAT":
        path.write_bytes(_float_wav(wave, sample_rate))
    else:
        soundfile.write(path, wave, sample_rate, subtype=subtype)


def panned(wave: np.ndarray, left: float, right: float) -> np.ndarray:
    """Two channels [S, 2] of a mono ``wave`` [S]; gains of one sign never cancel in a mix to mono."""
    return np.stack([wave * np.float32(left), wave * np.float32(right)], axis=1)


def _float_wav(wave: np.ndarray, sample_rate: int) -> bytes:
    num_channels = 1 if wave.ndim == 1 else wave.shape[1]
    data = wave.astype("<f4").tobytes()
    frame_bytes = 4 * num_channels
    layout = struct.pack(
        "<HHIIHHH", _IEEE_FLOAT, num_channels, sample_rate, sample_rate * frame_bytes, frame_bytes, 32, 0
    )
    chunks = ((b"fmt ", layout), (b"fact", struct.pack("<I", len(wave))), (b"data", data))
    body = b"".join(name + struct.pack("<I", len(content)) + content for name, content in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body
