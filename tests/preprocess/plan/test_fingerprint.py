"""The fingerprint sees content, not layout."""

import pyarrow as pa

from latentprep.preprocess.plan.fingerprint import Fingerprint


def _of(*batches: pa.RecordBatch) -> str:
    fingerprint = Fingerprint()
    for batch in batches:
        fingerprint.batch(batch)
    return fingerprint.hexdigest()


def _batch(words: list[list[str]], numbers: list[int], *, size: int = 1) -> pa.RecordBatch:
    return pa.record_batch(
        {"word": words, "number": numbers, "good": [True] * len(words), "file_size": [size] * len(words)}
    )


def test_a_slice_is_hashed_like_a_copy() -> None:
    """Chunks are slices of what was gathered; a plan made in other steps must have the same fingerprint."""
    whole = _batch([["x"], ["la", "li"], [], ["lu"]], [1, 2, 3, 4])

    assert _of(_batch([["la", "li"], []], [2, 3])) == _of(whole.slice(1, 2))


def test_borders_count() -> None:
    """Chunk borders, word borders and letters that move from one string to the next."""
    hashes = {
        _of(_batch([["la"], ["li"]], [1, 2])),
        _of(_batch([["la"]], [1]), _batch([["li"]], [2])),
        _of(_batch([["la", "li"], []], [1, 2])),
        _of(_batch([["lal"], ["i"]], [1, 2])),
        _of(_batch([["la"], ["li"]], [1, 3])),
    }

    assert 5 == len(hashes)


def test_size_of_the_file_does_not_count() -> None:
    """A corpus that was copied is the same corpus."""
    assert _of(_batch([["la"]], [1], size=1)) == _of(_batch([["la"]], [1], size=2))


def test_the_value_stands_for_ever() -> None:
    """Plans made by earlier versions are compared by it."""
    assert "326b4f52fe9fe1c8dd11c8f843776cb5" == _of(_batch([["la", "感"], []], [1, 2]))
