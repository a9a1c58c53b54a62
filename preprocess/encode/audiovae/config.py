"""``AudioVaeConfig``: what a checkpoint folder's config.json says about its VAE, checked. No torch.

What may be absent means the published VoxCPM defaults of that version; what is present must be something this
implementation computes, since a value that is read over would give other latents without a word. Keys that belong to
the language model around the VAE are not looked at.
"""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from ....core.errors import CheckpointError
from ....core.units import LatentSpec
from ...plain_file import read_plain_file

CONFIG_NAME = "config.json"

MAX_CONFIG_BYTES = 64 << 20
_MAX_RATE = 1_000_000
"""Hz; beyond it, and beyond the next three, a number is a slip that would only show as a lack of memory."""
_MAX_CHANNELS = 65_536
_MAX_STRIDE = 4096
_MAX_PATCH = 1024
_MAX_BLOCKS = 16

Version = Literal[1, 2]
T = TypeVar("T")

_VERSIONS: dict[str, Version] = {"voxcpm": 1, "voxcpm2": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioVaeConfig:
    """Structure of one AudioVAE."""

    version: Version
    """1 = architecture "voxcpm", 2 = "voxcpm2": other padding of strided convolutions, a conditioned decoder."""
    encoder_dim: int
    """Channels behind the encoder's entry; each block doubles them."""
    encoder_rates: tuple[int, ...]
    """Strides of the encoder's blocks."""
    latent_dim: int
    decoder_dim: int
    """Channels behind the decoder's entry; each block halves them."""
    decoder_rates: tuple[int, ...]
    sample_rate: int
    """Hz of the waveform that goes in."""
    out_sample_rate: int
    """Hz of the waveform that comes out of the decoder."""
    sr_bin_boundaries: tuple[int, ...] | None
    """Hz; the decoder's scale and bias are picked by the bin that ``out_sample_rate`` falls into. None: no conditioning."""
    patch_size: int
    """Latent frames per patch."""

    @property
    def hop_length(self) -> int:
        """Samples at ``sample_rate`` per latent frame."""
        return prod(self.encoder_rates)

    @property
    def out_hop_length(self) -> int:
        """Samples at ``out_sample_rate`` per latent frame."""
        return prod(self.decoder_rates)

    @property
    def spec(self) -> LatentSpec:
        """The geometry that the rest of the program sees."""
        return LatentSpec(
            sample_rate=self.sample_rate,
            hop_length=self.hop_length,
            patch_size=self.patch_size,
            latent_dim=self.latent_dim,
        )

    def encoder_channels(self) -> tuple[int, ...]:
        """Channels behind the entry and behind each block of the encoder."""
        return tuple(self.encoder_dim << i for i in range(len(self.encoder_rates) + 1))

    def decoder_channels(self) -> tuple[int, ...]:
        """Channels behind the entry and behind each block of the decoder."""
        return tuple(self.decoder_dim >> i for i in range(len(self.decoder_rates) + 1))

    def entry_padding(self, rate: int) -> int:
        """Zeros on the left of an encoder convolution of stride ``rate``: V1 rounds odd strides up to the next even."""
        return rate if self.version == 2 else rate + rate % 2


class _VaeSection(msgspec.Struct, frozen=True):
    """``audio_vae_config`` as it is written; None = absent, where the versions have different defaults."""

    encoder_dim: int = 128
    encoder_rates: tuple[int, ...] = (2, 5, 8, 8)
    latent_dim: int = 64
    decoder_dim: int | None = None
    decoder_rates: tuple[int, ...] | None = None
    depthwise: bool = True
    sample_rate: int = 16_000
    out_sample_rate: int = 48_000
    use_noise_block: bool = False
    sr_bin_boundaries: tuple[int, ...] | None = (20_000, 30_000, 40_000)
    cond_type: str = "scale_bias"
    cond_out_layer: bool = False


class _ConfigFile(msgspec.Struct, frozen=True):
    """The part of config.json that concerns the VAE."""

    architecture: str = "voxcpm"
    patch_size: int = 4
    feat_dim: int = 64
    audio_vae_config: _VaeSection | None = None


def read_config(folder: Path) -> AudioVaeConfig:
    """Read and check ``folder``/config.json.

    Raises:
        CheckpointError: no such file, not JSON, a value of a wrong type, or one that this implementation can't compute.
    """
    path = folder / CONFIG_NAME
    return _checked(_resolve(_parse(path), path), path)


def _parse(path: Path) -> _ConfigFile:
    try:
        return msgspec.json.decode(read_plain_file(path, max_bytes=MAX_CONFIG_BYTES), type=_ConfigFile)
    except OSError as error:
        raise CheckpointError(
            f"{path}: can't be read ({error.strerror})",
            why="config.json says which VAE the weights belong to",
            fix="point encoder.path at a VoxCPM checkpoint folder: config.json, audiovae.safetensors, tokenizer.json",
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise CheckpointError(
            f"{path}: {reason}",
            why="the VAE's structure is read from this file",
            fix="download config.json of the checkpoint again; it must be the one that came with the weights",
        ) from error


def _resolve(file: _ConfigFile, path: Path) -> AudioVaeConfig:
    version = _VERSIONS.get(file.architecture)
    if version is None:
        raise _unsupported(path, "architecture", file.architecture, '"voxcpm" (VAE V1) or "voxcpm2" (VAE V2)')
    vae = file.audio_vae_config or _VaeSection()
    _refuse_unsupported(file, vae, path)
    is_v2 = version == 2
    return AudioVaeConfig(
        version=version,
        encoder_dim=vae.encoder_dim,
        encoder_rates=vae.encoder_rates,
        latent_dim=vae.latent_dim,
        decoder_dim=_or_default(vae.decoder_dim, 2048 if is_v2 else 1536),
        decoder_rates=_or_default(vae.decoder_rates, (8, 6, 5, 2, 2, 2) if is_v2 else (8, 8, 5, 2)),
        sample_rate=vae.sample_rate,
        out_sample_rate=vae.out_sample_rate if is_v2 else vae.sample_rate,
        sr_bin_boundaries=vae.sr_bin_boundaries if is_v2 else None,
        patch_size=file.patch_size,
    )


def _or_default(value: T | None, default: T) -> T:
    # an empty list or a 0 that somebody wrote is not absent
    return default if value is None else value


def _refuse_unsupported(file: _ConfigFile, vae: _VaeSection, path: Path) -> None:
    if not vae.depthwise:
        raise _unsupported(path, "audio_vae_config.depthwise", False, "true")
    if vae.use_noise_block:
        raise _unsupported(path, "audio_vae_config.use_noise_block", True, "false")
    if file.feat_dim != vae.latent_dim:
        raise _unsupported(path, "feat_dim", file.feat_dim, f"audio_vae_config.latent_dim, which is {vae.latent_dim}")
    if file.architecture == "voxcpm2" and vae.cond_type != "scale_bias":
        raise _unsupported(path, "audio_vae_config.cond_type", vae.cond_type, '"scale_bias"')
    if file.architecture == "voxcpm2" and vae.cond_out_layer:
        raise _unsupported(path, "audio_vae_config.cond_out_layer", True, "false")


def _checked(config: AudioVaeConfig, path: Path) -> AudioVaeConfig:
    """Refuse numbers from which no network can be built, or whose rates contradict each other."""
    _check_sizes(config, path)
    boundaries = config.sr_bin_boundaries or ()
    if list(boundaries) != sorted(boundaries):
        raise _unsupported(path, "audio_vae_config.sr_bin_boundaries", list(boundaries), "rising numbers")
    if len(boundaries) > _MAX_BLOCKS or not all(0 <= boundary <= _MAX_RATE for boundary in boundaries):
        wanted = f"at most {_MAX_BLOCKS} rates from 0 to {_MAX_RATE}"
        raise _unsupported(path, "audio_vae_config.sr_bin_boundaries", list(boundaries[:_MAX_BLOCKS]), wanted)
    if config.decoder_dim % (1 << len(config.decoder_rates)):
        raise _unsupported(path, "audio_vae_config.decoder_dim", config.decoder_dim, "halved by each decoder rate")
    _check_rates(config, path)
    return config


def _check_sizes(config: AudioVaeConfig, path: Path) -> None:
    sizes = {
        "patch_size": ((config.patch_size,), _MAX_PATCH),
        "audio_vae_config.encoder_dim": ((config.encoder_dim,), _MAX_CHANNELS),
        "audio_vae_config.latent_dim": ((config.latent_dim,), _MAX_CHANNELS),
        "audio_vae_config.decoder_dim": ((config.decoder_dim,), _MAX_CHANNELS),
        "audio_vae_config.sample_rate": ((config.sample_rate,), _MAX_RATE),
        "audio_vae_config.out_sample_rate": ((config.out_sample_rate,), _MAX_RATE),
        "audio_vae_config.encoder_rates": (config.encoder_rates, _MAX_STRIDE),
        "audio_vae_config.decoder_rates": (config.decoder_rates, _MAX_STRIDE),
    }
    for key, (values, most) in sizes.items():
        if not values or min(values) < 1 or max(values) > most:
            raise _unsupported(path, key, list(values[:_MAX_BLOCKS]), f"positive whole numbers up to {most}")
        if len(values) > _MAX_BLOCKS:
            raise _unsupported(path, key, len(values), f"at most {_MAX_BLOCKS} numbers")


def _check_rates(config: AudioVaeConfig, path: Path) -> None:
    """Samples per latent frame over samples per second must be one duration on both sides of the latent."""
    if config.hop_length * config.out_sample_rate != config.out_hop_length * config.sample_rate:
        raise CheckpointError(
            f"{path}: {config.hop_length} samples at {config.sample_rate} Hz go into a latent frame, "
            f"{config.out_hop_length} at {config.out_sample_rate} Hz come out",
            why="these are two different durations, so a sample rate or a list of rates is not the checkpoint's own",
            fix="restore config.json as it was published; a sample rate can't be changed by editing it",
        )


def _unsupported(path: Path, key: str, value: object, wanted: str) -> CheckpointError:
    text = msgspec.json.encode(value).decode()
    return CheckpointError(
        f"{path}: {key} is {text if len(text) <= 120 else text[:117] + '...'}, supported is {wanted}",
        why="latents of a network that this program does not implement would be wrong without a word",
        fix="use a VoxCPM (V1, V1.5) or VoxCPM2 checkpoint with its config.json unchanged",
    )
