"""Running out of device memory costs a retry: half the batch, down to one clip, then ``oom`` for that clip alone.

Batches are planned well within the memory of a card (preprocess/encode/registry.py), so this is for cards that others
use, too. Which batch a clip is encoded in changes its last float16 bit at most (docs/performance.md).
"""

import gc
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...core.errors import Fault, FaultCode, Stage
from .protocol import LatentEncoder, Latents


def encode_fitting(encoder: LatentEncoder, waves: Sequence[npt.NDArray[np.float32]]) -> list[Latents | Fault]:
    """Encode as one batch, or in halves if the device's memory does not suffice."""
    try:
        return list(encoder.encode(waves))
    except RuntimeError as error:
        if not _is_out_of_memory(error):
            raise
        reason = str(error)
    _free_memory()
    if len(waves) == 1:
        seconds = len(waves[0]) / encoder.info.spec.sample_rate
        return [Fault(Stage.ENCODE, FaultCode.OOM, f"{seconds:.1f} s alone do not fit: {reason[:300]}")]
    half = len(waves) // 2
    return encode_fitting(encoder, waves[:half]) + encode_fitting(encoder, waves[half:])


def _is_out_of_memory(error: RuntimeError) -> bool:
    import torch

    return isinstance(error, torch.OutOfMemoryError)


def _free_memory() -> None:
    """Outside the except block: the traceback holds the failed call's tensors until it is left."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
