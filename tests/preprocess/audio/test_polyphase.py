"""The kernel as matrix products resamples as torchaudio does, one clip or many at once."""

import numpy as np
import pytest
import torch
import torchaudio
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.core.units import resampled_length
from latentprep.preprocess.audio.polyphase import Polyphase
from latentprep.preprocess.audio.resample import resample

from .builders import tone

torch.set_num_threads(1)

RATES = [(48_000, 16_000), (44_100, 16_000), (96_000, 16_000), (8_000, 16_000), (44_100, 48_000), (48_000, 44_100)]


@settings(max_examples=30, deadline=None)
@given(num_samples=st.integers(1, 5_000), rates=st.sampled_from(RATES), seed=st.integers(0, 9))
def test_any_length_equals_torchaudios(num_samples: int, rates: tuple[int, int], seed: int) -> None:
    """Ends included, where the kernel reaches beyond the clip."""
    wave = np.random.default_rng(seed).standard_normal(num_samples).astype(np.float32)

    expected = torchaudio.functional.resample(torch.from_numpy(wave), *rates).numpy()

    np.testing.assert_allclose(expected, resample(wave, *rates), rtol=0, atol=2e-6)


@pytest.mark.parametrize("rates", RATES)
def test_clips_of_several_lengths_go_through_at_once(rates: tuple[int, int]) -> None:
    """None sees its neighbours; what lies behind the shorter ones is cut off."""
    waves = [tone(seconds, rates[0]) for seconds in (0.3, 0.07, 0.21)]
    kernel = Polyphase(*rates)
    padded = torch.zeros(len(waves), kernel.padded_length(len(waves[0])))
    for row, wave in zip(padded, waves, strict=True):
        row[kernel.lead : kernel.lead + len(wave)] = torch.from_numpy(wave)

    made = kernel(padded).numpy()

    for row, wave in zip(made, waves, strict=True):
        np.testing.assert_allclose(
            resample(wave, *rates), row[: resampled_length(len(wave), *rates)], rtol=0, atol=2e-6
        )
