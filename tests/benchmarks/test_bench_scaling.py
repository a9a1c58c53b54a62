"""What docs/scaling.md promises, at a size that takes seconds: 16 cards with as many clips a card as 512 have of 35 million."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts import their neighbours by bare names

from benchmarks import bench_scaling


@pytest.fixture(scope="module")
def seconds() -> bench_scaling.Floats:
    return bench_scaling.clip_seconds(35_000_000 * 16 // 512)


@pytest.mark.parametrize(("trouble", "most"), [(False, 0.03), (True, 0.08)])
def test_our_chunks_end_near_the_ideal_time(seconds: bench_scaling.Floats, trouble: bool, most: float):
    """16 cards of 512: the plan's ladder and what a worker holds decide it, not the number of cards."""
    chunks = bench_scaling.planned_chunks(seconds)

    cluster, result = bench_scaling.simulate("ours", chunks, 16, trouble=trouble)

    assert 0 < result.makespan_s / cluster.ideal_s(float(chunks.sum())) - 1 < most
    assert len(chunks) == len(result.commits)


def test_simpler_rules_cost_more_where_cards_differ(seconds: bench_scaling.Floats):
    """Equal shares wait for the slowest card; chunks in ascending order end with the longest."""
    fixed = bench_scaling.fixed_chunks(seconds)
    ours = bench_scaling.planned_chunks(seconds)
    over = {}
    for way, chunks in (("ours", ours), ("static", fixed)):
        cluster, result = bench_scaling.simulate(way, chunks, 16, trouble=True)
        over[way] = result.makespan_s / cluster.ideal_s(float(chunks.sum())) - 1

    assert over["static"] > 0.5 > 10 * over["ours"]


def test_parts_are_the_divisions_of_the_real_command():
    """Two nodes, every chunk once, and shares that end together."""
    chunks = np.full(800, 9_000.0)

    cluster, result = bench_scaling.simulate("parts", chunks, 16, trouble=False)

    assert dict.fromkeys(range(800), 1) == result.commits
    assert cluster.ideal_s(float(chunks.sum())) == pytest.approx(result.makespan_s, rel=0.02)


def test_shares_are_neighbours_in_equal_numbers():
    assert [range(2), range(2, 5)] == bench_scaling.shares(5, 2)
