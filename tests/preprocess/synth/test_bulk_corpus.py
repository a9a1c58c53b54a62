"""Bulk corpora are read by benchmarks and by tests of loss: every clip must be there once, and differ."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from latentprep.preprocess.synth.corpus import BulkCorpus, write_bulk_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> BulkCorpus:
    root = tmp_path_factory.mktemp("bulk")
    return write_bulk_corpus(
        root, num_clips=60, seconds=(0.5, 1.5), sample_rates=(8000, 16000), format="WAV", num_songs=4
    )


def test_every_clip_has_one_file_of_the_length_its_score_says(corpus: BulkCorpus):
    """A difference would show as a warning in every benchmark."""
    items = json.loads(corpus.annotation_path.read_text(encoding="utf-8"))
    infos = [soundfile.info(corpus.audio_root / item["wav_fn"]) for item in items]

    assert len(items) == corpus.num_clips == 60
    assert len({item["item_name"] for item in items}) == 60
    assert corpus.seconds == pytest.approx(sum(info.duration for info in infos))
    assert [8000, 16000] * 30 == [info.samplerate for info in infos]
    for item, info in zip(items, infos, strict=True):
        assert sum(item["pitch_dur"]) == pytest.approx(info.duration, abs=1e-3)
        assert 0.45 < info.duration < 1.55


def test_no_two_files_are_equal_and_none_is_silent(corpus: BulkCorpus):
    """Swapped clips are found by their samples."""
    files = sorted(corpus.audio_root.rglob("*.wav"))

    assert len({path.read_bytes() for path in files}) == 60
    assert all(np.abs(soundfile.read(path)[0]).max() > 1e-3 for path in files)


def test_songs_are_as_many_as_asked_for(corpus: BulkCorpus):
    """Shuffling by song is only tested if there are songs."""
    items = json.loads(corpus.annotation_path.read_text(encoding="utf-8"))
    songs = {"#".join(item["item_name"].split("#")[:2]) for item in items}

    assert {f"Singer-{song + 1}#song-{song:04d}" for song in range(4)} == songs


def test_flac_is_the_default_and_the_seed_decides_the_bytes(tmp_path: Path):
    """Benchmarks of two machines must decode the same corpus."""
    one, two = (write_bulk_corpus(tmp_path / name, num_clips=3, seconds=(0.5, 0.8)) for name in ("one", "two"))
    names = [path.relative_to(one.audio_root) for path in sorted(one.audio_root.rglob("*.flac"))]

    assert len(names) == 3
    assert [(one.audio_root / name).read_bytes() for name in names] == [
        (two.audio_root / name).read_bytes() for name in names
    ]
    assert one.annotation_path.read_bytes() == two.annotation_path.read_bytes()
