"""What an encoder is: its geometry and limits (plain data, made without torch) and the calls that need torch.

The parent process plans with an ``EncoderInfo`` alone; a worker builds the ``LatentEncoder`` on its device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ...core.units import LatentSpec

DeviceKind = Literal["cpu", "cuda"]
Precision = Literal["float32", "tf32", "bf16"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderInfo:
    """What the plan needs to know of an encoder. Made without torch."""

    name: str
    """Key of the registry: voxcpm, tiny, dummy."""
    spec: LatentSpec
    stated_rate: float | None
    """Times real time on the kind of device of this run; None = unbounded (dummy). Sizes chunks, so it is a constant
    of encoder and device kind, never a measurement."""
    max_batch_samples: int
    """Limit on *padded* audio samples of one encoder call on this kind of device."""
    max_whole_samples: int
    """Clips of more samples than this are encoded in windows with left context."""
    weights_hash: str
    """xxh3-128 of the weights file and of the configuration that gives them meaning; part of the plan's identity."""
    checkpoint: str
    """Folder the weights come from, for messages."""


@dataclass(frozen=True, slots=True)
class Latents:
    """What the encoder made of one clip."""

    frames_FD: npt.NDArray[np.float16]
    """[F, D] float16, F a whole number of patches."""
    peak: float
    """Largest absolute latent in float32 before the cast; NaN or inf if any latent is not finite."""
    windowed: bool = False
    """The clip went through in windows."""


class LatentEncoder(Protocol):
    """A VAE on one device."""

    info: EncoderInfo

    def encode(self, waveforms: Sequence[npt.NDArray[np.float32]]) -> list[Latents]:
        """Encode mono waveforms [S_i] at ``info.spec.sample_rate`` as one batch.

        Each is padded with zeros at its end to a whole number of patches, then to the longest of the batch. Waveforms
        of more than ``info.max_whole_samples`` samples must come alone and are encoded in windows.
        """
        ...

    def decode(self, frames_FD: npt.NDArray[np.float16]) -> tuple[npt.NDArray[np.float32], int]:
        """Turn latents [F, D] back into a mono waveform [S]; returns it with its sample rate in Hz."""
        ...


@runtime_checkable
class MeasuredEncoder(LatentEncoder, Protocol):
    """An encoder that knows what its precision costs."""

    def measure_precision_error(self) -> float:
        """Largest difference of its latents from strict float32 on probe clips, over their largest value."""
        ...


@runtime_checkable
class WindowedEncoder(LatentEncoder, Protocol):
    """An encoder that can take a clip in windows of any length: what is left when not even one clip fits into memory."""

    @property
    def min_window_samples(self) -> int:
        """Samples of the shortest window that makes sense: half of it is context, encoded twice."""
        ...

    def encode_windowed(self, waveform: npt.NDArray[np.float32], window_samples: int) -> Latents:
        """Encode one waveform [S] in windows of at most ``window_samples`` samples, fewer than S in whole patches.

        Raises ValueError if the waveform needs no windows of that length, or they would hold nothing but context.
        """
        ...
