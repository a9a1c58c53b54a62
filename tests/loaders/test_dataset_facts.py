from pathlib import Path

from latentprep.loaders.dataset_facts import CorpusFacts, dataset_facts
from latentprep.loaders.dataset_files import DatasetFiles

from .builders import small_dataset, write_dataset


def test_facts_are_counted_from_what_is_there(tmp_path: Path):
    folder = small_dataset(tmp_path)
    (folder / "skipped.jsonl").write_text('{"code": "silent"}\n{"code": "no_lyric"}\n{"code": "silent"}\n')
    facts = dataset_facts(DatasetFiles.open(folder))

    assert (6, 2, 3) == (facts.num_rows, facts.num_shards, facts.num_blocks)
    assert (CorpusFacts("choir", 4, 5.0), CorpusFacts("opera", 2, 5.5)) == facts.corpora
    assert 10.5 == facts.audio_seconds
    assert {"silent": 2, "no_lyric": 1} == facts.skipped
    assert sum(shard.stat().st_size for shard in folder.glob("*.arrow")) == facts.num_bytes
    assert "list<item: int32>" == facts.schema["packed_text_tokens"]


def test_an_empty_dataset_has_facts_too(tmp_path: Path):
    facts = dataset_facts(DatasetFiles.open(write_dataset(tmp_path, [])))

    assert (0, 0, (), {}) == (facts.num_rows, facts.num_blocks, facts.corpora, facts.skipped)
