"""Every key of a checkpoint's state and the shape of its tensor, derived from the configuration. No torch.

A safetensors header is JSON, so comparing it with this table costs milliseconds and happens in the parent process,
before the first worker spends half a minute on starting.
"""

from collections.abc import Iterator

from .config import AudioVaeConfig

Shape = tuple[int, ...]

ENTRY_KERNEL = 7
"""Samples seen by the first and the last convolution and by the dilated ones."""
HEAD_KERNEL = 3
BOUNDARIES = "decoder.sr_bin_boundaries"
"""The only tensor that is no weight; whole numbers, which config.json says, too."""
DILATIONS = (1, 3, 9)
"""One residual unit each."""


def expected_shapes(config: AudioVaeConfig) -> dict[str, Shape]:
    """Shapes by key of the whole state: encoder, both heads, decoder and its conditioning."""
    return dict([*_encoder(config), *_decoder(config)])


def _encoder(config: AudioVaeConfig) -> Iterator[tuple[str, Shape]]:
    channels = config.encoder_channels()
    yield from _conv("encoder.block.0", channels[0], 1, ENTRY_KERNEL)
    for i, rate in enumerate(config.encoder_rates):
        prefix = f"encoder.block.{i + 1}.block"
        for unit in range(len(DILATIONS)):
            yield from _residual_unit(f"{prefix}.{unit}", channels[i])
        yield from _snake(f"{prefix}.3", channels[i])
        yield from _conv(f"{prefix}.4", channels[i + 1], channels[i], 2 * rate)
    yield from _conv("encoder.fc_mu", config.latent_dim, channels[-1], HEAD_KERNEL)
    yield from _conv("encoder.fc_logvar", config.latent_dim, channels[-1], HEAD_KERNEL)


def _decoder(config: AudioVaeConfig) -> Iterator[tuple[str, Shape]]:
    channels = config.decoder_channels()
    yield from _conv("decoder.model.0", config.latent_dim, 1, ENTRY_KERNEL)
    yield from _conv("decoder.model.1", channels[0], config.latent_dim, 1)
    for i, rate in enumerate(config.decoder_rates):
        prefix = f"decoder.model.{i + 2}.block"
        yield from _snake(f"{prefix}.0", channels[i])
        yield from _transposed_conv(f"{prefix}.1", channels[i], channels[i + 1], 2 * rate)
        for unit in range(len(DILATIONS)):
            yield from _residual_unit(f"{prefix}.{unit + 2}", channels[i + 1])
    last = len(config.decoder_rates) + 2
    yield from _snake(f"decoder.model.{last}", channels[-1])
    yield from _conv(f"decoder.model.{last + 1}", 1, channels[-1], ENTRY_KERNEL)
    yield from _conditioning(config)


def _conditioning(config: AudioVaeConfig) -> Iterator[tuple[str, Shape]]:
    """One pair of embeddings in front of each block, a row per bin of output rates."""
    if config.sr_bin_boundaries is None:
        return
    num_boundaries = len(config.sr_bin_boundaries)
    yield BOUNDARIES, (num_boundaries,)
    for i, width in enumerate(config.decoder_channels()[:-1]):
        for kind in ("scale_embed", "bias_embed"):
            yield f"decoder.sr_cond_model.{i + 2}.{kind}.weight", (num_boundaries + 1, width)


def _residual_unit(prefix: str, channels: int) -> Iterator[tuple[str, Shape]]:
    yield from _snake(f"{prefix}.block.0", channels)
    yield from _conv(f"{prefix}.block.1", channels, 1, ENTRY_KERNEL)
    yield from _snake(f"{prefix}.block.2", channels)
    yield from _conv(f"{prefix}.block.3", channels, channels, 1)


def _snake(prefix: str, channels: int) -> Iterator[tuple[str, Shape]]:
    yield f"{prefix}.alpha", (1, channels, 1)


def _conv(prefix: str, channels_out: int, channels_in: int, kernel: int) -> Iterator[tuple[str, Shape]]:
    """A weight-normed convolution: one length per output channel; ``channels_in`` counts those of one group."""
    yield f"{prefix}.bias", (channels_out,)
    yield f"{prefix}.weight_g", (channels_out, 1, 1)
    yield f"{prefix}.weight_v", (channels_out, channels_in, kernel)


def _transposed_conv(prefix: str, channels_in: int, channels_out: int, kernel: int) -> Iterator[tuple[str, Shape]]:
    """A weight-normed transposed convolution: one length per *input* channel, which is its first dimension."""
    yield f"{prefix}.bias", (channels_out,)
    yield f"{prefix}.weight_g", (channels_in, 1, 1)
    yield f"{prefix}.weight_v", (channels_in, channels_out, kernel)
