"""Dealing batches into chunks: exact small examples."""

import numpy as np

from latentprep.preprocess.plan.batches import CutInput, cut_batches
from latentprep.preprocess.plan.deal import deal, shuffle_keys

from .builders import PATCH, limits


def _deal(samples: list[int], *, row_bytes: int = 1000, seed: int = 7, **changes: int) -> tuple[list[int], list[int]]:
    """Clips of each full-size and each quarter-size chunk, sorted."""
    shape = limits(**changes)
    count = len(samples)
    sizes = CutInput(corpus=np.zeros(count, int), num_samples=np.asarray(samples), row_bytes=np.full(count, row_bytes))
    batches = cut_batches(sizes, shape)
    full, quarter = deal(batches, shape, seed)
    return sorted(int(batches.rows[c].sum()) for c in full), sorted(int(batches.rows[c].sum()) for c in quarter)


def test_the_shuffle_is_splitmix64_for_ever() -> None:
    """A stored plan must come out the same with every later version of numpy. Values: the generator's published
    first outputs for the state 0, which is where seed 0 begins."""
    assert [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F] == shuffle_keys(np.arange(3), 0).tolist()


def test_seeds_shuffle_differently() -> None:
    """Two runs need not share their order, but one run always has its own."""
    orders = {tuple(np.argsort(shuffle_keys(np.arange(50), seed)).tolist()) for seed in range(20)}

    assert 20 == len(orders)


def test_rows_bound_chunks_and_the_last_tenth_comes_in_quarters() -> None:
    """4,000 equal clips in batches of 10: 3,600 of them in four chunks under 1,000 rows, 400 in two under 250."""
    full, quarter = _deal([PATCH] * 4000, max_batch_clips=10, max_chunk_rows=1000)

    assert [900] * 4 == full
    assert [200] * 2 == quarter


def test_bytes_bound_chunks() -> None:
    """10,000 bytes hold ten rows of 1,000, a quarter of it two."""
    full, quarter = _deal([PATCH] * 100, max_chunk_bytes=10_000)

    assert [10] * 9 == full
    assert [2] * 5 == quarter


def test_audio_seconds_bound_chunks() -> None:
    """640 clips in batches of 4 patches, 40 patches a chunk: the 32-chunk rule allows no more than 20."""
    full, quarter = _deal([PATCH] * 640, max_batch_clips=4, max_chunk_samples=40 * PATCH)

    assert [16] + [20] * 28 == full
    assert [4] * 16 == quarter


def test_a_batch_beyond_a_bound_is_a_chunk_of_its_own() -> None:
    """An hour-long clip must not be lost because no chunk is allowed to be that long."""
    full, quarter = _deal([1000 * PATCH] + [PATCH] * 1000, max_chunk_samples=20 * PATCH)

    assert 1 in full + quarter
    assert 1001 == sum(full) + sum(quarter)


def test_an_unbounded_encoder_needs_no_32_chunks() -> None:
    """The rule serves ETAs and stragglers; without a rate there are none, and small blocks are slow to open."""
    full, quarter = _deal([7 * 16_000] * 3000, row_bytes=25_000)

    assert [900] * 3 == full
    assert [148, 152] == quarter
