"""The encoders by name, and the three questions asked of one. Importing this, and ``describe``, need no torch.

``describe`` is the parent's: geometry, limits, stated rate, hash, all errors of a wrong checkpoint. ``build`` is the
worker's. ``tokenizer_folder`` is where the prompt's vocabulary comes from: a path in the settings wins for every
encoder, so a dry run with ``dummy`` gives the text columns of the real one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..config import EncoderSettings
from .checkpoint_info import describe_audio_vae
from .dummy import DummyEncoder, describe_dummy
from .protocol import DeviceKind, EncoderInfo, LatentEncoder
from .tiny_vae import TINY_FOLDER

STATED_RATES: dict[str, dict[DeviceKind, float]] = {
    "voxcpm": {"cpu": 3.0, "cuda": 1500.0},
    "tiny": {"cpu": 60.0, "cuda": 1500.0},
}
"""Times real time, as plans assume; they size chunks and are part of what a plan is, so they never follow a machine."""


@dataclass(frozen=True, slots=True)
class _Entry:
    describe: Callable[[EncoderSettings, DeviceKind], EncoderInfo]
    build: Callable[[EncoderSettings, EncoderInfo, str, bool], LatentEncoder]


def describe(settings: EncoderSettings, device_kind: DeviceKind) -> EncoderInfo:
    """What planning needs to know of the encoder on that kind of device.

    Raises:
        CheckpointError: the checkpoint is incomplete, damaged, or of another kind than its config.json says.
    """
    return ENCODERS[settings.name].describe(settings, device_kind)


def build(settings: EncoderSettings, info: EncoderInfo, device: str, *, compiled: bool = False) -> LatentEncoder:
    """The encoder on ``device`` ("cpu", "cuda", "cuda:0"), ``compiled`` if the plan says so.

    Raises:
        CheckpointError: as ``describe``; also if the weights are not those that ``info`` was made of.
        WorkerError: it can't be compiled on this machine.
    """
    return ENCODERS[settings.name].build(settings, info, device, compiled)


def tokenizer_folder(settings: EncoderSettings) -> Path:
    """Folder of the tokenizer's files."""
    return _checkpoint_path(settings) if settings.name == "voxcpm" else settings.path or TINY_FOLDER


def _vae_folder(settings: EncoderSettings) -> Path:
    return _checkpoint_path(settings) if settings.name == "voxcpm" else TINY_FOLDER


def _checkpoint_path(settings: EncoderSettings) -> Path:
    assert settings.path is not None, "EncoderSettings refuses voxcpm without a path"
    return settings.path


def _describe_vae(settings: EncoderSettings, device_kind: DeviceKind) -> EncoderInfo:
    rate = STATED_RATES[settings.name][device_kind]
    return describe_audio_vae(settings.name, _vae_folder(settings), device_kind, rate)


def _build_vae(settings: EncoderSettings, info: EncoderInfo, device: str, compiled: bool) -> LatentEncoder:
    from .voxcpm import build_audio_vae

    return build_audio_vae(info, _vae_folder(settings), device, settings.precision, compiled=compiled)


ENCODERS: dict[str, _Entry] = {
    "voxcpm": _Entry(_describe_vae, _build_vae),
    "tiny": _Entry(_describe_vae, _build_vae),
    "dummy": _Entry(
        lambda settings, kind: describe_dummy(), lambda settings, info, device, compiled: DummyEncoder(info)
    ),
}
