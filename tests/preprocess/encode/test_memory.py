"""A device that has no memory left: halves, then the one clip that does not fit."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
import torch

from latentprep.core.errors import Fault, FaultCode
from latentprep.preprocess.encode.dummy import DummyEncoder, describe_dummy
from latentprep.preprocess.encode.memory import encode_fitting
from latentprep.preprocess.encode.protocol import Latents


class SmallCard(DummyEncoder):
    """Takes at most so many samples a call, then fails as torch does."""

    def __init__(self, max_samples: int, error: type[RuntimeError] = torch.OutOfMemoryError) -> None:
        super().__init__(describe_dummy())
        self.max_samples, self.error = max_samples, error
        self.calls: list[int] = []

    def encode(self, waveforms: Sequence[npt.NDArray[np.float32]]) -> list[Latents]:
        self.calls.append(len(waveforms))
        if sum(map(len, waveforms)) > self.max_samples:
            raise self.error("out of memory")
        return super().encode(waveforms)


def waves(*lengths: int) -> list[npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-0.5, 0.5, length).astype(np.float32) for length in lengths]


def test_a_batch_that_does_not_fit_is_halved():
    """And gives the same latents, in the same order."""
    clips = waves(5000, 6000, 7000, 8000)
    card = SmallCard(16_000)
    whole = DummyEncoder(describe_dummy()).encode(clips)

    latents = encode_fitting(card, clips)

    assert [4, 2, 2] == card.calls
    assert all(np.array_equal(want.frames_FD, have.frames_FD) for want, have in zip(whole, latents, strict=True))


def test_a_clip_that_does_not_fit_alone_is_the_only_one_lost():
    """Promise 3: one bad clip costs one row."""
    latents = encode_fitting(SmallCard(16_000), waves(5000, 20_000, 7000))

    assert [Latents, Fault, Latents] == [type(outcome) for outcome in latents]
    assert isinstance(latents[1], Fault)
    assert (FaultCode.OOM, "1.2 s alone do not fit: out of memory") == (latents[1].code, latents[1].message)


def test_another_error_is_not_taken_for_a_lack_of_memory():
    """A bug must be seen, not retried on halves."""
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_fitting(SmallCard(0, RuntimeError), waves(5000, 5000))
