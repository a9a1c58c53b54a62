"""JSON that is hostile, or was written by Python for file names that are no UTF-8."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.corpora.json_decode import (
    HALF_CHARACTER,
    decode_json,
    decode_marked,
    mark_half_characters,
)

ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
ANY = msgspec.json.Decoder()
DEEP = b"[" * 5000 + b"]" * 5000


@pytest.mark.parametrize("half", [b"\\ud800", b"\\udcff", b"\\ud800\\u0041", b"\\\\\\udc80"])
@pytest.mark.parametrize("end", [b'"}]', b'"}, 1, 2, 3]'])
def test_half_a_character_costs_its_own_item_alone(half, end):
    """Pairs and escaped backslashes are left alone, and the last item's half is not taken for a text cut off."""
    first, second, broken, *_ = decode_marked(ARRAY, b'["\\ud83d\\ude00", "\\\\ud800", {"a": "' + half + end)

    assert ["😀", "\\ud800"] == [decode_json(ANY, raw) for raw in (first, second)]
    with pytest.raises(msgspec.DecodeError, match="half of a character"):
        decode_json(ANY, broken)


def _is_half(char: str) -> bool:
    return "\ud800" <= char <= "\udfff"


@given(st.lists(st.text(st.sampled_from('a\\"u走😀\ud800\udcff'), max_size=6), max_size=6))
def test_an_item_is_refused_exactly_if_it_holds_half_a_character(texts):
    """``json.dump`` escapes everything, so its output is where halves come from."""

    def is_read(raw: msgspec.Raw) -> bool:
        try:
            decode_json(ANY, raw)
        except msgspec.DecodeError:
            return False
        return True

    expected = [not any(map(_is_half, _whole(text))) for text in texts]
    assert expected == [is_read(raw) for raw in decode_marked(ARRAY, json.dumps(texts).encode())]


def _whole(text: str) -> str:
    return json.loads(json.dumps(text))


def test_marks_keep_every_position():
    """Messages name lines and columns of the file as it is."""
    data = b'["\\udcff", "\\ud83d\\ude00"]'

    assert b'["' + HALF_CHARACTER + b'", "\\ud83d\\ude00"]' == mark_half_characters(data)


def test_deep_nesting_is_a_decode_error():
    """Python's recursion limit would show as a traceback."""
    for decode in (decode_json, decode_marked):
        with pytest.raises(msgspec.DecodeError, match="it is nested too deeply"):
            decode(ANY, DEEP)


def test_a_text_that_is_cut_off_is_not_blamed_on_half_a_character():
    with pytest.raises(msgspec.DecodeError, match="truncated"):
        decode_marked(ARRAY, b'["\\udcff", "a')
