"""``Encoder``: waveform to the mean of the latent distribution.

Causal: all padding stands on the left, so what follows a sample can't change the frames before it. The second head,
fc_logvar, exists only in training (``with_logvar``): a stored latent is the mean, not a sample.

Shapes: B clips, S samples, C channels, T steps, D latent dim, F latent frames = S / hop length.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from .config import AudioVaeConfig
from .layers import Conv, Snake, residual_units
from .shapes import ENTRY_KERNEL, HEAD_KERNEL


class EncoderBlock(nn.Module):
    """Three residual units, snake, and a strided convolution that doubles the channels."""

    def __init__(self, channels: int, rate: int, padding: int) -> None:
        super().__init__()
        self.padding = padding
        self.block = nn.ModuleList(
            [*residual_units(channels), Snake(channels), Conv(channels, 2 * channels, 2 * rate, stride=rate)]
        )

    def forward(self, x_BCT: Tensor) -> Tensor:
        *units, snake, downsample = self.block
        for unit in units:
            x_BCT = unit(x_BCT)
        return downsample(snake(x_BCT, self.padding))


class Encoder(nn.Module):
    """The encoder of one configuration, its parameters unset until a state is loaded."""

    def __init__(self, config: AudioVaeConfig, *, with_logvar: bool = False) -> None:
        super().__init__()
        channels = config.encoder_channels()
        self.block = nn.ModuleList(
            [
                Conv(1, channels[0], ENTRY_KERNEL),
                *(
                    EncoderBlock(width, rate, config.entry_padding(rate))
                    for width, rate in zip(channels[:-1], config.encoder_rates, strict=True)
                ),
            ]
        )
        self.fc_mu = Conv(channels[-1], config.latent_dim, HEAD_KERNEL)
        self.fc_logvar = Conv(channels[-1], config.latent_dim, HEAD_KERNEL) if with_logvar else None

    def features(self, wav_B1S: Tensor) -> Tensor:
        """[B, 1, S] -> what both heads take, [B, C, 2 + F]: their left padding is in it."""
        entry, *blocks = self.block
        x_BCT = entry(F.pad(wav_B1S, (ENTRY_KERNEL - 1, 0)))
        for block in blocks:
            x_BCT = block(x_BCT)
        return F.pad(x_BCT, (HEAD_KERNEL - 1, 0))

    def forward(self, wav_B1S: Tensor) -> Tensor:
        """[B, 1, S], S a multiple of the hop length -> mean latents [B, D, F]."""
        return self.fc_mu(self.features(wav_B1S))
