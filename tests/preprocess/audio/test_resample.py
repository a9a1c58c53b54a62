"""Resampling equals torchaudio's, and its length is known beforehand."""

import numpy as np
import pytest
import torch
import torchaudio
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.core.errors import ClipFault
from latentprep.core.units import resampled_length
from latentprep.preprocess.audio.resample import MAX_KERNEL_VALUES, kernel_values, resample

from .builders import tone

torch.set_num_threads(1)


@pytest.mark.parametrize(("rate_in", "rate_out"), [(44_100, 16_000), (48_000, 16_000), (8_000, 16_000)])
def test_the_cached_kernel_gives_the_same_bits_as_torchaudio(rate_in: int, rate_out: int) -> None:
    """The reference rows were made with the function."""
    wave = tone(1.0, rate_in)
    expected = torchaudio.functional.resample(torch.from_numpy(wave), rate_in, rate_out).numpy()

    assert np.array_equal(expected, resample(wave, rate_in, rate_out))
    assert np.array_equal(expected, resample(wave, rate_in, rate_out))


def test_equal_rates_change_nothing() -> None:
    """Not even a copy."""
    wave = tone()

    assert wave is resample(wave, 16_000, 16_000)


@settings(max_examples=40, deadline=None)
@given(num_samples=st.integers(1, 600_000), rate=st.sampled_from([8_000, 22_050, 24_000, 44_100, 48_000, 96_000]))
def test_the_length_is_known_beforehand(num_samples: int, rate: int) -> None:
    """torchaudio computes it in float32, so for long clips plain integers would be one too many now and then."""
    wave = np.zeros(num_samples, np.float32)

    assert resampled_length(num_samples, rate, 16_000) == len(resample(wave, rate, 16_000))


@pytest.mark.parametrize(("num_samples", "exact"), [(309_910, 112_440), (746_941, 271_000)])
def test_the_length_is_one_less_than_exact_where_torchaudios_is(num_samples: int, exact: int) -> None:
    """The column estimated_duration of weak clips counts these samples."""
    wave = np.zeros(num_samples, np.float32)

    assert exact - 1 == resampled_length(num_samples, 44_100, 16_000) == len(resample(wave, 44_100, 16_000))


def test_rates_without_a_usable_ratio_are_refused_before_memory_is_taken() -> None:
    """44,101 Hz shares no factor with 16,000."""
    assert 706_160_000 == kernel_values(44_101, 16_000) > MAX_KERNEL_VALUES
    with pytest.raises(ClipFault, match="no usable ratio"):
        resample(tone(), 44_101, 16_000)


@pytest.mark.parametrize(
    "rate", [8_000, 11_025, 22_050, 22_255, 32_000, 44_056, 44_100, 48_000, 88_200, 96_000, 192_000]
)
def test_rates_of_music_are_well_below_the_limit(rate: int) -> None:
    """Old Macintosh and NTSC rates included."""
    assert MAX_KERNEL_VALUES > kernel_values(rate, 16_000)
