import pyarrow as pa
import pytest

from latentprep.core.schema import row_schema
from latentprep.writers.block import END_MARK, BlockMetadata, decode_block, encode_block, hash_bytes, schema_bytes
from tests.writers.builders import metadata, rows


def stream_of(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row_schema()) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def test_schema_blocks_and_end_mark_are_a_stream():
    batches = [rows(3, seed) for seed in range(3)]
    data = b"".join(encode_block(batch, metadata(7)).data for batch in batches)
    with pa.ipc.open_stream(schema_bytes() + data + END_MARK) as reader:
        table = reader.read_all()

    assert pa.Table.from_batches(batches).equals(table)
    assert stream_of([]) == schema_bytes() + END_MARK


def test_a_block_comes_back_with_what_it_says_of_itself():
    batch = rows(4)
    block = encode_block(batch, BlockMetadata(chunk=12, fingerprint="fp", facts="æ"))
    back, said = decode_block(block.data)

    assert batch.equals(back)
    assert BlockMetadata(chunk=12, fingerprint="fp", facts="æ") == said
    assert (4, 0) == (block.num_rows, len(block.data) % 8)
    assert hash_bytes(block.data.to_pybytes()) == block.xxh3


def test_what_is_not_rows_is_refused():
    """A shard with another schema in one block opens, and fails in the midst of training."""
    with pytest.raises(ValueError, match="a block holds rows"):
        encode_block(rows(1).drop_columns(["bpm"]), metadata(0))
    with pytest.raises(ValueError, match="a block holds rows"):
        encode_block(rows(1).replace_schema_metadata(None), metadata(0))


@pytest.mark.parametrize("cut", [1, 100, -8])
def test_torn_bytes_are_no_block(cut: int):
    data = encode_block(rows(2), metadata(0)).data.to_pybytes()

    with pytest.raises((ValueError, OSError)):
        decode_block(data[:cut])


def test_a_batch_of_another_tool_is_no_block():
    plain = stream_of([rows(1)])[len(schema_bytes()) : -len(END_MARK)]

    with pytest.raises(ValueError, match="not a block of this tool"):
        decode_block(plain)
