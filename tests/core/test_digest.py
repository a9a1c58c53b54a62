import io
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.digest import Digests, digest_batch, hash_rows, refuse_nulls, sum_digests
from latentprep.core.schema import COLUMNS, row_schema
from tests.writers.builders import rows

GOLDEN = Path(__file__).parents[1] / "golden" / "expected.parquet"


def golden_rows() -> pa.RecordBatch:
    return pq.read_table(GOLDEN).cast(row_schema()).combine_chunks().to_batches()[0]


def plain_row_bytes(row: dict, names: list[str]) -> bytes:
    """The documented layout, written down once more in plain Python."""
    return b"".join(plain_head(row[n], COLUMNS[n]) for n in names) + b"".join(
        plain_body(row[n], COLUMNS[n]) for n in names
    )


def plain_head(value, kind: pa.DataType) -> bytes:
    if pa.types.is_string(kind):
        return struct.pack("<q", len(value.encode()))
    if pa.types.is_list(kind):
        return struct.pack("<q", len(value))
    return struct.pack({pa.int64(): "<q", pa.float64(): "<d", pa.bool_(): "<?"}[kind], value)


def plain_body(value, kind: pa.DataType) -> bytes:
    if pa.types.is_string(kind):
        return value.encode()
    if not pa.types.is_list(kind):
        return b""
    out, level, inner = b"", value, kind.value_type
    while pa.types.is_list(inner) or pa.types.is_string(inner):
        level = [item.encode() if isinstance(item, str) else item for item in level]
        out += b"".join(struct.pack("<i", len(item)) for item in level)
        if pa.types.is_string(inner):
            return out + b"".join(level)
        level, inner = [item for items in level for item in items], inner.value_type
    return out + np.array(level, inner.to_pandas_dtype()).tobytes()


def plain_digest(batch: pa.RecordBatch) -> Digests:
    content = [name for name in COLUMNS if name != "audio_feats"]
    hashes = [
        [xxhash.xxh3_128_intdigest(plain_row_bytes(row, names)) for row in batch.to_pylist()]
        for names in (list(COLUMNS), content)
    ]
    return Digests(full=sum(hashes[0]) % 2**128, content=sum(hashes[1]) % 2**128, num_rows=batch.num_rows)


def test_the_digest_is_the_documented_one():
    """Someone else must be able to compute it from the page alone."""
    batch = rows(7, seed=3)

    assert plain_digest(batch) == digest_batch(batch)
    assert plain_digest(golden_rows()) == digest_batch(golden_rows())


def test_the_digest_of_the_golden_rows_does_not_change():
    """Digests are compared across versions of the tool: a change of the layout is a change of the format."""
    golden = digest_batch(golden_rows())

    assert ("9d2a5ad1bd5f9690f5588aee512f024a", "460b07b86035814eaf0568f819359122", 11) == (
        golden.full_hex,
        golden.content_hex,
        golden.num_rows,
    )


@given(st.permutations(range(6)), st.integers(0, 6))
def test_order_and_division_into_batches_do_not_show(order, cut):
    """Shards, ranks and resumes arrange the same rows in any way."""
    batch = rows(6, seed=1)
    shuffled = batch.take(pa.array(order))

    assert digest_batch(batch) == digest_batch(shuffled.slice(0, cut)) + digest_batch(shuffled.slice(cut))


def test_batches_read_back_from_a_stream_have_the_same_digest():
    batch = rows(5)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch.slice(1, 3))

    assert digest_batch(batch.slice(1, 3)) == digest_batch(pa.ipc.open_stream(sink.getvalue()).read_next_batch())


def replaced(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), batch.schema.field(name), column)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_counts(name):
    batch = rows(4, seed=5)
    other = replaced(batch, name, changed(batch.column(name)))

    assert digest_batch(batch).full != digest_batch(other).full
    assert (name == "audio_feats") == (digest_batch(batch).content == digest_batch(other).content)


def changed(column: pa.Array) -> pa.Array:
    values = column.to_pylist()
    kind = column.type
    if pa.types.is_boolean(kind):
        values[0] = not values[0]
    elif pa.types.is_string(kind):
        values[0] += "x"
    elif pa.types.is_list(kind):
        values[0] = values[0][:-1]
    else:
        values[0] += 1
    return pa.array(values, kind)


def test_where_a_list_or_a_word_ends_counts():
    """Flat values alone would call ["ab", "c"] and ["a", "bc"] the same lyric."""
    batch = rows(1)
    words = pa.array([["ab", "c"]]), pa.array([["a", "bc"]])
    feats = pa.array([[[[1.0, 2.0]]]], COLUMNS["audio_feats"]), pa.array([[[[1.0], [2.0]]]], COLUMNS["audio_feats"])

    assert 2 == len({digest_batch(replaced(batch, "word", word)).content for word in words})
    assert 2 == len({digest_batch(replaced(batch, "audio_feats", feat)).full for feat in feats})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bpm", None),
        ("song_name", None),
        ("has_score", None),
        ("word", None),
        ("word", [None, "a"]),
        ("labels", [1, None]),
        ("audio_feats", [[[None]]]),
        ("audio_feats", [[None]]),
        ("audio_feats", [None]),
    ],
)
def test_a_null_is_refused_at_every_level(name, value):
    """A null list and an empty one would give the same bytes."""
    batch = replaced(rows(1), name, pa.array([value], COLUMNS[name]))

    with pytest.raises(ValueError, match=f"{name}.*null"):
        digest_batch(batch)


def test_a_null_outside_a_slice_is_nobodys():
    column = pa.array([[1], None, [2, None], [3]], pa.list_(pa.int32()))

    refuse_nulls(column.slice(3), "labels")
    refuse_nulls(column.slice(0, 1), "labels")


def test_other_columns_are_refused():
    batch = rows(2)
    half = batch.column("estimated_duration").cast(pa.float32())

    for other in (
        batch.drop_columns(["bpm"]),
        pa.record_batch({**dict(zip(COLUMNS, batch.columns, strict=True)), "bpm": half}),
    ):
        with pytest.raises(ValueError, match="not the columns of a row"):
            digest_batch(other)


def test_no_rows_have_the_zero_digest():
    empty = rows(3).slice(0, 0)

    assert Digests.zero() == digest_batch(empty) == sum_digests([])


def test_sums_wrap_around_and_survive_their_text():
    high = Digests(full=2**128 - 1, content=5, num_rows=1)
    total = sum_digests([high, high])

    assert Digests(full=2**128 - 2, content=10, num_rows=2) == total
    assert total == Digests.from_hex(total.full_hex, total.content_hex, 2)
    assert 32 == len(Digests.zero().full_hex)


def test_single_rows_have_hashes_of_their_own():
    batch = rows(4)
    hashes = hash_rows(batch, ("word", "bpm"))

    assert hashes[2:] == hash_rows(batch.slice(2), ("word", "bpm"))
    assert 4 == len(hashes)
