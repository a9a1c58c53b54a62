"""The geometry of a latent and every conversion between audio samples, latent frames, patches and seconds.

Nothing else in the project divides by a frame rate: a constant 25.0 that is right for one VAE is silently wrong for
the next one. The numbers come from the checkpoint's own configuration (see preprocess/encode).
"""

import math
from dataclasses import dataclass

import numpy as np


def ceil_div(numerator: int, denominator: int) -> int:
    """Integer division rounded up, for non-negative numbers."""
    return -(-numerator // denominator)


@dataclass(frozen=True, kw_only=True, slots=True)
class LatentSpec:
    """What one VAE makes of audio."""

    sample_rate: int
    """Hz of the waveform that the VAE's encoder takes."""
    hop_length: int
    """Audio samples per latent frame."""
    patch_size: int
    """Latent frames per patch (P)."""
    latent_dim: int
    """Values per latent frame (D)."""

    @property
    def patch_samples(self) -> int:
        """Audio samples per patch."""
        return self.hop_length * self.patch_size

    @property
    def frame_rate(self) -> float:
        """Latent frames per second; 25.0 for VoxCPM2."""
        return self.sample_rate / self.hop_length


def num_patches(num_samples: int, spec: LatentSpec) -> int:
    """Patches of ``num_samples`` samples at the VAE's rate, after zero padding up to a whole patch."""
    return ceil_div(num_samples, spec.patch_samples)


def num_latent_frames(num_samples: int, spec: LatentSpec) -> int:
    """Latent frames after zero padding up to a whole patch."""
    return num_patches(num_samples, spec) * spec.patch_size


def padded_samples(num_samples: int, spec: LatentSpec) -> int:
    """Samples after zero padding up to a whole patch."""
    return num_patches(num_samples, spec) * spec.patch_samples


def frames_to_seconds(num_frames: int, spec: LatentSpec) -> float:
    """Seconds of audio that ``num_frames`` latent frames stand for."""
    return num_frames * spec.hop_length / spec.sample_rate


def samples_to_seconds(num_samples: int, sample_rate: int) -> float:
    """Seconds of ``num_samples`` audio samples at ``sample_rate`` Hz."""
    return num_samples / sample_rate


def resampled_length(num_samples: int, rate_in: int, rate_out: int) -> int:
    """Length that ``torchaudio.functional.resample`` gives: ceil(num_samples * rate_out / rate_in).

    It rounds the quotient to float32 first, which takes a sample off some clips (3 of 1,200 lengths of 2 to 18 s).
    """
    divisor = math.gcd(rate_in, rate_out)
    orig, new = rate_in // divisor, rate_out // divisor
    if orig == new:
        return num_samples
    filtered = new * (num_samples // orig + 1)
    return min(math.ceil(np.float32(new * num_samples / orig)), filtered)
