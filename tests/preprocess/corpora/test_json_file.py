"""The json_file reader."""

import pytest

from latentprep.core.errors import Stage
from latentprep.preprocess.config import ScoreSettings
from latentprep.preprocess.corpora.clip import Clip, RefusedClip
from latentprep.preprocess.corpora.json_file import read_json_file

from .builders import item, json_corpus, outcome_of


def read(tmp_path, items, **options):
    return list(read_json_file(json_corpus(tmp_path, items, **options), ScoreSettings()))


def test_an_item_becomes_a_clip(tmp_path):
    (clip,) = read(tmp_path, [item(word_dur=[0.5, 0.25])], song_id_indices=[0, 1])

    assert (
        Clip(
            dataset_name="choir",
            item_name="s#a#0",
            song_name="s#a",
            song_folder="s#a",
            audio_path=str(tmp_path / "s#a/0.wav"),
            audio_root=str(tmp_path),
            word=("走", "吧"),
            word_dur=(0.5, 0.25),
            pitch=(60, 62),
            note=("<NOTE_4>", "<NOTE_8>"),
            pitch2word=(0, 1),
            bpm=90,
            has_score=True,
        )
        == clip
    )


@pytest.mark.parametrize(
    ("options", "song_name"),
    [
        ({}, "s#a#0"),
        ({"song_id_indices": [0, 1]}, "s#a"),
        ({"song_id_indices": [1, 0]}, "a#s"),
        ({"song_id_indices": [-1]}, "0"),
        ({"song_id_slice": [0, 3]}, "s#a"),
        ({"song_id_slice": [-1, 99]}, "0"),
        ({"song_id_indices": [1], "song_id_separator": "#a"}, "#0"),
    ],
)
def test_the_song_is_cut_out_of_the_items_name(tmp_path, options, song_name):
    assert [song_name] == [clip.song_name for clip in read(tmp_path, [item()], **options)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"song_id_indices": [0, 3]}, "item_name 's#a#0' has 3 parts, song_id_indices is [0, 3]"),
        ({"song_id_slice": [9, 12]}, "song_id_slice [9, 12] cuts nothing out of item_name 's#a#0'"),
    ],
)
def test_a_rule_that_does_not_fit_the_name_refuses_the_item(tmp_path, options, message):
    """Upstream leaves such parts out, and all songs of a singer become one."""
    (refused,) = read(tmp_path, [item()], **options)

    assert ("bad_item", message) == (refused.fault.code, refused.fault.message)


@pytest.mark.parametrize(
    ("wav_fn", "item_name", "song_folder"),
    [
        ("a/b/0000.wav", "a/b/0000", "a/b"),
        ("0000.wav", "0000", ""),
        ("./a//b.x.wav", "a/b.x", "a"),
        ("a/b", "a/b", "a"),
        ("/b.wav", "/b", "/"),
        ("a.b/c", "a.b/c", "a.b"),
    ],
)
def test_without_a_name_the_audio_path_without_suffix_is_the_name(tmp_path, wav_fn, item_name, song_folder):
    """Its file name alone is the same in every song."""
    (clip,) = read(tmp_path, [item(item_name=None, wav_fn=wav_fn)])

    assert (item_name, song_folder) == (clip.item_name, clip.song_folder)


def test_an_absolute_path_is_kept_for_the_scan_to_judge(tmp_path):
    """Whether audio may lie outside audio_root is a setting of its own."""
    (clip,) = read(tmp_path, [item(wav_fn="/data/0.wav")])

    assert ("/data/0.wav", str(tmp_path)) == (clip.audio_path, clip.audio_root)


def test_a_bad_item_costs_one_clip(tmp_path):
    array = '[{"wav_fn": "a.wav", "word": ["la"]}, 7, null, {"wav_fn": "b.wav", "bpm": 1e999}, {"wav_fn": "c.wav", "word": ["la"]}]'

    assert [("a", "clip"), ("item 1", "bad_item"), ("item 2", "bad_item"), ("item 3", "bad_item"), ("c", "clip")] == [
        outcome_of(outcome) for outcome in read(tmp_path, array)
    ]


@pytest.mark.parametrize(
    ("changes", "name", "code", "message"),
    [
        ({"wav_fn": None}, "s#a#0", "missing_field", "there is no wav_fn"),
        ({"wav_fn": ""}, "s#a#0", "missing_field", "there is no wav_fn"),
        ({"wav_fn": 5}, "s#a#0", "bad_item", "wav_fn is 5, expected a path"),
        ({"wav_fn": "a\0.wav"}, "s#a#0", "bad_item", "expected a path"),
        ({"item_name": 2001}, "s#a/0", "bad_item", "item_name is 2001, expected text"),
        ({"item_name": ""}, "s#a/0", "bad_item", "item_name is '', expected text"),
        ({"item_name": None, "wav_fn": None}, "item 0", "missing_field", "there is no wav_fn"),
        ({"bpm": 0}, "s#a#0", "bad_bpm", "bpm is 0, outside 1..255"),
        ({"word": None}, "s#a#0", "missing_field", "there is no word list"),
    ],
)
def test_a_refused_item_keeps_the_best_name_it_has(tmp_path, changes, name, code, message):
    (refused,) = read(tmp_path, [item(**changes)])

    assert isinstance(refused, RefusedClip)
    assert (name, code) == outcome_of(refused)
    assert message in refused.fault.message
    assert "choir" == refused.dataset_name


def test_a_refused_item_names_its_audio_or_else_the_annotation(tmp_path):
    with_audio, without = read(tmp_path, [item(bpm=0), item(wav_fn=None)])

    assert str(tmp_path / "s#a/0.wav") == with_audio.audio_path
    assert str(tmp_path / "annotations.json") == without.audio_path
    assert (Stage.SCORE, Stage.READ) == (with_audio.fault.stage, without.fault.stage)


def test_the_severity_of_words_without_notes_is_a_setting(tmp_path):
    corpus = json_corpus(tmp_path, [item(pitch2word=[0, 0])])

    assert ["word_without_note"] == [clip.fault.code for clip in read_json_file(corpus, ScoreSettings())]
    (clip,) = read_json_file(corpus, ScoreSettings(word_without_note="warn"))
    assert ("word_without_note",) == clip.warnings
