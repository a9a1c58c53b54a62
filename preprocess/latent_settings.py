"""``latent_settings``: what, beside the audio's bytes, decides the latents of a clip; a part of the run's identity.

Two datasets whose values are equal hold latents that may stand beside each other, and for one another. Batch mates are
left out: they change the last float16 bit of some cells at most (docs/incremental.md).
"""

from collections.abc import Mapping

from .encode.protocol import EncoderInfo
from .plan.identity import Identity, Scalar, differences

_NAMES = ("weights", "precision", "compiled", "sample_rate", "hop_length", "patch_size", "latent_dim")


def latent_settings(identity: Identity, info: EncoderInfo) -> dict[str, Scalar]:
    """By name, as provenance.json keeps them: weights, precision, geometry, kind of device, length of windows."""
    encoder = {f"encoder.{name}": identity.values.get(f"encoder.{name}") for name in _NAMES}
    return {
        **encoder,
        "encoder.max_whole_samples": info.max_whole_samples,
        "device": identity.values.get("device"),
        "row_format": identity.values.get("row_format"),
    }


def latent_differences(old: Mapping[str, Scalar], new: Mapping[str, Scalar]) -> list[str]:
    """One line for people for each value that differs."""
    return differences(Identity(old), Identity(new))
