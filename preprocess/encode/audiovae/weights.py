"""Tensors of a checkpoint, weight norm folded, put into modules.

Folding at load, w = g * v / |v|, is computed in float64 and then cast: it costs milliseconds once and spares every call
the normalisation. A bundled float16 file is widened to float32 here as well.
"""

import pickle
from collections.abc import Callable
from typing import TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from .checkpoint import Checkpoint, check_shapes, damaged, not_floats
from .config import AudioVaeConfig
from .decoder import Decoder
from .encoder import Encoder
from .shapes import BOUNDARIES, expected_shapes

State = dict[str, Tensor]
M = TypeVar("M", Encoder, Decoder)

_STATE_KEY = "state_dict"


def load_encoder(checkpoint: Checkpoint) -> Encoder:
    """The encoder with its weights, float32 on the CPU, without the head that is not used.

    Raises:
        CheckpointError: the weights are damaged or of another network.
    """
    state = _require_finite(fold_weight_norm(_part(_read_state(checkpoint), "encoder.")), checkpoint)
    encoder = _on_meta(Encoder, checkpoint.config)
    encoder.load_state_dict({k: v for k, v in state.items() if not k.startswith("fc_logvar.")}, assign=True)
    return encoder.eval().requires_grad_(False)


def load_decoder(checkpoint: Checkpoint) -> Decoder:
    """The decoder with its weights, float32 on the CPU.

    Raises:
        CheckpointError: the weights are damaged or of another network.
    """
    state = _require_finite(fold_weight_norm(_part(_read_state(checkpoint), "decoder.")), checkpoint)
    state.pop("sr_bin_boundaries", None)  # config.json says the same
    decoder = _on_meta(Decoder, checkpoint.config)
    decoder.load_state_dict(state, assign=True)
    return decoder.eval().requires_grad_(False)


def fold_weight_norm(state: State) -> State:
    """Replace each pair ``weight_g``, ``weight_v`` by ``weight`` = g v / |v| in float32; |v| runs over all but dim 0."""
    folded: State = {}
    for key, value in state.items():
        if key.endswith("weight_v"):
            v, g = value.double(), state[key[:-1] + "g"].double()
            norm = torch.linalg.vector_norm(v, dim=(1, 2), keepdim=True)
            folded[key[: -len("_v")]] = (g * v / norm).float()
        elif not key.endswith("weight_g"):
            folded[key] = value.float()
    return folded


def _on_meta(module: Callable[[AudioVaeConfig], M], config: AudioVaeConfig) -> M:
    """Build without memory or random numbers; the state brings both."""
    with torch.device("meta"):
        return module(config)


def _part(state: State, prefix: str) -> State:
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def _read_state(checkpoint: Checkpoint) -> State:
    state = _read_pickle(checkpoint) if checkpoint.is_pickle else _read_safetensors(checkpoint)
    shapes = {key: tuple(value.shape) for key, value in state.items()}
    check_shapes(expected_shapes(checkpoint.config), shapes, checkpoint.weights)
    for key, value in state.items():
        if not value.is_floating_point() and key != BOUNDARIES:
            raise not_floats(checkpoint.weights, key, str(value.dtype).removeprefix("torch."))
    return state


def _require_finite(state: State, checkpoint: Checkpoint) -> State:
    """One NaN spreads to all latents, and every clip would be refused one by one."""
    for key, value in state.items():
        if not value.isfinite().all():
            raise damaged(checkpoint.weights, f"{key} holds NaN or infinite numbers")
    return state


def _read_safetensors(checkpoint: Checkpoint) -> State:
    try:
        return load_file(checkpoint.weights)
    except (OSError, SafetensorError) as error:
        raise damaged(checkpoint.weights, f"can't be read ({error})") from error


def _read_pickle(checkpoint: Checkpoint) -> State:
    """Unpickle tensors only (weights_only); the state may lie under "state_dict"."""
    path = checkpoint.weights
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        # torch's own text advises to run the code
        raise damaged(path, "is no file of tensors, or holds code beside them, which is never run") from error
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise damaged(path, f"can't be read as a file of tensors ({reason})") from error
    state = loaded.get(_STATE_KEY, loaded) if isinstance(loaded, dict) else None
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise damaged(path, f'holds no state dict, neither at its top nor under "{_STATE_KEY}"')
    return state
