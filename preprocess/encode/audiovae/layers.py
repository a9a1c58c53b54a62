"""The parts AudioVAE is made of: snake, causal convolutions, the residual unit.

Every module has one folded weight instead of weight norm's pair, and takes its left padding from whoever makes its
input: ``Snake`` writes into a tensor that already begins with the next convolution's zeros, which saves a copy of
every activation. Without gradients snake works in one temporary; with gradients (training of the bundled VAE) the same
modules use ordinary differentiable operations. Parameter names equal the checkpoint's with ``weight`` in place of
``weight_g`` and ``weight_v``.

Shapes: B clips, C channels, T steps at the layer's resolution.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .shapes import DILATIONS, ENTRY_KERNEL

SNAKE_EPSILON = 1e-9
"""Keeps the division finite for alpha = 0; the value the checkpoints were trained with."""


class Snake(nn.Module):
    """x + sin^2(alpha x) / (alpha + 1e-9), one alpha a channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x_BCT: Tensor, padding: int = 0) -> Tensor:
        """Activate [B, C, T] and put ``padding`` zeros on the left: [B, C, padding + T]. The input is not changed."""
        inverse = (self.alpha + SNAKE_EPSILON).reciprocal()
        if torch.is_grad_enabled():
            return F.pad(x_BCT + (self.alpha * x_BCT).sin().square() * inverse, (padding, 0))
        size = (*x_BCT.shape[:-1], padding + x_BCT.shape[-1])
        padded = x_BCT.new_empty(size)
        padded[..., :padding] = 0
        out = padded[..., padding:]
        torch.mul(x_BCT, self.alpha, out=out)
        out.sin_().square_()
        torch.addcmul(x_BCT, out, inverse, out=out)
        return padded


class Conv(nn.Module):
    """A convolution of an input that is padded already."""

    def __init__(
        self, channels_in: int, channels_out: int, kernel: int, *, stride: int = 1, dilation: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in // groups, kernel))
        self.bias = nn.Parameter(torch.empty(channels_out))
        self.stride, self.dilation, self.groups = stride, dilation, groups

    def forward(self, x_BCT: Tensor) -> Tensor:
        return F.conv1d(x_BCT, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class TransposedConv(nn.Module):
    """A causal transposed convolution of kernel 2 * stride: what would reach beyond stride * T is cut off."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_in, channels_out, 2 * stride))
        self.bias = nn.Parameter(torch.empty(channels_out))
        self.stride = stride

    def forward(self, x_BCT: Tensor) -> Tensor:
        """[B, C_in, T] -> [B, C_out, stride * T]."""
        return F.conv_transpose1d(x_BCT, self.weight, self.bias, self.stride)[..., : -self.stride]


class ResidualUnit(nn.Module):
    """x + (snake, dilated depthwise convolution, snake, pointwise convolution)(x)."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.padding = (ENTRY_KERNEL - 1) * dilation
        self.block = nn.ModuleList(
            [
                Snake(channels),
                Conv(channels, channels, ENTRY_KERNEL, dilation=dilation, groups=channels),
                Snake(channels),
                Conv(channels, channels, 1),
            ]
        )

    def forward(self, x_BCT: Tensor) -> Tensor:
        snake, depthwise, snake_between, pointwise = self.block
        y_BCT = pointwise(snake_between(depthwise(snake(x_BCT, self.padding))))
        return y_BCT + x_BCT if torch.is_grad_enabled() else y_BCT.add_(x_BCT)


def residual_units(channels: int) -> list[ResidualUnit]:
    """The three units of a block, dilations 1, 3, 9."""
    return [ResidualUnit(channels, dilation) for dilation in DILATIONS]
