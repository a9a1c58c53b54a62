"""YAML with lines."""

from pathlib import Path

import pytest

from latentprep.core.errors import ConfigError
from latentprep.preprocess.config_yaml import parse_yaml, read_yaml


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "prep.yaml")
    return str(caught.value)


def test_every_key_and_entry_knows_its_line():
    parsed = parse_yaml("a: 1\nb:\n  c:\n  - x\n  - y: 2\n", "prep.yaml")

    assert {"a": 1, "b": {"c": ["x", {"y": 2}]}} == parsed.value
    assert [1, 2, 3, 4, 5, 5] == [
        parsed.line_of(path) for path in (("a",), ("b",), ("b", "c"), ("b", "c", 0), ("b", "c", 1), ("b", "c", 1, "y"))
    ]


def test_what_is_not_written_has_the_line_of_what_is_around_it():
    """A missing key is reported where it should stand."""
    parsed = parse_yaml("a: 1\nb:\n  c: 1\n", "prep.yaml")

    assert 2 == parsed.line_of(("b", "d"))
    assert parsed.line_of(("z",)) is None


def test_a_merged_key_may_be_overridden_and_keeps_its_own_line():
    parsed = parse_yaml("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  x: 3\n", "prep.yaml")

    assert {"x": 3, "y": 2} == parsed.value["mine"]
    assert 4 == parsed.line_of(("mine", "x"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: 1\nb: 2\na: 3\n",
            "prep.yaml, line 3, column 1: not valid YAML: the key 'a' stands twice, first on line 1",
        ),
        (
            "x: {a: 1, a: 2}\n",
            "prep.yaml, line 1, column 11: not valid YAML: the key 'a' stands twice, first on line 1",
        ),
        ("a: [1\nb: 2\n", "prep.yaml, line 2, column 2: not valid YAML: while parsing a flow sequence, expected"),
        ("a:\n\tb: 1\n", "fix: indent with spaces, not tabs"),
        ("a: b: c\n", "fix: put a value that holds ': ' in quotes"),
        ("a: 1\n---\nb: 2\n", "prep.yaml, line 2, column 1: not valid YAML: expected a single document"),
        ("a: \x01\n", "prep.yaml, line 1, column 4: not valid YAML: special characters are not allowed"),
        ("a: 2024-13-45\n", "fix: put values that only look like dates in quotes"),
        ("a: !!python/object:os.system {}\n", "could not determine a constructor for the tag"),
        ("a: *nobody\n", "found undefined alias 'nobody'"),
        ("[" * 5000, "prep.yaml: not valid YAML"),
    ],
)
def test_what_is_not_yaml_is_refused_with_line_and_column(text, expected):
    assert expected in refusal(text)


def test_a_byte_order_mark_is_tolerated(tmp_path):
    """Windows editors write one."""
    path = tmp_path / "prep.yaml"
    path.write_bytes("\ufeffa: ü\n".encode())

    assert {"a": "ü"} == read_yaml(path).value


def test_a_file_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "prep.yaml"
    path.write_bytes("name: 歌\n".encode("gbk"))

    with pytest.raises(ConfigError, match=r"not UTF-8 text \(byte 6\)"):
        read_yaml(path)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="not a file"):
        read_yaml(tmp_path)


def test_a_device_in_place_of_the_file_is_refused():
    """/dev/zero would be read until the memory is full."""
    with pytest.raises(ConfigError, match="not a file"):
        read_yaml(Path("/dev/zero"))
