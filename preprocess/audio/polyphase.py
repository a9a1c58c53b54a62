"""``Polyphase``: torchaudio's resampling kernel for one pair of rates, applied as a few dense matrix products.

torchaudio convolves with all phases at once, so the kernel is nearly as long as the common period of both rates: from 44.1 to
16 kHz each of the 160 phases has 475 values, 440 of them zero. Here neighbouring phases are taken in groups of 32,
each a matrix of the values between its first and its last that aren't zero (119 of 475); and where there are few phases
(one, from 48 kHz) the kernel is repeated for some outputs in a row, since a convolution with one output channel is slow.

    samples   ....0 0 0 s s s s s s s s s s s s s ...      rows overlap: a matrix whose rows are ``hop`` apart,
    row n         └── n * hop ──┘└ (n + 1) * hop ┘         never copied
    group g           └ first .. last ┘ x values [last - first, 32] = 32 outputs of row n

A clip of 8 s takes 0.9 ms where torchaudio takes 7.0 (44.1 kHz) or 4.5 (48 kHz): oneDNN prepares a convolution anew for
each length it has not met, and few clips are equally long. The sums have the same terms in the same order, so on the
CPU this was measured on they are equal to the last bit for 8 to 96 kHz, and 3e-7 apart for 192 kHz. The same code runs
on a GPU, for many clips of one rate at once.

Shapes: B clips, S samples as stored, R rows, H ``hop``, P outputs of a row.
"""

import math

import torch
from torch import Tensor
from torchaudio.transforms import Resample

from ...core.units import ceil_div, resampled_length

GROUP = 32
"""Outputs of one matrix product. 16 and 64 are slower, by up to 80 %."""
_NEGLIGIBLE = 1e-12
"""Of the largest value: outside its window the kernel is about 1e-22, not 0."""


class Polyphase:
    """Holds a kernel and no state, so threads share it."""

    def __init__(self, rate_in: int, rate_out: int, device: str | torch.device = "cpu") -> None:
        """Rates in Hz, not equal. ``kernel_values`` of resample.py says how much memory that takes."""
        self._rates = rate_in, rate_out
        divisor = math.gcd(rate_in, rate_out)
        # by itself torchaudio would compute it in float64; its function, which made the reference rows, does not
        kernel = Resample(rate_in, rate_out, dtype=torch.float32)
        phases: Tensor = kernel.get_buffer("kernel")[:, 0]
        repeats = ceil_div(2 * GROUP, rate_out // divisor)
        self.lead = kernel.width
        """Zeros that stand before the first sample."""
        self._hop = rate_in // divisor * repeats
        self._row_outputs = len(phases) * repeats
        repeated = _repeated(phases, rate_in // divisor, repeats) if repeats > 1 else phases
        self._groups = [
            (begin, first, values.to(device))
            for begin in range(0, self._row_outputs, GROUP)
            for first, values in [_dense(repeated[begin : begin + GROUP])]
        ]
        reach = max(first + len(values) for _, first, values in self._groups)
        self._rows_behind = ceil_div(reach, self._hop)

    def padded_length(self, num_samples: int) -> int:
        """Samples that a clip of ``num_samples`` takes up, with the zeros before and behind it."""
        rows = ceil_div(resampled_length(num_samples, *self._rates), self._row_outputs)
        return (rows - 1 + self._rows_behind) * self._hop

    def __call__(self, padded: Tensor) -> Tensor:
        """Resample clips [B, ``padded_length`` of the longest], each with ``lead`` zeros before it and zeros behind it.

        Returns [B, at least ``resampled_length``]; what follows a clip's own length means nothing.
        """
        num_clips = len(padded)
        rows = padded.numel() // self._hop
        complete = rows - self._rows_behind + 1  # those behind would read on past the end
        made = padded.new_empty((rows, self._row_outputs))
        for begin, first, values in self._groups:
            samples = padded.as_strided((complete, len(values)), (self._hop, 1), first)
            torch.mm(samples, values, out=made[:complete, begin : begin + values.shape[1]])
        return made.view(num_clips, -1)


def _repeated(phases: Tensor, step: int, repeats: int) -> Tensor:
    """[N, K] kernels -> [N * repeats, K + (repeats - 1) * step]: each repetition ``step`` samples further on."""
    num_phases, length = phases.shape
    repeated = phases.new_zeros((repeats, num_phases, length + (repeats - 1) * step))
    for i in range(repeats):
        repeated[i, :, i * step : i * step + length] = phases
    return repeated.flatten(0, 1)


def _dense(phases: Tensor) -> tuple[int, Tensor]:
    """Where the values of these phases begin, and the values [K, N]."""
    used = (phases.abs() > _NEGLIGIBLE * phases.abs().max()).any(dim=0).nonzero()[:, 0]
    first, last = int(used[0]), int(used[-1])
    return first, phases[:, first : last + 1].T.contiguous()
