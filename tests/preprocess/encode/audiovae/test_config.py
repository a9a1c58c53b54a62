"""config.json is the only source of geometry: defaults where it is silent, refusals where it asks for the unknown."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from latentprep.core.errors import CheckpointError
from latentprep.core.units import LatentSpec
from latentprep.preprocess.encode.audiovae.config import AudioVaeConfig, read_config

from ..builders import GOLDEN_V1, GOLDEN_V2, write_config


def test_an_empty_configuration_means_the_published_first_version(tmp_path: Path):
    """Early VoxCPM releases state nothing about their VAE."""
    (tmp_path / "config.json").write_text("{}")

    assert read_config(tmp_path) == AudioVaeConfig(
        version=1,
        encoder_dim=128,
        encoder_rates=(2, 5, 8, 8),
        latent_dim=64,
        decoder_dim=1536,
        decoder_rates=(8, 8, 5, 2),
        sample_rate=16_000,
        out_sample_rate=16_000,
        sr_bin_boundaries=None,
        patch_size=4,
    )


def test_the_second_version_has_its_own_defaults(tmp_path: Path):
    """Its decoder makes 48 kHz of 16 kHz and is conditioned on the rate."""
    (tmp_path / "config.json").write_text('{"architecture": "voxcpm2"}')

    config = read_config(tmp_path)

    assert (2048, (8, 6, 5, 2, 2, 2), 48_000) == (config.decoder_dim, config.decoder_rates, config.out_sample_rate)
    assert (20_000, 30_000, 40_000) == config.sr_bin_boundaries


def test_the_golden_configurations_give_their_geometry():
    """Hop lengths are products of the rates, whatever the sample rate."""
    v1, v2 = read_config(GOLDEN_V1), read_config(GOLDEN_V2)

    assert LatentSpec(sample_rate=44_100, hop_length=1764, patch_size=4, latent_dim=64) == v1.spec
    assert LatentSpec(sample_rate=16_000, hop_length=640, patch_size=4, latent_dim=64) == v2.spec
    assert (1, 1764) == (v1.version, v1.out_hop_length)
    assert (2, 1920) == (v2.version, v2.out_hop_length)


def test_the_first_version_rounds_the_padding_of_odd_strides_up():
    """The shapes are equal either way, the latents are not."""
    v1, v2 = read_config(GOLDEN_V1), read_config(GOLDEN_V2)

    assert [2, 4, 6, 8, 8] == [v1.entry_padding(rate) for rate in v1.encoder_rates]
    assert [2, 5, 8, 8] == [v2.entry_padding(rate) for rate in v2.encoder_rates]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"architecture": "voxcpm3"},
            'architecture is "voxcpm3", supported is "voxcpm" (VAE V1) or "voxcpm2" (VAE V2)',
        ),
        ({"vae": {"depthwise": False}}, "audio_vae_config.depthwise is false, supported is true"),
        ({"vae": {"use_noise_block": True}}, "audio_vae_config.use_noise_block is true, supported is false"),
        ({"feat_dim": 32}, "feat_dim is 32, supported is audio_vae_config.latent_dim, which is 8"),
        ({"patch_size": 0}, "patch_size is [0], supported is positive whole numbers"),
        ({"vae": {"encoder_rates": []}}, "audio_vae_config.encoder_rates is [], supported is positive whole numbers"),
        ({"patch_size": 10**12}, f"patch_size is [{10**12}], supported is positive whole numbers up to 1024"),
        ({"vae": {"sample_rate": 10**30}}, "sample_rate is [1000000000000000000000000000000], supported is positive"),
        ({"vae": {"encoder_dim": 10**9}}, "audio_vae_config.encoder_dim is [1000000000], supported is positive whole"),
        ({"vae": {"encoder_rates": [1] * 17}}, "audio_vae_config.encoder_rates is 17, supported is at most 16 numbers"),
        ({"vae": {"decoder_rates": []}}, "audio_vae_config.decoder_rates is [], supported is positive whole numbers"),
        ({"vae": {"decoder_dim": 0}}, "audio_vae_config.decoder_dim is [0], supported is positive whole numbers"),
        (
            {"architecture": "voxcpm2", "vae": {"out_sample_rate": 600, "sr_bin_boundaries": [1, 10**30]}},
            "sr_bin_boundaries is [1,1000000000000000000000000000000], supported is at most 16 rates from 0 to 1000000",
        ),
        ({"vae": {"decoder_dim": 18}}, "audio_vae_config.decoder_dim is 18, supported is halved by each decoder rate"),
        ({"vae": {"decoder_rates": [3, 3]}}, "6 samples at 600 Hz go into a latent frame, 9 at 600 Hz come out"),
        ({"vae": {"encoder_dim": "four"}}, "Expected `int`, got `str` - at `$.audio_vae_config.encoder_dim`"),
        (
            {"architecture": "voxcpm2", "vae": {"cond_type": "add", "out_sample_rate": 600}},
            'audio_vae_config.cond_type is "add", supported is "scale_bias"',
        ),
    ],
)
def test_what_can_not_be_computed_is_refused(tmp_path: Path, change: dict[str, Any], message: str):
    """Reading over such a value would give other latents without a word."""
    with pytest.raises(CheckpointError) as error:
        read_config(write_config(tmp_path, **change))

    assert message in str(error.value)
    assert str(tmp_path / "config.json") in error.value.what
    assert error.value.fix


def test_an_edited_sample_rate_is_noticed(tmp_path: Path):
    """For V2 the rates of both sides must agree, so the most tempting edit of all is refused."""
    content = json.loads((GOLDEN_V2 / "config.json").read_text())
    content["audio_vae_config"]["sample_rate"] = 44_100
    (tmp_path / "config.json").write_text(json.dumps(content))

    with pytest.raises(CheckpointError, match="640 samples at 44100 Hz go into a latent frame, 1920 at 48000 Hz"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated"),
        (b"[1]", "Expected `object`"),
        (b"\xff", "malformed"),
        (b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}", "it is nested too deeply"),
    ],
)
def test_a_file_that_is_not_a_configuration_is_named(tmp_path: Path, content: bytes, message: str):
    """A Git LFS pointer or an empty download must not look like a bug."""
    (tmp_path / "config.json").write_bytes(content)

    with pytest.raises(CheckpointError) as error:
        read_config(tmp_path)

    assert message in error.value.what
    assert str(tmp_path / "config.json") in error.value.what


def test_a_fifo_in_place_of_the_configuration_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "config.json")

    with pytest.raises(CheckpointError, match=r"config\.json: can't be read \(a device or a FIFO, not a file\)"):
        read_config(tmp_path)
