"""How far a latent frame, or a decoded sample, looks to its left. Plain arithmetic on the configuration.

The answer makes windows exact: a window that begins this much earlier than the first frame kept from it gives that
frame the same inputs as the whole clip does. VoxCPM2's encoder: 9,272 samples = 15 frames.
"""

from ....core.units import ceil_div
from .config import AudioVaeConfig
from .shapes import DILATIONS, ENTRY_KERNEL, HEAD_KERNEL

_RESIDUAL = sum((ENTRY_KERNEL - 1) * dilation for dilation in DILATIONS)
"""Steps that three residual units look back at their own resolution."""


def encoder_context_samples(config: AudioVaeConfig) -> int:
    """Samples before a frame's first one that the frame depends on (left padding beyond the stride included)."""
    context = HEAD_KERNEL - 1
    for rate in reversed(config.encoder_rates):
        context = context * rate + config.entry_padding(rate) + _RESIDUAL
    return context + ENTRY_KERNEL - 1


def encoder_context_frames(config: AudioVaeConfig) -> int:
    """Whole latent frames of left context with which the encoder is exact."""
    return ceil_div(encoder_context_samples(config), config.hop_length)


def decoder_context_frames(config: AudioVaeConfig) -> int:
    """Whole latent frames of left context with which the decoder is exact."""
    context = ENTRY_KERNEL - 1
    for rate in reversed(config.decoder_rates):
        context = ceil_div(context + _RESIDUAL, rate) + 1
    return context + ENTRY_KERNEL - 1
