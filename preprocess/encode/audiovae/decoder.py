"""``Decoder``: latents back to a waveform. For listening, never part of a run that writes rows.

V2 is conditioned: in front of each block the channels are scaled and shifted by embeddings of the bin that the output
sample rate falls into. That rate is the checkpoint's, so the bin is fixed when the module is built.

Shapes: B clips, D latent dim, F latent frames, C channels, T steps, S = F * product of the decoder rates.
"""

from bisect import bisect_left

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import AudioVaeConfig
from .layers import Conv, Snake, TransposedConv, residual_units
from .shapes import ENTRY_KERNEL


class RateCondition(nn.Module):
    """Scale and bias of one block's input, a row for each bin of output rates."""

    def __init__(self, num_bins: int, channels: int, rate_bin: int) -> None:
        super().__init__()
        self.scale_embed = nn.Embedding(num_bins, channels)
        self.bias_embed = nn.Embedding(num_bins, channels)
        self.rate_bin = rate_bin

    def forward(self, x_BCT: Tensor) -> Tensor:
        scale_C1 = self.scale_embed.weight[self.rate_bin, :, None]
        bias_C1 = self.bias_embed.weight[self.rate_bin, :, None]
        return x_BCT * scale_C1 + bias_C1


class DecoderBlock(nn.Module):
    """Snake, a transposed convolution that halves the channels, three residual units."""

    def __init__(self, channels: int, rate: int) -> None:
        super().__init__()
        half = channels // 2
        self.block = nn.ModuleList([Snake(channels), TransposedConv(channels, half, rate), *residual_units(half)])

    def forward(self, x_BCT: Tensor) -> Tensor:
        for layer in self.block:
            x_BCT = layer(x_BCT)
        return x_BCT


class Decoder(nn.Module):
    """The decoder of one configuration, its parameters unset until a state is loaded."""

    def __init__(self, config: AudioVaeConfig) -> None:
        super().__init__()
        channels = config.decoder_channels()
        blocks = [DecoderBlock(width, rate) for width, rate in zip(channels[:-1], config.decoder_rates, strict=True)]
        self.model = nn.ModuleList(
            [
                Conv(config.latent_dim, config.latent_dim, ENTRY_KERNEL, groups=config.latent_dim),
                Conv(config.latent_dim, channels[0], 1),
                *blocks,
                Snake(channels[-1]),
                Conv(channels[-1], 1, ENTRY_KERNEL),
            ]
        )
        self.sr_cond_model = _conditions(config)

    def forward(self, z_BDF: Tensor) -> Tensor:
        """[B, D, F] -> waveform [B, 1, S] in -1..1."""
        depthwise, pointwise, *blocks, snake, last = self.model
        x_BCT = pointwise(depthwise(F.pad(z_BDF, (ENTRY_KERNEL - 1, 0))))
        for i, block in enumerate(blocks):
            key = _condition_key(i)
            if key in self.sr_cond_model:
                x_BCT = self.sr_cond_model[key](x_BCT)
            x_BCT = block(x_BCT)
        return torch.tanh(last(snake(x_BCT, ENTRY_KERNEL - 1)))


def _condition_key(block: int) -> str:
    """Name of a block's conditioning: the block's position in ``Decoder.model``."""
    return str(block + 2)


def _conditions(config: AudioVaeConfig) -> nn.ModuleDict:
    if config.sr_bin_boundaries is None:
        return nn.ModuleDict()
    num_bins = len(config.sr_bin_boundaries) + 1
    rate_bin = bisect_left(config.sr_bin_boundaries, config.out_sample_rate)
    widths = config.decoder_channels()[:-1]
    return nn.ModuleDict(
        {_condition_key(i): RateCondition(num_bins, width, rate_bin) for i, width in enumerate(widths)}
    )
