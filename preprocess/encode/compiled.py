"""Compiles an encoder's forward pass with ``torch.compile``: once, at load, in a worker.

Sizes are dynamic from the first call, so one graph serves all lengths and all batches of 2 to 15 clips; a CPU never sees
other sizes (voxcpm.py). The first call is made here, on silence, while the worker still counts as loading: a compiler that
is missing shows before any clip is touched, and no watchdog takes a minute of compiling for a stall.

A worker never falls back to eager on its own: compiled and eager differ in 0.2 to 0.5 % of the float16 cells, so one of the
two is fixed when the plan is made (compile_choice.py).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ...core.errors import WorkerError
from .compile_cache import compiling_alone, use_cache
from .memory import is_out_of_memory

WARM_UP_CLIPS = 3
"""Not 1, which the compiler would take for a constant."""
WARM_UP_PATCHES = 8
"""About a second of silence."""


def compile_encoder(encoder: nn.Module) -> Callable[[Tensor], Tensor]:
    """The encoder, to be compiled at its first call; torch must not have compiled anything before."""
    use_cache()
    return torch.compile(encoder, dynamic=True, fullgraph=True)


def first_call(encode: Callable[[], object]) -> None:
    """Make the call that compiles; of several processes that share a cache folder one compiles and the others read.

    Raises:
        WorkerError: the compiler failed. Running out of memory is passed on as it is.
    """
    try:
        with compiling_alone(use_cache()):
            encode()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise _failed(error) from error


def _failed(error: Exception) -> WorkerError:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return WorkerError(
        f"the encoder can't be compiled on this machine: {reason}",
        why="this run's plan says compiled; eager latents differ in 0.2 to 0.5 % of the values and must not be mixed in",
        fix="install g++ and the headers of this Python (python3-dev), or start anew with encoder.compile=never and "
        "--overwrite",
    )
