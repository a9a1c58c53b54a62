"""How much audio one encoder call takes, by kind of device. Constants, so that a plan depends on no machine's memory.

CPU: 32 s. Beyond that single activations pass 1 GiB for the largest encoder, and more at once is not faster (measured:
32 clips of 8 s 19.5 times real time, 4 clips 62).

CUDA: 64 s. The VoxCPM2 encoder writes about 290 MB of activations per audio second in float32, 18.6 GB for 64 s even if
none were freed before the last; that fits a card of 24 GB beside the weights, and one layer's 131 million values per
call are more than enough to fill the largest card. Smaller cards: lower ``limits.max_batch_samples``.

A clip is encoded whole up to half a batch, so the CPU, which never computes a batch of one, has room for it twice, and
two windows of a longer one fit into a call.
"""

from dataclasses import dataclass

from ...core.units import LatentSpec
from .protocol import DeviceKind

BATCH_SECONDS: dict[DeviceKind, int] = {"cpu": 32, "cuda": 64}
"""Padded audio seconds of one encoder call."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Padded samples, both a whole number of patches."""

    max_batch_samples: int
    max_whole_samples: int


def batch_limits(spec: LatentSpec, device_kind: DeviceKind, *, context_patches: int) -> BatchLimits:
    """Limits of an encoder whose windows need ``context_patches`` patches of left context.

    A window holds at least as much new audio as context, whatever the geometry.
    """
    patches = BATCH_SECONDS[device_kind] * spec.sample_rate // (2 * spec.patch_samples)
    whole = max(patches, 2 * context_patches, 1) * spec.patch_samples
    return BatchLimits(max_batch_samples=2 * whole, max_whole_samples=whole)
