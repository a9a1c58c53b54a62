"""Resampling: torchaudio's windowed sinc (Hann, width 6, rolloff 0.99), the kernel built once per pair of rates.

Building the kernel takes longer than applying it to a clip of some seconds (48 to 16 kHz: 1,000 to 3,000 times real
time when built per clip, 9,000 with the kernel kept and applied as in polyphase.py).

torch is imported at the first clip that needs it: a worker whose audio has the encoder's rate, and whose encoder needs
no torch either, starts in 1.7 s of CPU time instead of 4.4.
"""

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...core.errors import ClipFault, FaultCode, Stage
from ...core.units import resampled_length

if TYPE_CHECKING:
    from .polyphase import Polyphase

MAX_KERNEL_VALUES = 1 << 25
"""Size of a kernel, 134 MB. Pairs of rates of music need under 1,000,000; a rate like 44,101 Hz would need 706
million, and as much again several times while it is built."""

_WIDTH, _ROLLOFF = 6, 0.99


def kernel_values(rate_in: int, rate_out: int) -> int:
    """Number of values of the kernel for a pair of rates in Hz."""
    divisor = math.gcd(rate_in, rate_out)
    orig, new = rate_in // divisor, rate_out // divisor
    width = math.ceil(_WIDTH * orig / (_ROLLOFF * min(orig, new)))
    return new * (2 * width + orig)


def resample(wave: npt.NDArray[np.float32], rate_in: int, rate_out: int) -> npt.NDArray[np.float32]:
    """Resample a mono waveform [S]; the result has ``units.resampled_length`` samples.

    Raises ClipFault(NOT_AUDIO) for a pair of rates whose kernel would not fit into memory.
    """
    if rate_in == rate_out:
        return wave
    require_usable(rate_in, rate_out)
    import torch

    with torch.inference_mode():
        kernel = _kernel(rate_in, rate_out)
        padded = torch.zeros((1, kernel.padded_length(len(wave))))
        padded.numpy()[0, kernel.lead : kernel.lead + len(wave)] = wave
        return kernel(padded)[0, : resampled_length(len(wave), rate_in, rate_out)].numpy()


def require_usable(rate_in: int, rate_out: int) -> None:
    """Raise ClipFault(NOT_AUDIO) for a pair of rates whose kernel would not fit into memory."""
    if kernel_values(rate_in, rate_out) > MAX_KERNEL_VALUES:
        message = f"a sample rate of {rate_in} Hz has no usable ratio to {rate_out} Hz"
        raise ClipFault(Stage.DECODE, FaultCode.NOT_AUDIO, message)


@functools.lru_cache(maxsize=32)
def _kernel(rate_in: int, rate_out: int) -> "Polyphase":
    from .polyphase import Polyphase

    return Polyphase(rate_in, rate_out)
