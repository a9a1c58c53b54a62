"""Windows cover a clip once, begin far enough to the left, and are all of one length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.encode.windows import Window, cut_windows


def test_a_clip_just_too_long_becomes_two_windows():
    """11 patches, windows of up to 10, 4 of context: each brings 4 new patches, rounded up."""
    assert [Window(0, 8, 0), Window(3, 11, 8)] == cut_windows(11, context=4, max_patches=10)


@given(st.integers(1, 600), st.integers(0, 8), st.integers(1, 60))
def test_every_patch_is_kept_once_and_with_its_context(extra: int, context: int, new: int):
    """The law that makes windowed latents those of the whole clip."""
    max_patches = context + new
    num_patches = max_patches + extra
    windows = cut_windows(num_patches, context=context, max_patches=max_patches)

    kept = [patch for window in windows for patch in range(window.keep_from, window.stop)]
    assert list(range(num_patches)) == kept
    for window in windows:
        assert 0 <= window.start <= window.keep_from <= window.stop <= num_patches
        assert window.start == 0 or window.keep_from - window.start >= context


@given(st.integers(1, 600), st.integers(0, 8), st.integers(1, 60))
def test_windows_are_even_in_number_equal_in_length_and_within_the_limit(extra: int, context: int, new: int):
    """They go through the encoder in pairs; a pair of unequal ones would need padding, a single one other kernels."""
    max_patches = context + new
    windows = cut_windows(max_patches + extra, context=context, max_patches=max_patches)
    lengths = {window.stop - window.start for window in windows}

    assert 0 == len(windows) % 2
    assert 1 == len(lengths)
    assert max_patches >= lengths.pop()


@pytest.mark.parametrize(("num_patches", "max_patches"), [(10, 10), (100, 4)])
def test_what_needs_or_allows_no_windows_is_a_mistake_of_the_caller(num_patches: int, max_patches: int):
    """Either the clip fits, or no window would bring anything new."""
    with pytest.raises(ValueError, match="can't cut"):
        cut_windows(num_patches, context=4, max_patches=max_patches)
