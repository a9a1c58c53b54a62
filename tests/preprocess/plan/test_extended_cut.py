"""What an extension encodes, copies and supersedes: every clip of now ends up in exactly one live chunk."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.preprocess.plan.batches import CutInput
from latentprep.preprocess.plan.clip_keys import ClipKeys
from latentprep.preprocess.plan.compare import ClipState, Comparison, KnownClips
from latentprep.preprocess.plan.extended_cut import ExtendedCut, cut_extension

from .builders import limits

CHUNK_ROWS = 4
BATCH_ROWS = 2
FIRST = 100
"""Id of the extension's first chunk."""


def known_clips(num: int) -> KnownClips:
    """``num`` clips in chunks of 4, encode batches of 2."""
    none = np.zeros(num, np.uint64)
    keys = ClipKeys(item=none, annotation=none, audio=none)
    chunk, position = np.divmod(np.arange(num), CHUNK_ROWS)
    return KnownClips(keys=keys, chunk=chunk, position=position, num_refused=0, refused=Counter())


def batches_of(chunk: int) -> np.ndarray:
    return (np.arange(CHUNK_ROWS) // BATCH_ROWS).astype(np.int32)


def extension(num_known: int, changed: set[int], gone: set[int], num_new: int) -> tuple[ExtendedCut, Comparison]:
    """Clips of now: the known ones that are not gone, in falling order, then new ones."""
    there = [number for number in range(num_known - 1, -1, -1) if number not in gone]
    state = [ClipState.RELABELLED if number in changed else ClipState.KEPT for number in there]
    found = Comparison(
        state=np.array([*state, *[ClipState.NEW] * num_new], np.uint8),
        known=np.array([*there, *[-1] * num_new], np.int64),
        gone=np.array(sorted(gone), np.int64),
        num_refused_added=0,
        num_refused_gone=0,
    )
    size = len(found.state)
    sizes = CutInput(
        corpus=np.zeros(size, np.int64),
        num_samples=16_000 + np.arange(size) * 100,
        row_bytes=np.full(size, 10_000),
    )
    known = known_clips(num_known)
    made = cut_extension(sizes, found, known, batches_of, limits(), seed=1, base="b", first_chunk=FIRST)
    return made, found


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, set[int], set[int], int]:
    num_known = draw(st.integers(1, 20))
    numbers = st.sets(st.integers(0, num_known - 1))
    gone = draw(numbers)
    return num_known, draw(numbers) - gone, gone, draw(st.integers(0, 10))


@settings(max_examples=100, deadline=None)
@given(cases())
def test_every_clip_of_now_is_in_one_live_chunk(case: tuple[int, set[int], set[int], int]):
    """A clip in two chunks would have two rows, one in none would vanish."""
    _, changed, gone, _ = case
    made, found = extension(*case)
    superseded = set(made.extension.supersedes)

    assert {number // CHUNK_ROWS for number in changed | gone} == superseded
    untouched = {at for at, number in enumerate(found.known) if number >= 0 and number // CHUNK_ROWS not in superseded}
    planned = made.pieces.order.tolist()
    assert len(planned) == len(set(planned))
    assert set(range(len(found.state))) - untouched == set(planned)
    assert untouched.isdisjoint(planned)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_a_copied_chunk_holds_the_kept_clips_in_their_old_order(case: tuple[int, set[int], set[int], int]):
    """Rows are taken by position, and lost ones are encoded again in the batches that they had."""
    num_known, changed, gone, _ = case
    made, found = extension(*case)
    starts, batch_starts = made.pieces.chunk_starts, set(made.pieces.batch_starts.tolist())

    assert set(starts.tolist()) <= batch_starts
    for new, old in made.extension.copies:
        low, high = starts[new - FIRST], starts[new - FIRST + 1]
        held = found.known[made.pieces.order[low:high]].tolist()
        members = range(old * CHUNK_ROWS, min((old + 1) * CHUNK_ROWS, num_known))
        assert [number for number in members if number not in changed | gone] == held
        for at in range(low + 1, high):
            apart = held[at - low] // BATCH_ROWS != held[at - low - 1] // BATCH_ROWS
            assert apart == (at in batch_starts)
    copied = {new for new, _ in made.extension.copies}
    assert copied == set(range(FIRST + len(starts) - 1 - len(copied), FIRST + len(starts) - 1))


def test_a_chunk_whose_clips_are_all_gone_leaves_nothing():
    made, _ = extension(8, set(), {0, 1, 2, 3}, 0)

    assert ((0,), ()) == (made.extension.supersedes, made.extension.copies)
    assert 0 == len(made.pieces.order)
    assert [0] == made.pieces.chunk_starts.tolist()
