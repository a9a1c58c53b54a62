"""The demo holds what its page promises, in files that say what they are, and is the same for everyone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml

from latentprep.core.errors import FaultCode, UsageError
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.score.note_value import NOTE_QUARTERS
from latentprep.preprocess.synth.corpus import DemoCorpus, write_demo_corpus


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoCorpus:
    return write_demo_corpus(tmp_path_factory.mktemp("here") / "demo")


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _choir_items(root: Path) -> list[dict[str, Any]]:
    return _json(root / "choir/annotations.json")


def _scored_items(root: Path) -> list[dict[str, Any]]:
    """Everything annotated with a score, of both kinds of corpora and both layouts of song folders."""
    segments = [_json(path) for path in sorted((root / "album/old clock").glob("0*.json"))]
    return [
        *(item for item in _choir_items(root) if "note" in item),
        *_json(root / "album/harbor/metadata.json")["lyric"],
        *segments,
    ]


def _tree(root: Path) -> dict[str, bytes]:
    """Content of every file whose bytes don't hold the root's own path."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "prep.yaml")
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def test_the_counts_are_those_of_the_documentation(demo: DemoCorpus):
    """The quickstart prints them."""
    assert len(demo.files) == 16
    assert 80 < demo.seconds < 100
    assert [("choir", FaultCode.NOT_AUDIO), ("album", FaultCode.UNKNOWN_NOTE), ("opera", FaultCode.SILENT)] == [
        (fault.dataset_name, fault.code) for fault in demo.faults
    ]


def test_every_good_file_is_what_it_says(demo: DemoCorpus):
    """Rate, channels and sample format vary on purpose; a file that lies would be another fault."""
    for file in demo.files:
        info = soundfile.info(file.path)

        assert file.sample_rate == info.samplerate, file.path
        assert file.channels == info.channels, file.path
        assert file.subtype == info.subtype, file.path
        assert round(file.score.seconds * file.sample_rate) == info.frames, file.path
        assert 0.2 < np.abs(soundfile.read(file.path)[0]).max() < 0.9, file.path


def test_all_kinds_of_files_occur(demo: DemoCorpus):
    """The demo is the first test of a user's installation."""
    assert {16000, 22050, 24000, 44100, 48000} == {file.sample_rate for file in demo.files}
    assert {1, 2} == {file.channels for file in demo.files}
    assert {"PCM_16", "PCM_24", "FLOAT"} == {file.subtype for file in demo.files}
    assert {".wav", ".flac"} == {file.path.suffix for file in demo.files}
    assert all(1.9 < file.score.seconds < 9.1 for file in demo.files)


def test_annotations_agree_within_themselves_and_with_the_audio(demo: DemoCorpus):
    """Lists of unequal length or an index out of range would be a fault."""
    items = _scored_items(demo.root)

    assert len(items) == 7 + 4 + 2
    for item in items:
        assert len(item["pitch"]) == len(item["note"]) == len(item["pitch2word"]) == len(item["pitch_dur"])
        assert len(item["word"]) == len(item["word_dur"])
        assert set(range(len(item["word"]))) == set(item["pitch2word"])
        assert sorted(item["pitch2word"]) == item["pitch2word"]
        assert all(0 <= pitch <= 127 for pitch in item["pitch"])
        assert sum(item["word_dur"]) == pytest.approx(sum(item["pitch_dur"]), abs=1e-4)


def test_only_the_broken_note_is_unknown(demo: DemoCorpus):
    """One fault a corpus, no more."""
    unknown = [note for item in _scored_items(demo.root) for note in item["note"] if note not in NOTE_QUARTERS]

    assert ["<NOTE_3>"] == unknown


def test_melisma_rests_and_a_weak_clip_occur(demo: DemoCorpus):
    """Each takes another way through the score and the prompt."""
    scores = [file.score for file in demo.files]
    weak = [item for item in _choir_items(demo.root) if "note" not in item]

    assert sum(len(score.note) > len(score.word) for score in scores) >= 5
    assert {"AP", "SP"} <= {word for score in scores for word in score.word}
    assert ["Tenor-3#月#0001"] == [item["item_name"] for item in weak]
    assert set(weak[0]) == {"item_name", "wav_fn", "word"}


def test_each_song_folder_has_its_layout(demo: DemoCorpus):
    """Readers tell them apart by the presence of ``lyric``."""
    newer, older = (_json(demo.root / "album" / song / "metadata.json") for song in ("harbor", "old clock"))

    assert newer["bpmMeta"] == 92
    assert ["0000", "0001", "0002", "0003"] == [segment["seg_id"] for segment in newer["lyric"]]
    assert older["bpm"] == 76
    assert "lyric" not in older


def test_the_faulty_files_are_faulty(demo: DemoCorpus):
    """They are shown to be skipped, so they may not be readable by accident."""
    with pytest.raises(soundfile.LibsndfileError):
        soundfile.info(demo.root / "choir/audio/Tenor-3#月/0002.wav")

    assert soundfile.read(demo.root / "opera/audio/duet/segment_0003/audio.wav")[0].max() == 0.0


def test_the_configuration_is_valid_and_its_paths_begin_with_the_root_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """``prep svs --config demo/prep.yaml`` must work from the folder above, wherever that is."""
    monkeypatch.chdir(tmp_path)
    demo = write_demo_corpus(Path("demo"))
    config = RunConfig.model_validate(yaml.safe_load(Path("demo/prep.yaml").read_text(encoding="utf-8")))

    assert ["choir", "album", "opera"] == [corpus.name for corpus in config.datasets]
    assert Path("demo_out") == config.output_dir == demo.output_dir
    assert config.encoder.name == "tiny"
    assert Path("demo/choir/annotations.json") == config.datasets[0].json_path  # pyright: ignore
    assert all(str(file.path).startswith("demo/") for file in demo.files)


def test_a_seed_gives_the_same_bytes_and_another_seed_others(demo: DemoCorpus, tmp_path: Path):
    """Digests of the demo's rows are compared between machines."""
    again = write_demo_corpus(tmp_path / "again")
    other = write_demo_corpus(tmp_path / "other", seed=1)

    assert _tree(demo.root) == _tree(again.root)
    assert set(_tree(demo.root)) == set(_tree(other.root))
    assert _tree(demo.root) != _tree(other.root)


def test_an_earlier_demo_is_written_again_without_its_left_overs(tmp_path: Path):
    """A clip of an older version would be read as one of this demo."""
    demo = write_demo_corpus(tmp_path / "demo")
    before = _tree(demo.root)
    stray = demo.root / "album/harbor/0009.wav"
    stray.write_bytes(b"")
    write_demo_corpus(demo.root)

    assert before == _tree(demo.root)
    assert not stray.exists()


def test_a_folder_with_other_content_is_refused_and_left_alone(tmp_path: Path):
    """Nobody's corpus called ``choir`` may be deleted for a demo."""
    precious = tmp_path / "choir/annotations.json"
    precious.parent.mkdir()
    precious.write_text("[]")
    with pytest.raises(UsageError, match="not empty"):
        write_demo_corpus(tmp_path)

    assert precious.read_text() == "[]"
    with pytest.raises(UsageError, match="is a file"):
        write_demo_corpus(precious)
