"""The index of audio hashes: every hash is found where its first row lies, and no other is."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.reuse_index import BlockPlace, ReuseIndex, dataset_blocks, write_reuse_index
from latentprep.preprocess.rows.facts import RowFacts, encode_facts
from latentprep.preprocess.stored_facts import StoredFacts, block_facts
from latentprep.writers.block import BlockMetadata
from latentprep.writers.ledger import read_journals
from tests.writers.builders import FINGERPRINT, rows, shard_names, skipped, writer

HASHES = st.integers(0, 20).map(lambda number: f"{number:016x}{number % 3:016x}")


def facts(audio_hash: str) -> RowFacts:
    return RowFacts(
        audio_hash=audio_hash,
        audio_bytes=1,
        sample_rate=16_000,
        channels=1,
        num_samples=1,
        peak=1.0,
        rms=0.1,
        annotation_hash="0" * 32,
        encode_batch=0,
        rank=0,
        device="cpu",
    )


def write_blocks(paths: OutputPaths, blocks: list[list[str]]) -> list[BlockPlace]:
    """Chunk n holds rows with the hashes ``blocks[n]``; its second clip has no row."""
    with writer(paths) as shards:
        for chunk, hashes in enumerate(blocks):
            text = encode_facts([facts(value) for value in hashes])
            metadata = BlockMetadata(chunk=chunk, fingerprint=FINGERPRINT, facts=text)
            shards.write(rows(len(hashes), chunk), metadata, skipped=[skipped(1)])
    return list(dataset_blocks(paths.root / name for name in shard_names(paths)))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(HASHES, min_size=1, max_size=4), min_size=1, max_size=4))
def test_every_hash_is_found_at_its_first_row(blocks: list[list[str]]):
    """Another row of the same audio has the same latents but for batch mates; the first makes it deterministic."""
    first: dict[str, tuple[int, int]] = {}
    for number, hashes in enumerate(blocks):
        for row, value in enumerate(hashes):
            first.setdefault(value, (number, row))
    with TemporaryDirectory() as folder:
        places = write_blocks(OutputPaths(Path(folder)), blocks)
        known = write_reuse_index(Path(folder) / "index", places)
        index = ReuseIndex(Path(folder) / "index")

        assert len(first) == known == len(index)
        for value, (number, row) in first.items():
            found = index.find(value)
            assert found is not None
            assert (places[number], row) == (found.block, found.row)
        assert index.find("f" * 32) is None
        assert index.find(f"{3:016x}{1:016x}") is None


def test_facts_are_given_by_clip_not_by_row(tmp_path: Path):
    """A skipped clip has a place in its chunk and no row in the block."""
    paths = OutputPaths(tmp_path)
    write_blocks(paths, [["a" * 32, "b" * 32]])
    stored = StoredFacts(tmp_path, read_journals(paths, FINGERPRINT).done)

    assert ["a" * 32, None, "b" * 32] == stored.audio_hashes(0, 3)
    assert [None, None] == stored.audio_hashes(7, 2)


def test_facts_that_cannot_be_read_are_none(tmp_path: Path):
    """Then a clip counts as changed and is encoded, which is never wrong."""
    assert block_facts(tmp_path / "missing", 0) is None
    (tmp_path / "junk").write_bytes(b"junk" * 100)
    assert block_facts(tmp_path / "junk", 0) is None


def test_a_shard_that_is_none_is_named(tmp_path: Path):
    (tmp_path / "data-r0-00000.arrow").write_bytes(b"junk" * 100)

    with pytest.raises(OutputError, match="data-r0-00000"):
        list(dataset_blocks([tmp_path / "data-r0-00000.arrow"]))
