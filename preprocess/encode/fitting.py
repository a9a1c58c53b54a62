"""``FittingEncoder``: an encoder that makes do with the memory there is; being short of it costs a retry, never a run.

    as planned ─► parts of half as many clips ─► ... ─► one clip ─► windows, ever shorter ─► fault ``oom`` of that clip

Batches are planned well within a card (preprocess/encode/limits.py), so this is for cards that others use, too, and for
files much longer than their headers say. What did not fit is not tried again: the smaller limit holds for every batch
of that padded length or more. Only the last resort is always tried, so no clip is skipped on suspicion. Parts and
windows change the last float16 bit of some latents at most; no other column notices.

A retry costs the time of the call that failed, so a card that is always too small loses a few calls per worker and then
runs in small parts; lower ``limits.max_batch_samples`` for it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...core.errors import Fault, FaultCode, Stage
from ...core.units import ceil_div, padded_samples, samples_to_seconds
from .memory import free_memory, is_out_of_memory
from .protocol import LatentEncoder, Latents, WindowedEncoder

Waveform = npt.NDArray[np.float32]

MAX_REASON = 300
"""Characters kept of an allocator's message, which can fill a screen."""
MAX_STEPS = 6
"""Steps told in the notice."""


class FittingEncoder:
    """Wraps a worker's encoder; remembers what its device has no room for."""

    def __init__(self, encoder: LatentEncoder, notice: Callable[[str], None] = lambda text: None) -> None:
        """``notice`` gets one line for people after the first shortage."""
        self._encoder = encoder
        self._windowed = encoder if isinstance(encoder, WindowedEncoder) else None
        self._notice = notice
        self._limits = _Limits(encoder.info.max_whole_samples)
        self._steps: list[str] = []
        self._told = False

    def encode(self, waveforms: Sequence[Waveform], name: str = "a batch") -> list[Latents | Fault]:
        """Latents, or the fault ``oom``, of each waveform [S_i], in order; ``name`` says in the notice what they are.

        Unlike ``LatentEncoder.encode`` it takes clips of any length side by side.
        """
        self._steps.clear()
        made = [outcome for group in self._groups(waveforms) for outcome in self._encode_group(group)]
        if self._steps and not self._told:
            self._told = True
            steps = ", then ".join(self._steps[:MAX_STEPS])
            self._notice(f"out of memory in {name}: {steps}; what did not fit once is split at once from now on")
        return made

    def _groups(self, waveforms: Sequence[Waveform]) -> Iterator[Sequence[Waveform]]:
        """The batch as planned, unless clips came out longer than their headers said."""
        info, begin, longest = self._encoder.info, 0, 0
        for i, wav in enumerate(waveforms):
            size = self._size(wav)
            longest = max(longest, size)
            too_long = longest > info.max_whole_samples or longest * (i - begin + 1) > info.max_batch_samples
            if i > begin and too_long:
                yield waveforms[begin:i]
                begin, longest = i, size
        if begin < len(waveforms):
            yield waveforms[begin:]

    def _encode_group(self, waveforms: Sequence[Waveform]) -> list[Latents | Fault]:
        longest = max(self._size(wav) for wav in waveforms)
        if longest > self._encoder.info.max_whole_samples:
            return [self._encode_long(waveforms[0])]
        limit = self._limits.num_clips(longest)
        if limit is not None and len(waveforms) > max(limit, 1):
            return [made for part in _parts(waveforms, max(limit, 1)) for made in self._encode_group(part)]
        if limit == 0:
            return [self._encode_in_less(waveforms[0])]
        made = self._try(waveforms)
        if not isinstance(made, _Shortage):
            return made
        half = len(waveforms) // 2
        self._limits.clips[longest] = half
        if half == 0:
            return [self._encode_in_less(waveforms[0], made)]
        self._steps.append(f"{len(waveforms)} clips in parts of {half}")
        return self._encode_group(waveforms)

    def _encode_in_less(self, wav: Waveform, shortage: "_Shortage | None" = None) -> Latents | Fault:
        """A clip that doesn't fit whole. Two windows go through at a time, so a quarter is the first that gains anything."""
        if self._windowed is not None:
            size, shortest = self._size(wav), self._windowed.min_window_samples
            window = max(min(self._limits.window_samples, self._whole_patches(size // 4)), shortest)
            if window < size:
                return self._encode_windows(self._windowed, wav, window, shortage)
        return self._fault(wav, shortage) if shortage else self._encode_alone(wav)

    def _encode_long(self, wav: Waveform) -> Latents | Fault:
        """A clip that is planned in windows."""
        if self._windowed is None:
            return self._encode_alone(wav)
        return self._encode_windows(self._windowed, wav, self._limits.window_samples)

    def _encode_windows(
        self, encoder: WindowedEncoder, wav: Waveform, window: int, shortage: "_Shortage | None" = None
    ) -> Latents | Fault:
        """``window`` samples at first; ``shortage`` is what came before."""
        while True:
            if shortage is not None:
                self._steps.append(f"windows of {self._seconds(window):.3g} s")
            made = self._try([wav], encoder, window)
            if not isinstance(made, _Shortage):
                return made[0]
            shortage = made
            shorter = max(self._whole_patches(window // 2), encoder.min_window_samples)
            if shorter >= window:
                return self._fault(wav, shortage)
            window = shorter
            self._limits.window_samples = min(self._limits.window_samples, window)

    def _encode_alone(self, wav: Waveform) -> Latents | Fault:
        made = self._try([wav])
        return self._fault(wav, made) if isinstance(made, _Shortage) else made[0]

    def _try(
        self, waveforms: Sequence[Waveform], windowed: WindowedEncoder | None = None, window: int = 0
    ) -> "list[Latents | Fault] | _Shortage":
        """One call of the encoder: of its ``encode``, or of its ``encode_windowed`` for a single clip."""
        try:
            if windowed is not None:
                return [windowed.encode_windowed(waveforms[0], window)]
            return list(self._encoder.encode(waveforms))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            shortage = _Shortage((str(error) or type(error).__name__)[:MAX_REASON])
        free_memory()
        return shortage

    def _fault(self, wav: Waveform, shortage: "_Shortage") -> Fault:
        seconds = self._seconds(len(wav))
        self._steps.append(f"a clip of {seconds:.3g} s is skipped")
        return Fault(Stage.ENCODE, FaultCode.OOM, f"{seconds:.3g} s do not fit, whole or in windows: {shortage.reason}")

    def _size(self, wav: Waveform) -> int:
        return padded_samples(len(wav), self._encoder.info.spec)

    def _whole_patches(self, num_samples: int) -> int:
        return num_samples - num_samples % self._encoder.info.spec.patch_samples

    def _seconds(self, num_samples: int) -> float:
        return samples_to_seconds(num_samples, self._encoder.info.spec.sample_rate)


@dataclass(frozen=True, slots=True)
class _Shortage:
    """A call that memory did not suffice for."""

    reason: str
    """The allocator's words."""


@dataclass(slots=True)
class _Limits:
    """What is known of the device's memory, beyond what the plan took for granted."""

    window_samples: int
    """Samples of a window that may be tried."""
    clips: dict[int, int] = field(default_factory=dict)
    """Padded samples -> clips of that length that may be tried in one call; 0 = not even one."""

    def num_clips(self, num_samples: int) -> int | None:
        """Clips of this padded length that may be tried at once; None if nothing is known."""
        return min((clips for size, clips in self.clips.items() if size <= num_samples), default=None)


def _parts(waveforms: Sequence[Waveform], limit: int) -> Iterator[Sequence[Waveform]]:
    """Consecutive parts of nearly equal size, of at most ``limit`` clips."""
    size, num_parts = len(waveforms), ceil_div(len(waveforms), limit)
    for i in range(num_parts):
        yield waveforms[i * size // num_parts : (i + 1) * size // num_parts]
