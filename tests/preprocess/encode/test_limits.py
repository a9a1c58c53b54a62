"""Limits are constants of encoder and device kind, in whole patches."""

from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.units import LatentSpec
from latentprep.preprocess.encode.limits import BatchLimits, batch_limits

VOXCPM2 = LatentSpec(sample_rate=16_000, hop_length=640, patch_size=4, latent_dim=64)


def test_voxcpm2_takes_32_seconds_on_a_cpu_and_64_on_a_gpu():
    """The figures of the module's docstring."""
    cpu = BatchLimits(max_batch_samples=32 * 16_000, max_whole_samples=16 * 16_000)
    gpu = BatchLimits(max_batch_samples=64 * 16_000, max_whole_samples=32 * 16_000)

    assert cpu == batch_limits(VOXCPM2, "cpu", context_patches=4)
    assert gpu == batch_limits(VOXCPM2, "cuda", context_patches=4)


@given(st.integers(1, 200_000), st.integers(1, 5_000), st.integers(1, 8), st.integers(0, 50))
def test_a_whole_clip_fits_twice_and_a_window_is_more_than_context(rate: int, hop: int, patch: int, context: int):
    """The CPU repeats a single clip, and windows come in pairs, whatever the geometry."""
    spec = LatentSpec(sample_rate=rate, hop_length=hop, patch_size=patch, latent_dim=8)
    limits = batch_limits(spec, "cpu", context_patches=context)

    assert 0 == limits.max_whole_samples % spec.patch_samples
    assert limits.max_batch_samples == 2 * limits.max_whole_samples
    assert limits.max_whole_samples >= max(1, 2 * context) * spec.patch_samples
