"""The cut keeps its laws for any lengths and limits, and its promises at full size."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.preprocess.plan.cut import Cut, CutInput, CutLimits, cut
from latentprep.preprocess.plan.row_bytes import row_bytes

from .builders import PATCH, SPEC, limits

RATE = SPEC.sample_rate


@st.composite
def _inputs(draw: st.DrawFn) -> CutInput:
    count = draw(st.integers(0, 120))
    lengths = st.one_of(st.integers(1, 30 * PATCH), st.sampled_from([PATCH, 4 * PATCH, 300 * PATCH]))
    columns = [st.integers(0, 2), lengths, st.integers(1, 50_000)]
    corpus, samples, sizes = (draw(st.lists(values, min_size=count, max_size=count)) for values in columns)
    return CutInput(corpus=np.asarray(corpus), num_samples=np.asarray(samples), row_bytes=np.asarray(sizes))


_LIMITS = st.builds(
    CutLimits,
    patch_samples=st.just(PATCH),
    max_batch_clips=st.integers(1, 20),
    max_batch_samples=st.integers(1, 200 * PATCH),
    max_whole_samples=st.integers(1, 200 * PATCH),
    max_chunk_rows=st.integers(1, 60),
    max_chunk_bytes=st.integers(1, 200_000),
    max_chunk_samples=st.none() | st.integers(1, 300 * PATCH),
)


def _padded(samples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return -(-samples // PATCH) * PATCH


def _batch_sizes(pieces: Cut, clips: CutInput) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(rows, longest clip in whole patches) of each batch."""
    starts = pieces.batch_starts
    samples = _padded(clips.num_samples[pieces.order].astype(np.int64))
    return np.diff(starts), np.maximum.reduceat(samples, starts[:-1])


@settings(max_examples=40)
@given(_inputs(), _LIMITS, st.integers(0, 2**64 - 1))
def test_each_clip_is_in_exactly_one_batch_and_chunk(clips: CutInput, shape: CutLimits, seed: int) -> None:
    """planned = written + skipped + remaining begins here."""
    pieces = cut(clips, shape, seed=seed)

    count = len(clips.num_samples)
    assert list(range(count)) == sorted(pieces.order.tolist())
    assert count == len(pieces.batch) == len(pieces.chunk) == pieces.batch_starts[-1] == pieces.chunk_starts[-1]
    assert set(pieces.chunk_starts.tolist()) <= set(pieces.batch_starts.tolist())
    assert (np.diff(pieces.batch_starts) > 0).all()
    assert (np.diff(pieces.chunk_starts) > 0).all()


@settings(max_examples=40)
@given(_inputs(), _LIMITS)
def test_batches_keep_their_bounds_unless_they_hold_one_clip(clips: CutInput, shape: CutLimits) -> None:
    """The limit on padded samples is what keeps a card from running out of memory."""
    pieces = cut(clips, shape, seed=1)
    if not len(pieces.order):
        return
    rows, longest = _batch_sizes(pieces, clips)
    sizes = np.add.reduceat(clips.row_bytes[pieces.order], pieces.batch_starts[:-1])
    shared = rows > 1
    share = np.asarray([max(2, -(-(clips.corpus == c).sum() // 32)) for c in range(3)])
    first_corpus = clips.corpus[pieces.order[pieces.batch_starts[:-1]]]

    assert (rows * longest)[shared].max(initial=0) <= shape.max_batch_samples
    assert rows.max() <= min(shape.max_batch_clips, max(1, shape.max_chunk_rows // 4))
    assert (rows <= share[first_corpus]).all()
    assert sizes[shared].max(initial=0) <= shape.max_chunk_bytes // 4
    assert longest[shared].max(initial=0) <= _padded(np.asarray([shape.max_whole_samples])).max()


@settings(max_examples=40)
@given(_inputs(), _LIMITS)
def test_chunks_keep_their_bounds_unless_they_hold_one_batch(clips: CutInput, shape: CutLimits) -> None:
    """A chunk is what a kill can cost, and what a worker holds in memory."""
    pieces = cut(clips, shape, seed=1)
    if not len(pieces.order):
        return
    starts = pieces.chunk_starts[:-1]
    divisor = np.where(np.arange(len(starts)) < pieces.num_full_chunks, 1, 4)
    several = np.add.reduceat(np.isin(np.arange(len(pieces.order)), pieces.batch_starts), starts) > 1
    sums = [np.add.reduceat(column[pieces.order], starts) for column in (clips.num_samples, clips.row_bytes)]
    seconds = min(shape.max_chunk_samples or 1 << 62, int(clips.num_samples.sum()) // 32)

    assert (np.diff(pieces.chunk_starts) <= np.maximum(1, shape.max_chunk_rows // divisor))[several].all()
    assert (sums[1] <= shape.max_chunk_bytes // divisor)[several].all()
    if shape.max_chunk_samples is not None:
        assert (sums[0] <= seconds // divisor)[several].all()


@settings(max_examples=40)
@given(_inputs(), _LIMITS)
def test_chunks_hold_one_corpus_and_batches_nearly_one_length(clips: CutInput, shape: CutLimits) -> None:
    """A block belongs to one corpus; a batch that mixes lengths computes padding."""
    pieces = cut(clips, shape, seed=1)
    corpus = clips.corpus[pieces.order]
    samples = clips.num_samples[pieces.order]

    for start, stop in zip(pieces.chunk_starts[:-1], pieces.chunk_starts[1:], strict=True):
        assert 1 == len(set(corpus[start:stop].tolist()))
    for start, stop in zip(pieces.batch_starts[:-1], pieces.batch_starts[1:], strict=True):
        mates = samples[start:stop]
        assert mates[0] == mates.max()
        assert len(mates) <= 2 or mates.max() <= 1.05 * mates.min() + PATCH


@settings(max_examples=40)
@given(_inputs(), _LIMITS, st.integers(0, 2**64 - 1))
def test_the_same_input_gives_the_same_plan(clips: CutInput, shape: CutLimits, seed: int) -> None:
    """A resume, another node, another number of workers: always this plan."""
    first, second = cut(clips, shape, seed=seed), cut(clips, shape, seed=seed)

    for name in ("order", "batch_starts", "chunk_starts"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()


@settings(max_examples=40)
@given(_inputs(), _LIMITS)
def test_the_seed_moves_batches_but_never_changes_them(clips: CutInput, shape: CutLimits) -> None:
    """Batches decide bits; they come from lengths alone."""

    def batches(seed: int) -> set[tuple[int, ...]]:
        pieces = cut(clips, shape, seed=seed)
        return {tuple(piece) for piece in np.split(pieces.order, pieces.batch_starts[1:-1]) if len(piece)}

    assert batches(1) == batches(2)


def test_a_small_plan_worked_out_by_hand() -> None:
    """Ten clips of one length in pairs, four rows a chunk at most: nine tenths are four and a half pairs, so four go
    into full-size chunks of two pairs, and the fifth, whose middle lies at nine tenths, too."""
    clips = CutInput(corpus=np.zeros(10, int), num_samples=np.full(10, PATCH), row_bytes=np.full(10, 1))

    pieces = cut(clips, limits(max_chunk_rows=4, max_batch_clips=2), seed=3)

    assert [1] * 10 == np.diff(pieces.batch_starts).tolist()  # a quarter of four rows is one clip
    assert 3 == pieces.num_full_chunks
    assert [3, 3, 3, 1] == np.diff(pieces.chunk_starts).tolist()


# ---- full size


def _lognormal(count: int, *, corpora: int = 1) -> CutInput:
    """Clips of 6 s at the median, 0.3 to 60 s."""
    seconds = np.clip(np.random.default_rng(0).lognormal(np.log(6), 0.6, count), 0.3, 60)
    samples = (seconds * RATE).astype(np.int64)
    sizes = row_bytes((4 * seconds).astype(int), -(-samples // PATCH), SPEC)
    return CutInput(corpus=np.arange(count) % corpora, num_samples=samples, row_bytes=sizes)


def _seconds_bound(rate: float) -> int:
    return int(60 * rate * RATE)


@pytest.mark.parametrize(
    ("max_clips", "max_seconds", "rate", "expected"),
    [(15, 32, 3, 0.00005), (15, 32, None, 0.00005), (128, 400, 1500, 0.00099)],
)
def test_padding_of_a_hundred_thousand_clips_is_well_under_one_per_cent(
    max_clips: int, max_seconds: int, rate: float | None, expected: float
) -> None:
    """Of what is encoded, beyond whole patches: those every clip fills by itself, alone or not (1.1 % here)."""
    clips = _lognormal(100_000)
    shape = limits(
        max_batch_clips=max_clips,
        max_batch_samples=max_seconds * RATE,
        max_chunk_samples=None if rate is None else _seconds_bound(rate),
    )

    pieces = cut(clips, shape, seed=1)

    rows, longest = _batch_sizes(pieces, clips)
    encoded = (rows * longest).sum()
    padding = 1 - _padded(clips.num_samples).sum() / encoded
    assert expected == pytest.approx(padding, rel=0.15)
    assert padding <= 0.01
    assert 0.011 == pytest.approx(1 - clips.num_samples.sum() / encoded, abs=0.0015)


@pytest.mark.parametrize("count", [320, 1000, 3000, 20_000])
@pytest.mark.parametrize("rate", [3, 60, 1500])
def test_a_bounded_run_has_at_least_32_chunks(count: int, rate: float) -> None:
    """So that an ETA can be honest and eight devices end at about the same time."""
    pieces = cut(_lognormal(count), limits(max_chunk_samples=_seconds_bound(rate)), seed=1)

    assert len(pieces.chunk_starts) - 1 >= 32


def test_the_last_tenth_of_each_corpus_comes_in_quarter_size_chunks() -> None:
    """The ladder: long chunks first, short ones at the end."""
    clips = _lognormal(30_000, corpora=3)

    pieces = cut(clips, limits(), seed=1)

    samples, corpus = clips.num_samples[pieces.order], clips.corpus[pieces.order]
    tail = pieces.chunk >= pieces.num_full_chunks
    for number in range(3):
        mine = corpus == number
        assert 0.1 == pytest.approx(samples[mine & tail].sum() / samples[mine].sum(), abs=0.001)
    assert np.diff(pieces.chunk_starts)[pieces.num_full_chunks :].max() <= 256


def test_chunks_of_one_size_hold_equal_audio_and_all_lengths() -> None:
    """Dealt, not cut from the sorted list: a trainer with a few blocks open sees every length."""
    clips = _lognormal(30_000)

    pieces = cut(clips, limits(), seed=1)

    full = pieces.chunk_starts[: pieces.num_full_chunks + 1]
    samples = clips.num_samples[pieces.order]
    audio = np.add.reduceat(samples[: full[-1]], full[:-1]) / RATE
    assert audio.max() - audio.min() <= 60  # the largest batch: one clip of 60 s
    shorter_than_median = [np.mean(samples[a:b] < np.median(samples)) for a, b in itertools.pairwise(full)]
    assert min(shorter_than_median) > 0.35
    assert max(shorter_than_median) < 0.65


def test_corpora_are_interleaved_in_plan_order() -> None:
    """A prefix of the run resembles the whole: the first half of the chunks holds half of each corpus."""
    clips = _lognormal(300_000, corpora=3)

    pieces = cut(clips, limits(), seed=1)

    starts = pieces.chunk_starts[: pieces.num_full_chunks]
    first_half = clips.corpus[pieces.order[starts[: len(starts) // 2]]]
    counts = np.bincount(first_half)
    assert 3 == len(counts)
    assert counts.min() > 0.3 * counts.max()
