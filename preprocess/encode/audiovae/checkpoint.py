"""``Checkpoint``: a folder with a VAE in it, checked as far as that goes without torch.

A safetensors file is checked completely: its header against the shapes the configuration asks for, its size against
the header, so a download that stopped half-way is refused. Of a .pth file only the presence is known here; unpickling
it needs torch, and the worker that does it applies the same comparison (weights.py).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import xxhash

from ....core.errors import CheckpointError
from .config import AudioVaeConfig, read_config
from .shapes import BOUNDARIES, Shape, expected_shapes

SAFETENSORS_NAME = "audiovae.safetensors"
PICKLE_NAME = "audiovae.pth"

_MAX_HEADER_BYTES = 100_000_000
"""The format's own limit; a larger number means that this is no safetensors file."""
_READ_BYTES = 1 << 22
_FLOATS = {"F16", "BF16", "F32", "F64"}
_NUM_LISTED = 3
"""Keys that a message names before it only counts."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A VAE on disk."""

    folder: Path
    config: AudioVaeConfig
    weights: Path
    """``audiovae.safetensors`` if there, else ``audiovae.pth``."""

    @property
    def is_pickle(self) -> bool:
        return self.weights.name == PICKLE_NAME


class _Tensor(msgspec.Struct, frozen=True):
    """An entry of a safetensors header."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def open_checkpoint(folder: Path) -> Checkpoint:
    """Find the VAE in ``folder`` and check it without torch.

    Raises:
        CheckpointError: folder or file missing, a configuration that can't be computed, weights of another network,
            a damaged file.
    """
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder}: no such folder",
            why="the VAE and its tokenizer are read from there",
            fix="set encoder.path to a VoxCPM checkpoint folder (config.json, audiovae.safetensors, tokenizer.json)",
        )
    checkpoint = Checkpoint(folder, read_config(folder), _find_weights(folder))
    if not checkpoint.is_pickle:
        tensors = _read_header(checkpoint.weights)
        shapes = {key: tensor.shape for key, tensor in tensors.items()}
        check_shapes(expected_shapes(checkpoint.config), shapes, checkpoint.weights)
        _check_types(tensors, checkpoint.weights)
    return checkpoint


def hash_checkpoint(checkpoint: Checkpoint) -> str:
    """xxh3-128 (hex) over the weights file and the checked VAE configuration.

    Of config.json only what concerns the VAE goes in: editing the language model's part changes no latent.
    """
    digest = xxhash.xxh3_128(json.dumps(asdict(checkpoint.config), sort_keys=True).encode())
    with checkpoint.weights.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def check_shapes(expected: Mapping[str, Shape], found: Mapping[str, Shape], where: Path) -> None:
    """Compare a state's keys and shapes with those the configuration asks for.

    Raises:
        CheckpointError: naming the file, the key and, for a shape, both shapes.
    """
    for key, shape in expected.items():
        if key in found and found[key] != shape:
            raise _other_network(where, f"{key} has shape {_text(found[key])}, config.json asks for {_text(shape)}")
    if missing := sorted(expected.keys() - found.keys()):
        raise _other_network(where, f"missing {_listed(missing)}")
    if unexpected := sorted(found.keys() - expected.keys()):
        raise _other_network(where, f"unexpected {_listed(unexpected)}")


def damaged(path: Path, reason: str) -> CheckpointError:
    """The error for weights that can't be read as what their name says."""
    return CheckpointError(
        f"{path}: {reason}",
        why="weights that are not complete can't be trusted in any part",
        fix="download the file again and compare its size with the published one",
    )


def _find_weights(folder: Path) -> Path:
    for name in (SAFETENSORS_NAME, PICKLE_NAME):
        if (folder / name).is_file():
            return folder / name
    raise CheckpointError(
        f"{folder}: neither {SAFETENSORS_NAME} nor {PICKLE_NAME} is there",
        why="one of them holds the VAE's weights; the language model's own files are of no use here",
        fix=f"copy {SAFETENSORS_NAME} of the same VoxCPM release into this folder",
    )


def _check_types(tensors: Mapping[str, _Tensor], where: Path) -> None:
    for key, tensor in tensors.items():
        if tensor.dtype not in _FLOATS and key != BOUNDARIES:
            raise not_floats(where, key, tensor.dtype)


def not_floats(where: Path, key: str, dtype: str) -> CheckpointError:
    """The error for a tensor of weights that holds something else than floating-point numbers."""
    return CheckpointError(
        f"{where}: {key} is of type {dtype}, supported are floats of 16 to 64 bits",
        why="quantized or converted weights are not the network that trainers decode with",
        fix="take the weights as they were published",
    )


def _read_header(path: Path) -> dict[str, _Tensor]:
    """Tensors by key from a safetensors header: 8 bytes little-endian length, then JSON, then the data."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = file.read(length) if length <= min(size, _MAX_HEADER_BYTES) else b""
    except OSError as error:
        raise damaged(path, f"can't be read ({error.strerror})") from error
    try:
        entries = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        tensors = {key: msgspec.json.decode(raw, type=_Tensor) for key, raw in entries.items() if key != "__metadata__"}
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(path, f"its header is not that of a safetensors file ({error})") from error
    end = 8 + length + max((tensor.data_offsets[1] for tensor in tensors.values()), default=0)
    if size < end:
        raise damaged(path, f"has {size} bytes, its header speaks of {end}")
    return tensors


def _other_network(where: Path, difference: str) -> CheckpointError:
    return CheckpointError(
        f"{where}: {difference}",
        why="these weights are not of the network that config.json beside them describes",
        fix="take config.json and the weights from one VoxCPM release; V1 and V2 can't be mixed",
    )


def _listed(keys: list[str]) -> str:
    shown = ", ".join(keys[:_NUM_LISTED])
    return shown if len(keys) <= _NUM_LISTED else f"{shown} and {len(keys) - _NUM_LISTED} more"


def _text(shape: Shape) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
