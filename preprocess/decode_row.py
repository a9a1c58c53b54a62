"""Latents of a row back to sound, with the decoder of the VAE that made them. Listening is the quickest check there is.

Which VAE that was stands in the dataset's provenance.json. A checkpoint whose weights have changed since would give
noise that looks like a broken dataset, so its hash is compared first.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from ..core.errors import CheckpointError, OutputError, UsageError
from ..core.paths import OutputPaths
from ..writers.provenance import read_provenance
from .config import EncoderSettings
from .encode.audiovae.config import CONFIG_NAME
from .encode.registry import build, describe


@dataclass(frozen=True, slots=True)
class Sound:
    """A mono waveform."""

    samples: npt.NDArray[np.float32]
    """[S]"""
    sample_rate: int
    """Hz"""


@dataclass(frozen=True, slots=True)
class UsedEncoder:
    """The encoder of a finished dataset."""

    settings: EncoderSettings
    weights_hash: str
    folder: Path = Path()
    """Where the run was started: ``settings.path`` may be relative to it."""

    @property
    def checkpoint(self) -> Path | None:
        """The VAE's folder by the provenance, else one of that name here; None for a bundled encoder."""
        path = self.settings.path
        if path is None or self.settings.name != "voxcpm":
            return None
        recorded = self.folder / path
        return path if path.is_dir() and not recorded.is_dir() else recorded


def used_encoder(folder: Path) -> UsedEncoder:
    """Read off ``folder``'s provenance.json. Raises OutputError if it is missing or broken."""
    path = OutputPaths(folder).provenance
    try:
        provenance = read_provenance(path)
        settings = EncoderSettings.model_validate_json(json.dumps(provenance.config["encoder"]))
    except (OSError, KeyError, TypeError, ValidationError) as error:
        raise OutputError(
            f"{path} cannot be read: {error}",
            why="it says which VAE the latents are of",
            fix="let the `prep svs` command that made the dataset finish",
        ) from error
    return UsedEncoder(settings, provenance.encoder.weights_hash, Path(provenance.environment.folder))


def decode_frames(frames_FD: npt.NDArray[np.float16], used: UsedEncoder, checkpoint: Path | None = None) -> Sound:
    """Decode latent frames [F, D] on the CPU, in float32; ``checkpoint`` is where the VAE's folder lies today.

    Raises:
        CheckpointError: the folder is missing or broken, or holds other weights than those that made the latents.
        UsageError: the encoder has no decoder (dummy), or is bundled and ``checkpoint`` was given.
    """
    if checkpoint and used.settings.name != "voxcpm":
        raise UsageError(f"the encoder {used.settings.name} is bundled: it has no checkpoint folder")
    folder = checkpoint or used.checkpoint
    if folder is not None:
        _refuse_incomplete(folder, used)
    settings = used.settings.model_copy(update={"precision": "float32", "path": folder})
    info = describe(settings, "cpu")
    if info.weights_hash != used.weights_hash:
        raise CheckpointError(
            f"{info.checkpoint} holds other weights ({info.weights_hash}) than the dataset was made with "
            f"({used.weights_hash})",
            why="another VAE's decoder makes noise of these latents",
            fix="name the folder of the checkpoint that was used with --encoder-path",
        )
    return Sound(*build(settings, info, "cpu").decode(frames_FD))


def _refuse_incomplete(folder: Path, used: UsedEncoder) -> None:
    """The encoder's own messages speak of the configuration, which whoever decodes need not have."""
    if not folder.is_dir():
        what = f"{folder}: no such folder"
    elif not (folder / CONFIG_NAME).is_file():
        what = f"{folder} has no {CONFIG_NAME}"
    else:
        return
    recorded = f"recorded as {str(used.settings.path)!r}, seen from {str(used.folder)!r}, where the run was started"
    raise CheckpointError(
        what,
        why=f"the VAE that made the latents turns them into sound; its folder was {recorded}",
        fix=f"name the folder where it lies now ({CONFIG_NAME} and the weights) with --encoder-path",
    )


def check_wav(path: Path) -> None:
    """Raises OutputError if the folder of ``path`` isn't there: known at once, not after decoding."""
    if not path.parent.is_dir():
        raise OutputError(
            f"{path} cannot be written: folder {path.parent} does not exist",
            fix=f"make it (mkdir -p {quote(str(path.parent))}), or name another file with --wav",
        )


def save_wav(path: Path, sound: Sound) -> None:
    """Write 16-bit PCM. Raises OutputError if the file can't be written."""
    import soundfile

    try:
        soundfile.write(str(path), sound.samples, sound.sample_rate, format="WAV", subtype="PCM_16")
    except (OSError, soundfile.LibsndfileError) as error:
        raise OutputError(f"{path} cannot be written: {error}") from error
