"""Encode batches: exact small examples, worked out by hand."""

import numpy as np

from latentprep.preprocess.plan.batches import Batches, CutInput, cut_batches

from .builders import PATCH, limits


def _cut(samples: list[int], corpus: list[int] | None = None, **changes: int) -> Batches:
    count = len(samples)
    corpora = np.asarray(corpus if corpus is not None else [0] * count)
    row_bytes = np.full(count, 1000)
    sizes = CutInput(corpus=corpora, num_samples=np.asarray(samples), row_bytes=row_bytes)
    return cut_batches(sizes, limits(**changes))


def _positions(batches: Batches) -> list[list[int]]:
    return [piece.tolist() for piece in np.split(batches.order, batches.starts[1:-1])]


def test_a_small_corpus_goes_in_pairs_of_neighbours_from_the_longest_down() -> None:
    """1/32 of six clips would be one clip a batch; a CPU pays for two anyway."""
    batches = _cut([30_000, 100_000, 50_000, 98_000, 20_000, 49_000])

    assert [[1, 3], [2, 5], [0, 4]] == _positions(batches)
    assert [198_000, 99_000, 50_000] == batches.samples.tolist()
    assert [2000, 2000, 2000] == batches.row_bytes.tolist()


def test_equal_lengths_keep_the_reading_order() -> None:
    """Else the plan would depend on the sort of the day."""
    assert [[0, 1], [2, 3], [4]] == _positions(_cut([PATCH] * 5))


def test_a_batch_takes_a_thirty_second_of_the_corpus() -> None:
    """97 clips: 32 batches of at most 4 would be too few to deal, so 4 is the limit (97 / 32, rounded up)."""
    batches = _cut([PATCH] * 97)

    assert [4] * 24 + [1] == batches.rows.tolist()


def test_a_shorter_clip_does_not_join_beyond_the_ratio() -> None:
    """95 clips of 1,000 patches and one of 900: the last batch of long ones stays at two."""
    batches = _cut([100 * PATCH] * 95 + [90 * PATCH], max_batch_samples=1000 * PATCH, max_whole_samples=1000 * PATCH)

    assert [3] * 31 + [2, 1] == batches.rows.tolist()


def test_the_ratio_counts_one_patch_besides_the_five_per_cent() -> None:
    """Among short clips 5 % is less than a patch, and a patch is what padding costs anyway."""
    batches = _cut([2 * PATCH] * 95 + [PATCH])

    assert [3] * 32 == batches.rows.tolist()


def test_padded_samples_bound_a_batch() -> None:
    """One sample more than ten patches makes eleven: three such clips are 33 patches."""
    samples = [10 * PATCH + 1] * 96

    assert [3] * 32 == _cut(samples, max_batch_samples=33 * PATCH).rows.tolist()
    assert [2] * 48 == _cut(samples, max_batch_samples=33 * PATCH - 1).rows.tolist()
    assert [1] * 96 == _cut(samples, max_batch_samples=21 * PATCH).rows.tolist()


def test_a_clip_for_windows_comes_alone() -> None:
    """The encoder takes a clip that it cuts into windows by itself only."""
    batches = _cut([9 * PATCH, 9 * PATCH, 8 * PATCH, 8 * PATCH], max_whole_samples=8 * PATCH)

    assert [[0], [1], [2, 3]] == _positions(batches)


def test_batches_fit_into_a_quarter_chunk() -> None:
    """Every chunk size is dealt from the same batches."""
    samples = [PATCH] * 1000

    assert 4 == _cut(samples, max_chunk_rows=16).rows.max()
    assert 3 == _cut(samples, max_chunk_bytes=15_999).rows.max()
    assert 4 == _cut(samples, max_chunk_bytes=16_000).rows.max()


def test_no_batch_crosses_corpora() -> None:
    """A chunk, and so a block, holds rows of one corpus."""
    batches = _cut([5 * PATCH] * 4, corpus=[0, 1, 0, 1])

    assert [[0, 2], [1, 3]] == _positions(batches)
    assert [0, 1] == batches.corpus.tolist()


def test_no_clips_make_no_batches() -> None:
    """A part of a run may be empty."""
    assert [] == _cut([]).rows.tolist()
