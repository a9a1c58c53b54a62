"""Cutting a clip that is too long for one encoder call into windows that give the same latents.

The encoder is causal and its receptive field is finite, so a window that begins ``context`` patches before the first
patch kept from it sees all that the whole clip would show it. Windows begin at patch borders, are all of one length and
come in pairs: two go through the encoder at a time. The price is the context, encoded twice: 4 patches a window for
VoxCPM2, 2 to 4 % of a window of 16 to 32 s. The result is exact in exact arithmetic (float64 difference 0.0); in float32
the last bits may differ from a whole-clip call, as kernels differ by shape (measured here: none did; with two threads
and other kernels 1e-6 relative), so the plan fixes which clips are windowed.
"""

from dataclasses import dataclass

from ...core.units import ceil_div

WINDOWS_PER_CALL = 2


@dataclass(frozen=True, slots=True)
class Window:
    """One window, in patches of its clip."""

    start: int
    stop: int
    keep_from: int
    """Patches before this one are context; ``keep_from == stop`` keeps none (it only fills up a pair)."""


def cut_windows(num_patches: int, *, context: int, max_patches: int) -> list[Window]:
    """Cut ``num_patches`` patches into an even number of windows of one length of at most ``max_patches``.

    Raises:
        ValueError: the clip needs no windows, or a window would be all context.
    """
    if max_patches <= context or num_patches <= max_patches:
        raise ValueError(f"can't cut {num_patches} patches into windows of {max_patches}, {context} of them context")
    num_new = num_patches - context
    num_windows = _next_multiple(ceil_div(num_new, max_patches - context))
    step = ceil_div(num_new, num_windows)
    stops = [min(context + (i + 1) * step, num_patches) for i in range(num_windows)]
    keeps = [0, *stops[:-1]]
    return [Window(stop - step - context, stop, keep) for stop, keep in zip(stops, keeps, strict=True)]


def _next_multiple(number: int) -> int:
    return ceil_div(number, WINDOWS_PER_CALL) * WINDOWS_PER_CALL
