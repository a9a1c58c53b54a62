"""Estimated row sizes against what Arrow takes for the reference rows."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from latentprep.preprocess.plan.row_bytes import row_bytes

from .builders import SPEC

GOLDEN = Path(__file__).parents[2] / "golden/expected.parquet"


def test_estimates_are_within_five_per_cent_of_the_reference_rows() -> None:
    """The byte bound of a chunk and the bill's gigabytes rest on them."""
    table = pq.read_table(GOLDEN)
    audio_mask = table["audio_mask"].to_pylist()
    patches = np.asarray([sum(mask) for mask in audio_mask])
    prompts = np.asarray([len(mask) for mask in audio_mask]) - patches - 1

    estimated = row_bytes(prompts, patches, SPEC)

    actual = [table.slice(row, 1).combine_chunks().nbytes for row in range(table.num_rows)]
    assert actual == pytest.approx(estimated, rel=0.05)
    assert sum(actual) == pytest.approx(estimated.sum(), rel=0.03)


def test_a_row_worked_out_by_hand() -> None:
    """10 prompt tokens, 50 patches of 4 x 64: 61 positions of 552 bytes, 36 bytes a token, 280 fixed."""
    assert [61 * 552 + 360 + 280] == row_bytes(np.asarray([10]), np.asarray([50]), SPEC).tolist()
