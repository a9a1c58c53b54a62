"""Who gets how many decode threads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.dispatch.cores import Cores
from latentprep.preprocess.dispatch.thread_share import share_threads
from latentprep.preprocess.encode.protocol import DeviceKind


@pytest.mark.parametrize(
    ("expected", "configured", "workers", "kind", "cores"),
    [
        ((16, 16, False), None, 1, "cuda", 16),
        ((4, 4, False), None, 4, "cuda", 16),
        ((2, 2, False), None, 8, "cuda", 8),
        ((2, 8, False), None, 2, "cpu", 16),
        ((2, 2, False), None, 16, "cpu", 16),
        ((4, 4, True), 8, 2, "cuda", 16),
        ((8, 8, False), 64, 2, "cuda", 16),
        ((1, 1, True), 1, 4, "cpu", 16),
    ],
)
def test_cores_and_a_configured_number_are_shared_among_the_workers(
    expected: tuple[int, int, bool], configured: int | None, workers: int, kind: DeviceKind, cores: int
):
    share = share_threads(configured, workers, kind, Cores(cores, "affinity"))

    assert expected == (share.start, share.most, share.configured)


@given(st.none() | st.integers(1, 300), st.integers(1, 64), st.sampled_from(["cpu", "cuda"]), st.integers(1, 300))
def test_workers_together_have_no_more_threads_than_bounds(
    configured: int | None, workers: int, kind: DeviceKind, cores: int
):
    """But for the one or two that each needs."""
    share = share_threads(configured, workers, kind, Cores(cores, "cgroup"))

    assert 1 <= share.start <= share.most
    assert share.most * workers <= max(min(configured or cores, cores), 2 * workers)


def test_the_start_line_names_the_number_and_its_limit():
    share = share_threads(None, 2, "cpu", Cores(16, "SLURM_CPUS_PER_TASK"))

    assert "decode threads of each: 2, up to 8 (16 usable cores, limit: SLURM_CPUS_PER_TASK)" == share.text
