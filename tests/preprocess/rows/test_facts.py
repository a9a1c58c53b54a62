import pyarrow as pa
import pytest

from latentprep.core.errors import WarningCode
from latentprep.preprocess.rows.facts import (
    FACTS_SCHEMA,
    RowFacts,
    annotation_hashes,
    decode_facts,
    encode_facts,
    facts_table,
)
from tests.writers.builders import annotations


def fact(**changes) -> RowFacts:
    given = {
        "audio_hash": "0f" * 16,
        "audio_bytes": 123,
        "sample_rate": 48_000,
        "channels": 2,
        "num_samples": 1 << 33,
        "peak": 0.5,
        "rms": 0.25,
        "annotation_hash": "ab" * 16,
        "encode_batch": 7,
        "rank": 3,
        "device": "NVIDIA H200",
    }
    return RowFacts(**(given | changes))


def test_facts_survive_their_text():
    """They are what reuse, trace and report stand on when .prep is gone."""
    facts = [fact(), fact(warnings=(WarningCode.LOUD, WarningCode.WINDOWED), rank=0)]
    table = decode_facts(encode_facts(facts))

    assert facts_table(facts).equals(table)
    assert FACTS_SCHEMA.equals(table.schema)
    assert [[], ["loud", "windowed"]] == table.column("warnings").to_pylist()
    assert [1 << 33, 1 << 33] == table.column("num_samples").to_pylist()


def test_facts_are_text_that_any_metadata_can_hold():
    text = encode_facts([fact()] * 1000)

    assert text.isascii()
    assert 20_000 > len(text), "1,000 equal rows compress"


def test_no_rows_have_facts_too():
    assert 0 == decode_facts(encode_facts([])).num_rows


def test_damaged_facts_are_a_value_error():
    with pytest.raises(ValueError):
        decode_facts("not base64!")


def test_an_annotation_hash_follows_the_clip_and_nothing_else():
    """Reuse compares it: where the clip stands must not change it, a changed word must."""
    clips = annotations(4)
    hashes = annotation_hashes(clips)
    words = clips.column("word").to_pylist()
    words[1] = [*words[1], "x"]
    edited = clips.set_column(clips.schema.get_field_index("word"), "word", pa.array(words))

    assert hashes[::-1] == annotation_hashes(clips.take(pa.array([3, 2, 1, 0])))
    assert [True, False, True, True] == [a == b for a, b in zip(hashes, annotation_hashes(edited), strict=True)]
    assert {32} == {len(value) for value in hashes}
