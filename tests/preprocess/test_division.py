"""How a plan is divided into parts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import UsageError
from latentprep.core.paths import WHOLE, Part
from latentprep.preprocess.division import chunks_of, parse_part


@given(st.sets(st.integers(0, 10_000), max_size=300), st.integers(1, 70))
def test_every_chunk_is_in_one_part_and_parts_are_even(ids: set[int], count: int):
    """No row twice, no row lost; and no task has twice the work of another."""
    live = tuple(sorted(ids))
    parts = [chunks_of(Part(number, count), live) for number in range(1, count + 1)]

    assert Counter(live) == Counter(chunk for part in parts for chunk in part)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(list(part) == sorted(part) for part in parts), "chunks go out in plan order: large ones first"


def test_the_whole_is_part_1_of_1():
    assert (3, 5, 8) == chunks_of(WHOLE, (3, 5, 8))


@pytest.mark.parametrize(("before", "after"), [(8, 4), (8, 2), (4, 8), (7, 3), (16, 16)])
def test_what_a_dead_part_leaves_is_work_for_all_parts_of_another_division(before: int, after: int):
    """With position modulo K one part of 4 would inherit all that a part of 8 left. Twice the even share is allowed."""
    live = tuple(range(960))
    left = set(chunks_of(Part(3, before), live))
    shares = [len(left & set(chunks_of(Part(number, after), live))) for number in range(1, after + 1)]

    if before != after:
        assert max(shares) <= 2 * len(left) / after + 2, shares


@pytest.mark.parametrize(
    ("text", "part"), [("1/1", Part(1, 1)), ("3/8", Part(3, 8)), ("100000/100000", Part(100_000, 100_000))]
)
def test_a_part_is_written_as_a_fraction(text: str, part: Part):
    assert part == parse_part(text)


@pytest.mark.parametrize(
    "text", ["", "3", "0/8", "9/8", "3/", "/8", "-1/8", "3/8/9", "a/b", "1/1000000", "٣/٨", "1.0/2"]
)
def test_anything_else_is_refused_and_shown(text: str):
    with pytest.raises(UsageError) as caught:
        parse_part(text)

    assert repr(text) in caught.value.what
