"""Prompts as ids and as text."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import ClipFault
from latentprep.preprocess.score.note_value import NOTE_QUARTERS
from latentprep.preprocess.score.prompt import build_prompt, prompt_length, prompt_text, svs_prompt
from latentprep.preprocess.score.tokenizer import SvsTokenizer

GOLDEN = Path(__file__).parents[2] / "golden"
TOKENIZER = SvsTokenizer.load(GOLDEN / "checkpoint")
ARGUMENTS = ("word", "pitch", "note", "pitch2word", "bpm", "has_score")


def _golden_rows() -> list[dict[str, Any]]:
    columns = [*ARGUMENTS, "packed_text_tokens", "text_mask", "text_token_count", "svs_prompt", "item_name"]
    return pq.read_table(GOLDEN / "expected.parquet", columns=columns).to_pylist()


@pytest.mark.parametrize("row", _golden_rows(), ids=lambda row: row["item_name"])
def test_prompts_equal_the_reference_rows(row: dict[str, Any]) -> None:
    """Ids, count and text, for all eleven rows."""
    length = row["text_mask"].index(0)

    prompt = build_prompt(*(row[name] for name in ARGUMENTS), TOKENIZER)

    assert row["packed_text_tokens"][:length] == prompt.ids.tolist()
    assert np.int32 == prompt.ids.dtype
    assert row["text_token_count"] == prompt.text_token_count
    assert row["svs_prompt"] == prompt_text(prompt.ids, TOKENIZER) == svs_prompt(row, TOKENIZER)


@st.composite
def _scores(draw: st.DrawFn) -> dict[str, Any]:
    word = draw(st.lists(st.sampled_from(["AP", "感", "love", "鑡", "la la"]), min_size=1, max_size=6))
    indices = sorted(draw(st.lists(st.integers(0, len(word) - 1), min_size=1, max_size=10)))
    pitch = draw(st.lists(st.integers(0, 127), min_size=len(indices), max_size=len(indices)))
    note = draw(st.lists(st.sampled_from(list(NOTE_QUARTERS)), min_size=len(indices), max_size=len(indices)))
    has_score, bpm = draw(st.booleans()), draw(st.integers(1, 255))
    return {"word": word, "pitch": pitch, "note": note, "pitch2word": indices, "bpm": bpm, "has_score": has_score}


@given(_scores())
def test_the_cheap_length_is_the_length(row: dict[str, Any]) -> None:
    """The plan sizes chunks by it; a wrong one would break the bound on bytes."""
    prompt = build_prompt(*row.values(), TOKENIZER)

    expected = len(prompt.ids)
    assert expected == prompt_length(row["word"], row["pitch2word"], row["has_score"], TOKENIZER)


@given(_scores())
def test_the_text_of_a_row_is_the_text_of_its_ids(row: dict[str, Any]) -> None:
    """A trainer rebuilds the text from the columns; both ways must meet."""
    prompt = build_prompt(*row.values(), TOKENIZER)

    expected = TOKENIZER._tokenizer.decode(prompt.ids.tolist(), skip_special_tokens=False)
    assert expected == prompt_text(prompt.ids, TOKENIZER) == svs_prompt(row, TOKENIZER)


def test_a_word_without_a_note_is_left_out_and_equal_neighbours_are_two_words() -> None:
    """Melisma is told by the index, not by the text."""
    arguments = (["la", "AP", "la"], [60, 62, 64], ["<NOTE_8>"] * 3, [0, 0, 2], 90, True)

    text = prompt_text(build_prompt(*arguments, TOKENIZER).ids, TOKENIZER)

    assert "<BPM_90> la<P_60><NOTE_8><P_62><NOTE_8> la<P_64><NOTE_8><|audio_start|>" == text


def test_lyrics_only_masks_the_notes_of_a_scored_row() -> None:
    """The form in which a model sings without a score, rests included."""
    row = _golden_rows()[0]

    mask = "<SVS_MASK><SVS_MASK>"
    expected = f"<SVS_MASK> AP{mask} 感{mask} 受{mask} SP{mask}<|audio_start|>"
    assert expected == svs_prompt(row, TOKENIZER, lyrics_only=True)


def test_a_checkpoint_folder_stands_for_its_tokenizer() -> None:
    """A trainer has the path at hand."""
    row = _golden_rows()[0]

    assert row["svs_prompt"] == svs_prompt(row, GOLDEN / "checkpoint") == svs_prompt(row, str(GOLDEN / "checkpoint"))


def test_length_and_prompt_refuse_the_same_word() -> None:
    """A clip refused while planning must not first pass there."""
    row = (["a", "</s>"], [60, 60], ["<NOTE_4>"] * 2, [0, 1], 90)
    for has_score in (True, False):
        with pytest.raises(ClipFault):
            build_prompt(*row, has_score, TOKENIZER)
        with pytest.raises(ClipFault):
            prompt_length(row[0], row[3], has_score, TOKENIZER)


def test_lists_of_unequal_length_are_a_value_error() -> None:
    """The check before this one names the clip; here nothing is cut off in silence."""
    with pytest.raises(ValueError):
        build_prompt(["a"], [60, 61], ["<NOTE_4>"], [0], 90, True, TOKENIZER)
