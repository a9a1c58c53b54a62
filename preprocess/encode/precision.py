"""How a CUDA device multiplies: strict float32, TF32 or bfloat16. Set once, before the first convolution.

Only through PyTorch's ``fp32_precision`` settings: reading the older allow_tf32 flags after one of these raises.
Convolutions and matrix products are both set, since PyTorch's own defaults differ (TF32 for the first, strict float32
for the second). bfloat16 is a matter of the module's weights (``storage_dtype``), what remains in float32 is strict.
Autotuning is off: it may pick another kernel in the next run, which gives other rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .protocol import Precision

if TYPE_CHECKING:
    import torch


def set_cuda_precision(precision: Precision) -> None:
    """Fix how this process computes float32 convolutions and matrix products on CUDA."""
    import torch

    mode = "tf32" if precision == "tf32" else "ieee"
    cudnn: Any = torch.backends.cudnn  # its attributes are made at run time
    cudnn.conv.fp32_precision = mode
    cudnn.rnn.fp32_precision = mode  # unused, but mixed settings make cuDNN's overall one unreadable
    torch.backends.cuda.matmul.fp32_precision = mode
    torch.backends.cudnn.benchmark = False


@contextmanager
def strict_float32(device_type: str, precision: Precision) -> Iterator[None]:
    """Compute in strict float32 within the context, and in ``precision`` again behind it; a CPU always does."""
    if device_type != "cuda":
        yield
        return
    set_cuda_precision("float32")
    try:
        yield
    finally:
        set_cuda_precision(precision)


def storage_dtype(precision: Precision) -> torch.dtype:
    """Type of weights and activations; latents come out as float32 in any case."""
    import torch

    return torch.bfloat16 if precision == "bf16" else torch.float32
