"""Annotation files that are, or are not, a JSON array."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import CorpusError
from latentprep.preprocess.corpora import json_array
from latentprep.preprocess.corpora.json_array import read_array
from latentprep.preprocess.corpora.json_text import line_and_column


@pytest.fixture
def written(tmp_path):
    def write(data: bytes):
        path = tmp_path / "annotations.json"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("map_from", [0, 1 << 20])
def test_items_come_as_they_are_written(written, monkeypatch, bom, map_from):
    """A byte order mark is tolerated, and a mapped file reads like a small one."""
    monkeypatch.setattr(json_array, "MAP_FROM_BYTES", map_from)

    items = [bytes(raw) for raw in read_array(written(bom + '[{"a": "走"}, 3,\n null]\n'.encode()))]

    assert ['{"a": "走"}'.encode(), b"3", b"null"] == items


def test_what_only_one_item_breaks_does_not_cost_the_others(written):
    """Bytes that are no UTF-8 and numbers beyond a double are found when their item is decoded."""
    assert 3 == len(list(read_array(written(b'[{"a": "\xff"}, {"a": 1e999}, {}]'))))


def test_deep_nesting_is_an_error_with_words(written):
    """Python's recursion limit would show as a traceback."""
    deep = b"[" * 5000 + b"]" * 5000

    with pytest.raises(CorpusError, match="nested too deeply"):
        read_array(written(b"[" + deep + b"]"))
    with pytest.raises(CorpusError, match="nested too deeply"):
        read_array(written(b'{"a": ' + deep + b"}"))


def test_a_fifo_in_place_of_the_file_is_refused(tmp_path):
    """Reading it would wait for ever."""
    os.mkfifo(tmp_path / "pipe.json")

    with pytest.raises(CorpusError, match="is not a file"):
        read_array(tmp_path / "pipe.json")


@pytest.mark.parametrize(
    ("data", "place", "text", "fix"),
    [
        (b"", "line 1, column 1", "the file is empty", "export"),
        (b" \n\n", "line 1, column 1", "the file is empty", "export"),
        (b'[{"a": 1},\n {"a": 2', "line 2, column 9", "the file ends in the middle", "copied completely"),
        (b"[", "line 1, column 2", "the file ends in the middle", "copied completely"),
        (b'{"a": 1}\n{"a": 2}\n', "line 2, column 1", "the file is JSON Lines", "jq -s ."),
        (b'\xef\xbb\xbf{"a": 1}\n\n{"a": 2}\n', "line 3, column 1", "the file is JSON Lines", "jq -s ."),
        (
            b'{"version": 2, "data": [1]}',
            "line 1, column 1",
            "the file holds an object with the keys version, data; expected an array",
            "jq .data IN > OUT",
        ),
        (
            b'{"item_name": "x"}',
            "line 1, column 1",
            "an object with the keys item_name; expected an array",
            "right file",
        ),
        (b'"text"', "line 1, column 1", "the file holds a text, expected an array", "right file"),
        (b"17", "line 1, column 1", "the file holds a number, expected an array", "right file"),
        (b"null", "line 1, column 1", "the file holds null, expected an array", "right file"),
        (b'[{"a": 1},\n {"bpm": NaN}]', "line 2, column 10", "NaN is not JSON", "allow_nan=False"),
        (b'[{"a": Infinity}]', "line 1, column 8", "Infinity is not JSON", "allow_nan=False"),
        (b'[{"a": -Infinity}]', "line 1, column 8", "-Infinity is not JSON", "allow_nan=False"),
        (b'[{"a": 1},\n]', "line 2, column 1", "not JSON: trailing comma in array", "export"),
        (b"[1, // one\n 2]", "line 1, column 5", "not JSON: invalid character", "export"),
        (b"[{'a': 1}]", "line 1, column 3", "not JSON: expected '\"'", "export"),
        ('[{"感受": 1 "b": 2}]'.encode(), "line 1, column 11", "not JSON: expected ',' or '}'", "export"),
        (b"[1] 2", "line 1, column 5", "not JSON: trailing characters", "export"),
        (b'[{"a": "x\ny"}]', "line 1, column 10", "not JSON: invalid character", "export"),
        (b'[{"a": "\\ud800"}, {"b', "line 1, column 22", "the file ends in the middle", "copied completely"),
        *[
            (
                '[{"a": 1}]'.encode(encoding),
                "line 1, column 1",
                f"the file is {encoding[:6].upper()}",
                "save it as UTF-8",
            )
            for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
        ],
    ],
)
def test_another_text_is_refused_with_its_place_and_what_to_do(written, data, place, text, fix):
    path = written(data)
    with pytest.raises(CorpusError) as caught:
        read_array(path)

    assert caught.value.what.startswith(f"{path}, {place}: ")
    assert text in caught.value.what
    assert fix in caught.value.fix


def test_the_error_shows_the_text_around_the_place(written):
    """In a file of one line and a gigabyte nobody finds column 1,234,567."""
    data = json.dumps([{"a": "x" * 500}] * 3).replace('"x', "x", 1).encode()
    with pytest.raises(CorpusError) as caught:
        read_array(written(data))

    assert caught.value.why.startswith('near: [{"a": xxx')
    assert len(caught.value.why) < 80


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(CorpusError, match=r"nothing\.json: cannot be read: No such file"):
        read_array(tmp_path / "nothing.json")


@given(st.text(st.sampled_from("a走\n𠮷"), max_size=20), st.data())
def test_lines_and_columns_count_as_an_editor_does(text, data):
    at = data.draw(st.integers(0, len(text)))
    before = text[:at]

    expected = (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
    assert expected == line_and_column(text.encode(), len(before.encode()))
