"""``DummyEncoder``: latents that cost nothing, to measure and to test everything around the VAE.

VoxCPM2's geometry. A frame takes every tenth sample of its 640 and adds half of the frame before it: a function of the
clip's own samples alone, that shows a swapped, shifted, cut or wrongly padded clip. Far over 100,000 times real time,
where FLAC is decoded at about 1,400. The samples can't be got back.

Shapes: F latent frames, D latent dim.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...core.errors import UsageError
from ...core.units import LatentSpec, num_latent_frames
from .protocol import EncoderInfo, Latents

DUMMY_SPEC = LatentSpec(sample_rate=16_000, hop_length=640, patch_size=4, latent_dim=64)
_STRIDE = DUMMY_SPEC.hop_length // DUMMY_SPEC.latent_dim
_SCALE = np.float32(4.0)
"""Brings samples of -1..1 to the range of real latents."""
_BATCH_SAMPLES = 600 * DUMMY_SPEC.sample_rate // DUMMY_SPEC.patch_samples * DUMMY_SPEC.patch_samples
"""Ten minutes of audio, 38 MB: keeps batches within a worker's budget of decoded bytes."""


class DummyEncoder:
    """A ``LatentEncoder`` without a network, on any device."""

    def __init__(self, info: EncoderInfo) -> None:
        self.info = info

    def encode(self, waveforms: Sequence[npt.NDArray[np.float32]]) -> list[Latents]:
        """See ``LatentEncoder.encode``; a clip of any length may come beside others."""
        return [_latents(wav) for wav in waveforms]

    def decode(self, frames_FD: npt.NDArray[np.float16]) -> tuple[npt.NDArray[np.float32], int]:
        """Always raises ``UsageError``."""
        raise UsageError(
            "latents of the dummy encoder can't be decoded",
            why="they hold every tenth sample, not a compressed sound",
            fix="run with encoder.name tiny or voxcpm to listen to the result",
        )


def describe_dummy() -> EncoderInfo:
    """What planning needs to know; the same for every device."""
    return EncoderInfo(
        name="dummy",
        spec=DUMMY_SPEC,
        stated_rate=None,
        max_batch_samples=_BATCH_SAMPLES,
        max_whole_samples=_BATCH_SAMPLES,
        weights_hash="dummy-1",
        checkpoint="(none)",
    )


def _latents(wav: npt.NDArray[np.float32]) -> Latents:
    """[S] -> [F, D]; a loud sample beyond float16's range becomes inf and shows in the peak, as with a real VAE."""
    num_frames = num_latent_frames(len(wav), DUMMY_SPEC)
    picked = np.zeros((num_frames, DUMMY_SPEC.latent_dim), np.float32)
    picked.reshape(-1)[: -(-len(wav) // _STRIDE)] = wav[::_STRIDE]
    picked *= _SCALE
    picked[1:] += 0.5 * picked[:-1]
    with np.errstate(over="ignore"):
        half = picked.astype(np.float16)
    return Latents(half, float(np.abs(picked).max(initial=0.0)))
