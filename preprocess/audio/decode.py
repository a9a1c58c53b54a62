"""``decode``: one audio file becomes the waveform that the encoder takes, or a fault, and facts about it.

The file is read once from its disk in full, and hashed; libsndfile then decodes it from the page cache through the
same descriptor. With all checks that takes 4 % (FLAC) to 8 % (WAV) longer than ``soundfile.read`` and resampling
alone, and stereo 1.5 to 2 times less, as numpy's ``mean`` over two channels is slow. In return an I/O error is an
error (libsndfile takes it for the end), a file can't change between hash and samples, and no thread waits for Python's
lock while it decodes, as it would with bytes handed over through callbacks.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.errors import ClipFault, FaultCode, Stage, WarningCode
from ...core.units import LatentSpec
from ..config import AudioSettings
from ..encode.memory import is_out_of_memory
from .content import Content, read_content, require_unchanged
from .header import AudioHeader, check_sample_rate
from .mp3 import is_mpeg, parse_mp3, tag_bytes, with_true_count
from .ogg import CAPTURE, MAX_PAGE_BYTES, ends_early
from .regular_file import RegularFile
from .resample import resample
from .riff import WavLayout, parse_wav
from .samples import Samples, read_samples

SILENCE = 1e-4
"""-80 dBFS: a peak below this is silence."""

CANCELLED_DROP, CANCELLED_RMS = 1e-2, 1e-3
"""Channels cancel if mixing takes 40 dB of their RMS and leaves less than -60 dBFS."""

LENGTH_TOLERANCE = 0.5
"""Seconds by which decoded and expected length may differ without a word."""

_NO_WAVE = np.zeros(0, np.float32)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class DecodedAudio:
    """A clip's waveform and the facts that its row keeps."""

    wave: npt.NDArray[np.float32]
    """[S] mono at the encoder's rate; empty after ``without_wave``."""
    num_samples: int
    """S."""
    file_size: int
    """Bytes."""
    audio_hash: str
    """xxh3-128 of the file's bytes, 32 hexadecimal digits."""
    source_rate: int
    """Hz, as stored."""
    channels: int
    """As stored."""
    num_frames: int
    """Decoded samples per channel, before resampling."""
    peak: float
    """Largest absolute sample of any channel, 1.0 = full scale."""
    rms: float
    """Root mean square of the mono waveform before resampling."""
    warnings: tuple[WarningCode, ...] = ()
    """TRUNCATED, LENGTH_MISMATCH, LOUD, UPSAMPLED, SYMLINKED (the file itself is a link)."""
    read_seconds: float = 0.0
    """Of its decoding: opening, reading and hashing the file. No fact of the clip."""

    def without_wave(self) -> "DecodedAudio":
        """The facts alone, to keep after encoding."""
        return replace(self, wave=_NO_WAVE)


def decode(path: str, spec: LatentSpec, settings: AudioSettings, hint: AudioHeader | None = None) -> DecodedAudio:
    """Read, check, mix and resample one file.

    ``hint`` is what the plan knows: another size or modification time is a fault, another length a warning.
    Raises ClipFault (stage decode): missing_audio, not_a_file, unreadable, empty_file, changed, not_audio, too_long,
    no_samples, not_finite, silent, phase_cancelled, too_short, no_memory.
    """
    try:
        return _decode(path, spec, settings, hint)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    raise ClipFault(Stage.DECODE, FaultCode.NO_MEMORY, f"{path}: the host's memory does not suffice to decode it")


def _decode(path: str, spec: LatentSpec, settings: AudioSettings, hint: AudioHeader | None) -> DecodedAudio:
    began = time.perf_counter()
    with RegularFile(path, Stage.DECODE) as file:
        require_unchanged(file, hint)
        content = read_content(file)
        read_seconds = time.perf_counter() - began
        layout = parse_wav(content.head)
        samples = read_samples(file, settings.max_duration, _repaired(file, layout, content.head))
        truncated = _is_truncated(file, content, layout, samples)
    _check_length(path, samples, settings)
    mono = samples.mono()
    rms = samples.channel_rms if samples.channels == 1 else math.sqrt(float(np.dot(mono, mono)) / len(mono))
    _check_level(path, samples, mono, rms)
    wave = resample(mono, samples.sample_rate, spec.sample_rate)
    if len(wave) < spec.patch_samples:
        _refuse(FaultCode.TOO_SHORT, f"{path} has {len(wave)} samples, a patch {spec.patch_samples}")
    return DecodedAudio(
        wave=wave,
        num_samples=len(wave),
        file_size=file.size,
        audio_hash=content.hash,
        source_rate=samples.sample_rate,
        channels=samples.channels,
        num_frames=samples.num_frames,
        peak=samples.peak,
        rms=rms,
        warnings=_warnings(file, samples, spec, hint, truncated),
        read_seconds=read_seconds,
    )


def _repaired(file: RegularFile, layout: WavLayout | None, head: bytes) -> bytes | None:
    """The file's bytes with a length that libsndfile can believe, where it would give fewer samples than there are."""
    if layout is not None:
        return _repaired_wav(file, layout)
    if not is_mpeg(head):
        return None
    content = file.pread(file.size)
    mp3 = parse_mp3(content, tag_bytes(content))
    return with_true_count(content, mp3) if mp3 is not None else None


def _repaired_wav(file: RegularFile, layout: WavLayout) -> bytes | None:
    """A WAV whose size field was left at 0, with its true size."""
    if layout.stated_bytes or not layout.available_bytes(file.size):
        return None
    size = min(layout.available_bytes(file.size), 0xFFFFFFFF)
    content = bytearray(file.pread(file.size))
    content[layout.data_offset - 4 : layout.data_offset] = size.to_bytes(4, "little")
    return bytes(content)


def _is_truncated(file: RegularFile, content: Content, layout: WavLayout | None, samples: Samples) -> bool:
    if samples.is_cut:
        return True
    # libsndfile fits the length of a WAV or an Ogg file to its size without a word.
    if layout is not None:
        return layout.is_unfinished(file.size)
    if content.head.startswith(CAPTURE):
        return ends_early(file.pread(MAX_PAGE_BYTES, max(0, file.size - MAX_PAGE_BYTES)))
    return samples.is_short


def _check_length(path: str, samples: Samples, settings: AudioSettings) -> None:
    check_sample_rate(samples.sample_rate, path, Stage.DECODE)
    if samples.num_frames == 0:
        _refuse(FaultCode.NO_SAMPLES, f"{path} decodes to no samples")
    limit = settings.max_duration
    if limit is not None and samples.num_frames > limit * samples.sample_rate:
        _refuse(FaultCode.TOO_LONG, f"{path} is longer than max_duration, {limit:g} s")


def _check_level(path: str, samples: Samples, mono: npt.NDArray[np.float32], rms: float) -> None:
    if not math.isfinite(samples.peak):
        _refuse(FaultCode.NOT_FINITE, f"{path} holds NaN or infinite samples")
    if samples.peak < SILENCE:
        _refuse(FaultCode.SILENT, f"{path} is silent: its peak is {samples.peak:.2g}")
    if samples.channels == 1:
        return
    if rms < CANCELLED_RMS and rms < CANCELLED_DROP * samples.channel_rms:
        levels = f"RMS {samples.channel_rms:.2g} before, {rms:.2g} after"
        _refuse(FaultCode.PHASE_CANCELLED, f"{path}: its channels cancel each other when mixed: {levels}")
    if not np.any(np.abs(mono) >= SILENCE):
        _refuse(FaultCode.SILENT, f"{path} is silent when mixed to mono")


def _warnings(
    file: RegularFile, samples: Samples, spec: LatentSpec, hint: AudioHeader | None, truncated: bool
) -> tuple[WarningCode, ...]:
    found: list[WarningCode] = []
    if truncated:
        found.append(WarningCode.TRUNCATED)
    if hint is not None and hint.num_frames is not None and hint.sample_rate:
        expected = hint.num_frames / hint.sample_rate
        if abs(expected - samples.num_frames / samples.sample_rate) > LENGTH_TOLERANCE:
            found.append(WarningCode.LENGTH_MISMATCH)
    if samples.peak > 1.0:
        found.append(WarningCode.LOUD)
    if samples.sample_rate < spec.sample_rate:
        found.append(WarningCode.UPSAMPLED)
    if file.is_link:
        found.append(WarningCode.SYMLINKED)
    return tuple(found)


def _refuse(code: FaultCode, message: str) -> None:
    raise ClipFault(Stage.DECODE, code, message)
