"""Note values and the seconds they add up to."""

from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.score.note_value import NOTE_QUARTERS, score_seconds

EXPECTED = Path(__file__).parents[2] / "golden" / "expected.parquet"


def test_the_twelve_tokens_stand_in_the_order_of_the_vocabulary() -> None:
    """Token ids are handed out in this order; another order would train on other notes."""
    plain = ["<NOTE_1>", "<NOTE_2>", "<NOTE_4>", "<NOTE_8>", "<NOTE_16>", "<NOTE_32>"]
    dotted = ["<NOTE_DOT_1>", "<NOTE_DOT_2>", "<NOTE_DOT_4>", "<NOTE_DOT_8>", "<NOTE_DOT_16>", "<NOTE_DOT_32>"]
    assert plain + dotted == list(NOTE_QUARTERS)
    quarters = [4, 2, 1, 0.5, 0.25, 0.125, 6, 3, 1.5, 0.75, 0.375, 0.1875]
    assert quarters == list(NOTE_QUARTERS.values())


def test_score_seconds_equals_the_reference_rows_to_the_last_bit() -> None:
    """The column is compared with ==, not with a tolerance."""
    rows = pq.read_table(EXPECTED, columns=["note", "bpm", "estimated_duration", "has_score"]).to_pylist()
    scored = [row for row in rows if row["has_score"]]
    assert [row["estimated_duration"] for row in scored] == [score_seconds(row["note"], row["bpm"]) for row in scored]
    assert len(scored) == 9


@given(st.lists(st.sampled_from(list(NOTE_QUARTERS)), max_size=200), st.integers(1, 255), st.randoms())
def test_the_order_of_notes_cannot_change_the_seconds(notes: list[str], bpm: int, random: Random) -> None:
    """Sums of dyadic fractions are exact, so any order gives the same bits."""
    shuffled = random.sample(notes, len(notes))
    assert score_seconds(notes, bpm) == score_seconds(shuffled, bpm)


def test_an_unknown_note_is_a_key_error() -> None:
    """A guess here would silently lengthen the clip; the check before this one names the clip."""
    with pytest.raises(KeyError):
        score_seconds(["<NOTE_64>"], 120)
