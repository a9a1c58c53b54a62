"""The simulation that docs/scaling.md rests on: it loses no work, knows what is ideal, and our chunks come near to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cluster_sim import Clock, Cluster, simulate_parts, simulate_whole

CHUNKS = np.full(400, 3_000.0)
"""Audio seconds; 2 s of a card of 1,500 times real time."""


def test_one_card_takes_its_start_and_the_sum_of_its_chunks():
    result = simulate_whole(CHUNKS, Cluster(rates=(1_500.0,), startup_s=30, chunk_s=0.5))

    assert 30 + 400 * (2 + 0.5) == pytest.approx(result.makespan_s)
    assert 1 == result.incarnations


def test_a_card_of_half_the_speed_gets_half_the_chunks():
    """Three halves of a card: 800 s of work take 800 / 1.5 s, give or take the last chunk."""
    cluster = Cluster(rates=(1_500.0, 750.0), startup_s=0, chunk_s=0)

    assert 800 / 1.5 == pytest.approx(cluster.ideal_s(CHUNKS.sum()))
    assert 800 / 1.5 == pytest.approx(simulate_whole(CHUNKS, cluster).makespan_s, abs=8)


def test_parts_take_as_long_as_the_longest():
    """Two nodes of one card, three tasks: the second task of a node waits for its first, and pays for a start."""
    cluster = Cluster(rates=(1_500.0, 1_500.0), cards_per_node=1, startup_s=10, chunk_s=0)

    result = simulate_parts(CHUNKS, cluster, [range(100), range(100, 200), range(200, 400)])

    assert (10 + 200) + (10 + 400) == pytest.approx(result.makespan_s)
    assert 3 == result.incarnations


@settings(max_examples=30, deadline=None)
@given(
    rates=st.lists(st.floats(400, 3_000), min_size=1, max_size=12),
    num_chunks=st.integers(1, 200),
    failures=st.sampled_from([0.0, 500.0]),
    preemptions=st.sampled_from([0.0, 1_000.0]),
    seed=st.integers(0, 9),
)
def test_every_chunk_is_committed_once_whatever_happens(
    rates: list[float], num_chunks: int, failures: float, preemptions: float, seed: int
):
    """Each card dies every 173 s, on chunks of 1 to 5 s: six deaths in a row without one would end the run, rightly."""
    cluster = Cluster(
        rates=tuple(rates), failures_per_day=failures, preemptions_per_day=preemptions, cards_per_node=4, seed=seed
    )
    audio_s = np.full(num_chunks, 2_000.0)

    whole = simulate_whole(audio_s, cluster)
    parts = simulate_parts(audio_s, cluster, [range(i, num_chunks, 5) for i in range(5)])

    for result in (whole, parts):
        assert dict.fromkeys(range(num_chunks), 1) == result.commits
        assert cluster.ideal_s(float(audio_s.sum())) <= result.makespan_s + 1e-6
    assert (whole.deaths > 0) <= (failures > 0)
    assert (parts.preemptions > 0) <= (preemptions > 0)


def test_a_run_that_stands_still_is_an_error():
    """A rule that forgets a chunk must not look like a long run."""
    with pytest.raises(RuntimeError, match="stands still at 0 s"):
        Clock().run(lambda: False)
