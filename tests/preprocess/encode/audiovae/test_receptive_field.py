"""The computed left context is enough, and one frame less is not: both are measured on the network itself."""

from pathlib import Path

import pytest
import torch

from latentprep.preprocess.encode.audiovae.checkpoint import open_checkpoint
from latentprep.preprocess.encode.audiovae.config import read_config
from latentprep.preprocess.encode.audiovae.receptive_field import (
    decoder_context_frames,
    encoder_context_frames,
    encoder_context_samples,
)
from latentprep.preprocess.encode.audiovae.weights import load_decoder, load_encoder

from ..builders import GOLDEN_V1, GOLDEN_V2, noise, write_checkpoint


def test_voxcpm2_looks_back_fifteen_frames():
    """Measured on the original: samples -9,272 .. +639 around a frame's start."""
    config = read_config(GOLDEN_V2)

    assert (9272, 15) == (encoder_context_samples(config), encoder_context_frames(config))


@pytest.mark.parametrize("rates", [[2, 3], [3, 3, 2], [4, 5]])
@pytest.mark.parametrize("architecture", ["voxcpm", "voxcpm2"])
def test_a_frame_depends_on_exactly_the_computed_samples(tmp_path: Path, architecture: str, rates: list[int]):
    """Found by the gradient of one frame; zeros on the left would hide behind latents that are merely close."""
    vae = {"encoder_rates": rates, "decoder_rates": rates, "out_sample_rate": 600, "decoder_dim": 16}
    checkpoint = open_checkpoint(write_checkpoint(tmp_path, architecture=architecture, vae=vae))
    encoder, hop = load_encoder(checkpoint).double(), checkpoint.config.hop_length
    context = encoder_context_samples(checkpoint.config)
    frame = context // hop + 2
    wav = torch.from_numpy(noise((frame + 2) * hop)).double()[None, None].requires_grad_()

    encoder(wav)[0, :, frame].sum().backward()
    assert wav.grad is not None
    touched = torch.nonzero(wav.grad[0, 0])[:, 0]

    assert frame * hop - context == touched[0]
    assert touched[-1] < (frame + 1) * hop


@pytest.mark.parametrize("folder", [GOLDEN_V1, GOLDEN_V2])
def test_the_decoder_is_exact_with_its_context(folder: Path):
    """Pieces of a long clip must join without a click."""
    checkpoint = open_checkpoint(folder)
    context, hop = decoder_context_frames(checkpoint.config), checkpoint.config.out_hop_length
    decoder = load_decoder(checkpoint).double()
    z = torch.randn(1, 64, context + 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    with torch.inference_mode():
        whole, piece = decoder(z), decoder(z[..., 2:])

    assert 1e-12 > (whole[..., (context + 2) * hop :] - piece[..., context * hop :]).abs().max()
