"""Decode hooks that leave a worker's encoder with room for a few seconds of audio (PREP_TEST_DECODE_HOOK).

The allocator is all that is replaced: the network, the worker and its supervisor are the real ones.
"""

import torch
from torch import Tensor

from latentprep.preprocess.encode.voxcpm import AudioVaeEncoder

_mean = AudioVaeEncoder._mean


def room_for_3_s(path: str) -> None:
    """Whole for short clips, windows for longer ones."""
    _leave(3 * 16_000)


def room_for_1_s(path: str) -> None:
    """Not even the shortest windows fit."""
    _leave(16_000)


def _leave(num_samples: int) -> None:
    def narrow(self: AudioVaeEncoder, staged_BS: Tensor) -> Tensor:
        if staged_BS.numel() > num_samples:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {staged_BS.numel()} samples.")
        return _mean(self, staged_BS)

    AudioVaeEncoder._mean = narrow
