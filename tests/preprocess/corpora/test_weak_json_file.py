"""The weak_json_file reader."""

import pytest

from latentprep.preprocess.config import ScoreSettings
from latentprep.preprocess.corpora.clip import Clip
from latentprep.preprocess.corpora.weak_json_file import read_weak_json_file

from .builders import outcome_of, weak_corpus


def weak(**changes) -> dict:
    return {"audio_path": "op1/segment_0001/audio.wav", "transcription": "走吧", "confidence": "high", **changes}


def read(tmp_path, items, **options):
    return list(read_weak_json_file(weak_corpus(tmp_path, items, **options), ScoreSettings()))


def test_an_item_becomes_a_clip_without_a_score(tmp_path):
    """Its name keeps the folders: every file of such a corpus may be called audio.wav."""
    (clip,) = read(tmp_path, [weak()])

    assert (
        Clip(
            dataset_name="opera",
            item_name="op1/segment_0001/audio",
            song_name="op1",
            song_folder="op1",
            audio_path=str(tmp_path / "op1/segment_0001/audio.wav"),
            audio_root=str(tmp_path),
            word=("走", "吧"),
        )
        == clip
    )


@pytest.mark.parametrize(
    ("minimum", "kept"),
    [
        (None, ["high", "medium", "low", None]),
        ("low", ["high", "medium", "low", None]),
        ("medium", ["high", "medium", None]),
        ("high", ["high"]),
    ],
)
def test_confidence_filters_and_a_missing_one_is_medium(tmp_path, minimum, kept):
    levels = ["high", "medium", "low", None]
    items = [weak(audio_path=f"op1/{level}.wav", confidence=level) for level in levels]

    assert [(f"op1/{level}", "clip" if level in kept else "filtered") for level in levels] == [
        outcome_of(outcome) for outcome in read(tmp_path, items, min_confidence=minimum)
    ]


@pytest.mark.parametrize(
    ("changes", "name", "code"),
    [
        ({"audio_path": None}, "item 0", "missing_field"),
        ({"audio_path": ["a"]}, "item 0", "bad_item"),
        ({"transcription": None}, "op1/segment_0001/audio", "missing_field"),
        ({"transcription": ["走"]}, "op1/segment_0001/audio", "bad_item"),
        ({"transcription": "…!"}, "op1/segment_0001/audio", "no_lyric"),
        ({"transcription": "SP"}, "op1/segment_0001/audio", "no_lyric"),
        ({"confidence": "sure"}, "op1/segment_0001/audio", "bad_item"),
        ({"confidence": 3}, "op1/segment_0001/audio", "bad_item"),
    ],
)
def test_a_broken_item_is_refused_with_its_code(tmp_path, changes, name, code):
    """Upstream ends the whole run on a transcription that is null."""
    assert [(name, code)] == [outcome_of(outcome) for outcome in read(tmp_path, [weak(**changes)])]


def test_an_item_that_is_no_object_costs_one_clip(tmp_path):
    assert ["bad_item", "clip"] == [outcome_of(outcome)[1] for outcome in read(tmp_path, ["x", weak()])]


@pytest.mark.parametrize(
    ("audio_path", "song"), [("a/b/c.wav", "a"), ("./a/c.wav", "a"), ("c.wav", "c.wav"), ("/a/c.wav", "/")]
)
def test_the_song_is_the_first_part_of_the_path(tmp_path, audio_path, song):
    (clip,) = read(tmp_path, [weak(audio_path=audio_path)])

    assert (song, song) == (clip.song_name, clip.song_folder)
