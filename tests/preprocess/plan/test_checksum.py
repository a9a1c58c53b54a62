"""A stored plan is what was written, or known not to be."""

from pathlib import Path

import pytest

from latentprep.preprocess.plan.checksum import checksum_path, is_damaged

from .builders import clip, plan_of


def test_any_flipped_bit_is_seen(tmp_path: Path) -> None:
    """Most of them Arrow reads without a word: another audio path, another size."""
    path = plan_of(tmp_path, [clip(), clip("b")]).path
    data = path.read_bytes()

    assert not is_damaged(path)
    for at in range(0, len(data), 97):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert is_damaged(path), at


@pytest.mark.parametrize("data", [b"", b"another plan"])
def test_so_is_another_file(data: bytes, tmp_path: Path) -> None:
    path = plan_of(tmp_path, [clip()]).path
    path.write_bytes(data)

    assert is_damaged(path)


def test_without_a_checksum_nothing_is_known(tmp_path: Path) -> None:
    """Then the plan is believed as far as it can be read."""
    path = plan_of(tmp_path, [clip()]).path
    checksum_path(path).unlink()

    assert not is_damaged(path)
