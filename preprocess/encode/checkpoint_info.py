"""``EncoderInfo`` of an AudioVAE checkpoint, read off its files. No torch: this is what the parent plans with."""

from pathlib import Path

from ...core.units import ceil_div
from .audiovae.checkpoint import hash_checkpoint, open_checkpoint
from .audiovae.config import AudioVaeConfig
from .audiovae.receptive_field import encoder_context_frames
from .limits import batch_limits
from .protocol import DeviceKind, EncoderInfo


def describe_audio_vae(name: str, folder: Path, device_kind: DeviceKind, stated_rate: float) -> EncoderInfo:
    """Check the checkpoint in ``folder`` and say what planning needs to know of it.

    Raises:
        CheckpointError: see ``open_checkpoint``.
    """
    checkpoint = open_checkpoint(folder)
    spec = checkpoint.config.spec
    limits = batch_limits(spec, device_kind, context_patches=context_patches(checkpoint.config))
    return EncoderInfo(
        name=name,
        spec=spec,
        stated_rate=stated_rate,
        max_batch_samples=limits.max_batch_samples,
        max_whole_samples=limits.max_whole_samples,
        weights_hash=hash_checkpoint(checkpoint),
        checkpoint=str(folder),
    )


def context_patches(config: AudioVaeConfig) -> int:
    """Patches of left context with which a window of the encoder is exact; 4 for VoxCPM2."""
    return ceil_div(encoder_context_frames(config), config.patch_size)
