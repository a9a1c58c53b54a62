"""Limits: the encoder's constants, lowered and never raised by the configuration."""

from latentprep.preprocess.config import LimitSettings
from latentprep.preprocess.plan.limits import CutLimits

from .builders import PATCH, info, limits


def test_limits_of_a_run_come_from_the_encoder() -> None:
    """60 s of work at three times real time are 180 s of audio."""
    found = CutLimits.of(LimitSettings(), info(rate=3.0), "cpu")

    assert limits(max_chunk_samples=180 * 16_000) == found
    assert PATCH == found.patch_samples


def test_an_encoder_without_a_rate_leaves_seconds_unbounded() -> None:
    """The dummy."""
    assert CutLimits.of(LimitSettings(), info(), "cpu").max_chunk_samples is None


def test_the_configuration_lowers_limits_but_never_raises_them() -> None:
    """Upstream's vae_batch_size and vae_max_tokens are upper bounds; beyond the encoder's own the card gives out."""
    low = CutLimits.of(LimitSettings(max_batch_clips=3, max_batch_samples=5 * PATCH), info(), "cpu")
    high = CutLimits.of(LimitSettings(max_batch_clips=1000, max_batch_samples=10**9), info(), "cpu")

    assert (3, 5 * PATCH) == (low.max_batch_clips, low.max_batch_samples)
    assert (15, 32 * 16_000) == (high.max_batch_clips, high.max_batch_samples)
    assert 128 == CutLimits.of(LimitSettings(max_batch_clips=1000), info(), "cuda").max_batch_clips


def test_limits_survive_the_plan_file() -> None:
    """A resume takes the stored ones."""
    shape = limits(max_chunk_samples=17)

    assert shape == CutLimits.from_json(shape.to_json())
