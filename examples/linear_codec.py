"""A closed-form linear codec written into an AudioVAE's weights: where the training of the bundled VAE begins.

With softened snakes and silent residual branches the network is linear, and its strided convolutions can carry whole
blocks of samples: a step at 1/80 of the rate has 128 channels for 80 samples. So the encoder can be any linear map of a
block of 640 samples to 64 latents (here: the principal components of the data), and the decoder any linear map of this
and the previous frame's latents to 640 samples (here: least squares). That is a low-pass of about 1 kHz that follows
the melody before the first step of training; a random start has to find it out first. The spare channels stay random.

Shapes: N frames, H samples per frame (640), D latents, C channels, K taps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from latentprep.preprocess.encode.audiovae.decoder import Decoder
from latentprep.preprocess.encode.audiovae.encoder import Encoder
from latentprep.preprocess.encode.audiovae.layers import Conv, ResidualUnit, Snake, TransposedConv

SOFT_ALPHA = 0.05
"""x + sin^2(ax)/a is x + a x^2 for small a: 5 % of second harmonic at full scale, and a gradient to grow by."""
SPARE_GAIN = 0.3


@dataclass(frozen=True, slots=True)
class LinearCodec:
    """Latents z_n = analysis x_n of unit variance; samples y_n = now z_n + before z_(n-1)."""

    analysis_DH: np.ndarray
    now_HD: np.ndarray
    before_HD: np.ndarray


def fit_linear_codec(waves: Sequence[np.ndarray], *, hop: int, dim: int, delay: int) -> LinearCodec:
    """Principal components of blocks that end ``delay`` samples before their frame does, and the best way back."""
    seen_NH = np.concatenate([_blocks(np.pad(wave, (delay, 0)), hop) for wave in waves])
    made_NH = np.concatenate([_blocks(wave, hop) for wave in waves])
    variances, vectors = np.linalg.eigh(seen_NH.T @ seen_NH / len(seen_NH))
    analysis_DH = (vectors[:, -dim:] / np.sqrt(variances[-dim:])).T[::-1]
    z_ND = seen_NH @ analysis_DH.T
    both_NE = np.concatenate([z_ND[1:], z_ND[:-1]], axis=1)
    gram = both_NE.T @ both_NE + 1e-4 * len(both_NE) * np.eye(2 * dim)
    way_EH = np.linalg.solve(gram, both_NE.T @ made_NH[1:])
    return LinearCodec(
        analysis_DH.astype(np.float32), way_EH[:dim].T.astype(np.float32), way_EH[dim:].T.astype(np.float32)
    )


def _blocks(wave: np.ndarray, hop: int) -> np.ndarray:
    return wave[: len(wave) // hop * hop].reshape(-1, hop).astype(np.float64)


@torch.no_grad()
def write_linear_codec(encoder: Encoder, decoder: Decoder, codec: LinearCodec) -> None:
    """Set all weights: the codec's in the first channels of each layer, small random ones in the others."""
    for module in [*encoder.modules(), *decoder.modules()]:
        if isinstance(module, Snake):
            nn.init.constant_(module.alpha, SOFT_ALPHA)
        elif isinstance(module, Conv | TransposedConv):
            nn.init.orthogonal_(module.weight, gain=SPARE_GAIN)
            nn.init.zeros_(module.bias)
    for module in [*encoder.modules(), *decoder.modules()]:
        if isinstance(module, ResidualUnit):
            module.block[3].weight.mul_(0.03)
    _write_encoder(encoder, torch.from_numpy(codec.analysis_DH))
    _write_decoder(decoder, torch.from_numpy(codec.now_HD), torch.from_numpy(codec.before_HD))


def _write_encoder(encoder: Encoder, analysis_DH: Tensor) -> None:
    entry, *blocks = encoder.block
    _reset(entry, 1)[0, 0, -1] = 1
    width = 1
    for block in blocks[:-1]:
        conv = block.block[-1]
        rate = conv.stride
        weight_CCK = _reset(conv, width * rate)
        for out in range(width * rate):
            weight_CCK[out, out % width, rate + out // width] = 1
        width *= rate
    last = blocks[-1].block[-1]
    dim = len(analysis_DH)
    steps_DKC = analysis_DH.reshape(dim, last.stride, width)
    _reset(last, dim)[:dim, :width, last.stride :] = steps_DKC.transpose(1, 2)
    _reset(encoder.fc_mu, dim)[:, :dim, -1] = torch.eye(dim)


def _write_decoder(decoder: Decoder, now_HD: Tensor, before_HD: Tensor) -> None:
    depthwise, pointwise, first, *blocks, _, last = decoder.model
    dim = now_HD.shape[1]
    depthwise.weight.zero_()[:, 0, -1] = 1
    _reset(pointwise, dim)[:dim, :, 0] = torch.eye(dim)
    up = first.block[1]
    width = len(now_HD) // up.stride
    both_KCD = torch.cat([now_HD, before_HD]).reshape(2 * up.stride, width, dim)
    up.weight[:, :width] = 0
    up.weight[:dim, :width] = both_KCD.permute(2, 1, 0)
    for block in blocks:
        up = block.block[1]
        narrow = width // up.stride
        up.weight[:, :narrow] = 0
        for channel in range(width):
            up.weight[channel, channel % narrow, channel // narrow] = 1
        width = narrow
    last.weight.zero_()[0, 0, -1] = 1


def _reset(conv: Conv, num_outputs: int) -> Tensor:
    """Weight of ``conv``, the first ``num_outputs`` outputs cleared."""
    conv.weight[:num_outputs] = 0
    return conv.weight
