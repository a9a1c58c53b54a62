"""``ChannelsLastEncoder``: the encoder as 2-D convolutions of height 1 on channels-last memory, for CPUs.

The same arithmetic as ``Encoder`` in another order of memory: [B, C, 1, T] channels-last lies as T rows of C values, so
a pointwise convolution is one plain matrix product and snake reads its alphas as a vector. VoxCPM2's size, one thread:
1.3 times as fast as ``Encoder`` when both run eager, and what the compiler makes the most of (docs/performance.md).

One module serves both ways. Eager, snake works in one temporary that is its output; compiled, it is written as plain
arithmetic, which the compiler fuses into one pass over memory, padding included.

Shapes: B clips, S samples, C channels, T steps, D latent dim, F latent frames.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .encoder import Encoder, EncoderBlock
from .layers import SNAKE_EPSILON, Conv, ResidualUnit, Snake
from .shapes import ENTRY_KERNEL, HEAD_KERNEL


class FlatSnake(nn.Module):
    """x + sin^2(alpha x) / (alpha + 1e-9) on [B, C, 1, T], followed by ``padding`` zeros on the left."""

    alpha: Tensor
    inverse: Tensor

    def __init__(self, snake: Snake, padding: int = 0) -> None:
        super().__init__()
        self.padding = padding
        self.register_buffer("alpha", snake.alpha.detach()[..., None].contiguous())
        self.register_buffer("inverse", (self.alpha + SNAKE_EPSILON).reciprocal())

    def forward(self, x_BC1T: Tensor) -> Tensor:
        """[B, C, 1, T] -> [B, C, 1, padding + T]. The input is not changed."""
        if torch.compiler.is_compiling():
            y_BC1T = x_BC1T + (self.alpha * x_BC1T).sin().square() * self.inverse
            return F.pad(y_BC1T, (self.padding, 0)) if self.padding else y_BC1T
        size = (*x_BC1T.shape[:-1], self.padding + x_BC1T.shape[-1])
        padded = torch.empty(size, dtype=x_BC1T.dtype, device=x_BC1T.device, memory_format=torch.channels_last)
        padded[..., : self.padding] = 0
        out = padded[..., self.padding :]
        torch.mul(x_BC1T, self.alpha, out=out)
        out.sin_().square_()
        torch.addcmul(x_BC1T, out, self.inverse, out=out)
        return padded


class FlatConv(nn.Module):
    """A convolution along T of an input that is padded already."""

    weight: Tensor
    bias: Tensor

    def __init__(self, conv: Conv) -> None:
        super().__init__()
        weight = conv.weight.detach()[:, :, None].contiguous(memory_format=torch.channels_last)
        self.register_buffer("weight", weight)
        self.register_buffer("bias", conv.bias.detach())
        self.stride, self.dilation, self.groups = (1, conv.stride), (1, conv.dilation), conv.groups

    def forward(self, x_BC1T: Tensor) -> Tensor:
        return F.conv2d(x_BC1T, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class FlatResidualUnit(nn.Module):
    """x + (snake, dilated depthwise convolution, snake, pointwise convolution)(x)."""

    def __init__(self, unit: ResidualUnit) -> None:
        super().__init__()
        snake, depthwise, snake_between, pointwise = unit.block
        assert isinstance(snake, Snake)
        assert isinstance(depthwise, Conv)
        assert isinstance(snake_between, Snake)
        assert isinstance(pointwise, Conv)
        self.branch = nn.Sequential(
            FlatSnake(snake, unit.padding), FlatConv(depthwise), FlatSnake(snake_between), FlatConv(pointwise)
        )

    def forward(self, x_BC1T: Tensor) -> Tensor:
        y_BC1T = self.branch(x_BC1T)
        return y_BC1T + x_BC1T if torch.compiler.is_compiling() else y_BC1T.add_(x_BC1T)


class ChannelsLastEncoder(nn.Module):
    """``Encoder`` with its weights, for inference only."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        entry, *blocks = encoder.block
        assert isinstance(entry, Conv)
        layers: list[nn.Module] = [FlatConv(entry)]
        for block in blocks:
            assert isinstance(block, EncoderBlock)
            layers += _flat_block(block)
        self.layers = nn.Sequential(*layers)
        self.fc_mu = FlatConv(encoder.fc_mu)

    def forward(self, wav_B1S: Tensor) -> Tensor:
        """[B, 1, S], S a multiple of the hop length -> mean latents [B, D, F]."""
        padded = F.pad(wav_B1S[:, :, None], (ENTRY_KERNEL - 1, 0)).contiguous(memory_format=torch.channels_last)
        return self.fc_mu(F.pad(self.layers(padded), (HEAD_KERNEL - 1, 0)))[:, :, 0]


def _flat_block(block: EncoderBlock) -> list[nn.Module]:
    *units, snake, downsample = block.block
    assert isinstance(snake, Snake)
    assert isinstance(downsample, Conv)
    flat = [FlatResidualUnit(unit) for unit in units if isinstance(unit, ResidualUnit)]
    return [*flat, FlatSnake(snake, block.padding), FlatConv(downsample)]
