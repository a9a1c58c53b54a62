"""Dummy latents cost nothing and still tell clips, places and lengths apart."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import UsageError
from latentprep.core.units import num_latent_frames
from latentprep.preprocess.encode.dummy import DUMMY_SPEC, DummyEncoder, describe_dummy

from .builders import noise

ENCODER = DummyEncoder(describe_dummy())


@given(st.integers(1, 20_000), st.integers(0, 3))
def test_latents_are_whole_patches_of_the_clip_alone(num_samples: int, seed: int):
    """Batch mates and their order must not show."""
    clip = noise(num_samples, seed=seed)
    alone, beside = ENCODER.encode([clip])[0], ENCODER.encode([noise(30_000, seed=9), clip])[1]

    assert (num_latent_frames(num_samples, DUMMY_SPEC), 64) == alone.frames_FD.shape
    assert np.float16 == alone.frames_FD.dtype
    assert np.array_equal(alone.frames_FD, beside.frames_FD)
    assert alone.peak == beside.peak


@pytest.mark.parametrize("change", [lambda w: np.roll(w, 1), lambda w: w[:-10], lambda w: w[::-1], lambda w: w * 0.5])
def test_a_shifted_cut_reversed_or_softer_clip_shows(change):
    """This is all that the encoder is for: to notice when the machinery around it mixes something up."""
    clip = noise(2560)

    changed = ENCODER.encode([change(clip).astype(np.float32)])[0]

    assert not np.array_equal(ENCODER.encode([clip])[0].frames_FD, changed.frames_FD)


def test_its_values_are_a_tenth_of_the_samples_and_half_the_frame_before():
    """The formula, on a ramp."""
    clip = np.arange(1280, dtype=np.float32) / 1280
    frames = ENCODER.encode([clip])[0].frames_FD.astype(np.float32)

    assert pytest.approx(4 * clip[:640:10], abs=1e-3) == frames[0]
    assert pytest.approx(4 * clip[640::10] + 2 * clip[:640:10], abs=2e-3) == frames[1]


def test_samples_that_are_not_finite_or_too_loud_show_in_the_peak():
    """The worker makes a fault of the clip out of it, as with a real VAE."""
    loud, broken = np.full(640, 1e5, np.float32), np.full(640, np.nan, np.float32)

    assert [4e5, True] == [ENCODER.encode([loud])[0].peak, np.isnan(ENCODER.encode([broken])[0].peak)]


def test_it_is_far_faster_than_decoding_audio():
    """FLAC is read at about 1,400 times real time; a benchmark of the rest must not measure the dummy."""
    clips = [noise(8 * 16_000)] * 20
    ENCODER.encode(clips)
    start = time.perf_counter()
    ENCODER.encode(clips)

    assert 20_000 < 160 / (time.perf_counter() - start)


def test_its_latents_can_not_be_decoded():
    """Better an error with a way out than noise."""
    with pytest.raises(UsageError, match="can't be decoded"):
        ENCODER.decode(np.zeros((4, 64), np.float16))


def test_its_rate_is_unbounded():
    """Chunks of a dummy run are sized by rows and bytes alone."""
    assert describe_dummy().stated_rate is None
