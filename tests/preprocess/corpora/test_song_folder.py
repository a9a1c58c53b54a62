"""One song folder: every segment and every audio file becomes exactly one item."""

import json
import os

import pytest

from latentprep.preprocess.config import ScoreSettings
from latentprep.preprocess.corpora.clip import Clip
from latentprep.preprocess.corpora.song_folder import BrokenMetadata, is_solo, read_song

from .builders import SCORE, folder_corpus, outcome_of, segment, song


def read(root, name="s", **options):
    return read_song(folder_corpus(root, **options), name, ScoreSettings())


def outcomes(root, name="s", **options):
    return [outcome_of(outcome) for outcome in read(root, name, **options)]


def test_a_segment_becomes_a_clip(tmp_path):
    song(tmp_path, "s", {"bpm": 88, "lyric": [segment(pitch_dur=[0.5, 0.25])]})

    assert [
        Clip(
            dataset_name="album",
            item_name="s/0000",
            song_name="s",
            song_folder="s",
            audio_path=str(tmp_path / "s/0000.flac"),
            audio_root=str(tmp_path),
            word=("走", "吧"),
            pitch=(60, 62),
            pitch_dur=(0.5, 0.25),
            note=("<NOTE_4>", "<NOTE_8>"),
            pitch2word=(0, 1),
            bpm=88,
            has_score=True,
        )
    ] == read(tmp_path)


@pytest.mark.parametrize(
    ("tempo", "bpm"),
    [
        ({"bpm": 88}, 88),
        ({"bpmMeta": 76}, 76),
        ({"bpm": 88, "bpmMeta": 76}, 88),
        ({"bpm": 0, "bpmMeta": 76}, 76),
        ({"bpm": None, "bpmMeta": 76}, 76),
        ({"bpm": "88"}, 88),
    ],
)
def test_the_tempo_is_bpm_or_else_the_authors(tmp_path, tempo, bpm):
    song(tmp_path, "s", {**tempo, "lyric": [segment()]})

    assert [bpm] == [clip.bpm for clip in read(tmp_path)]


@pytest.mark.parametrize(
    "tempo", [{}, {"bpm": 0}, {"bpm": None, "bpmMeta": 0}, {"bpm": False, "bpmMeta": 90}, {"bpm": 300}]
)
def test_a_tempo_that_is_not_there_is_not_120(tmp_path, tempo):
    song(tmp_path, "s", {**tempo, "lyric": [segment()]})

    assert [("s/0000", "bad_bpm")] == outcomes(tmp_path)


@pytest.mark.parametrize("suffix", [".opus", ".flac", ".wav", ".mp3", ".WAV", ".Flac"])
def test_audio_is_known_by_its_suffix_in_any_case(tmp_path, suffix):
    song(tmp_path, "s", {"bpm": 88, "lyric": [segment()]}, files=(f"0000{suffix}", "cover.jpg", "._0001.wav"))

    assert [str(tmp_path / f"s/0000{suffix}")] == [clip.audio_path for clip in read(tmp_path)]


def test_what_has_no_partner_is_refused_on_either_side(tmp_path):
    """Upstream passes over both without a word."""
    song(tmp_path, "s", {"bpm": 88, "lyric": [segment("0001"), segment("0000")]}, files=("0000.flac", "0002.flac"))

    assert [("s/0001", "no_audio_for_segment"), ("s/0000", "clip"), ("s/0002", "no_annotation")] == outcomes(tmp_path)


def test_two_audio_files_of_one_name_are_ambiguous(tmp_path):
    """Which of them is the newer one, nobody can say; upstream takes what the file system lists last."""
    song(tmp_path, "s", {"bpm": 88, "lyric": [segment()]}, files=("0000.opus", "0000.wav"))
    (refused,) = read(tmp_path)

    assert ("s/0000", "ambiguous_audio") == outcome_of(refused)
    assert "0000.opus and 0000.wav have one name; keep one of them" == refused.fault.message


def test_two_unannotated_files_of_one_name_are_two_items(tmp_path):
    song(tmp_path, "s", {"bpm": 88, "lyric": []}, files=("0000.opus", "0000.wav"))

    assert [("s/0000.opus", "no_annotation"), ("s/0000.wav", "no_annotation")] == outcomes(tmp_path)


@pytest.mark.parametrize(
    ("seg_id", "files", "expected"),
    [
        (0, ("0000.flac",), [("s/0000", "clip")]),
        (7, ("0007.flac",), [("s/0007", "clip")]),
        (7, ("7.flac",), [("s/7", "clip")]),
        (7, ("7.flac", "0007.flac"), [("s/7", "ambiguous_audio")]),
        (7, ("07.flac",), [("s/7", "no_audio_for_segment"), ("s/07", "no_annotation")]),
        (12345, ("12345.flac",), [("s/12345", "clip")]),
        ("7", ("0007.flac",), [("s/7", "no_audio_for_segment"), ("s/0007", "no_annotation")]),
        (" 0000 ", ("0000.flac",), [("s/0000", "clip")]),
        (None, ("0000.flac",), [("s/segment 0", "missing_field"), ("s/0000", "no_annotation")]),
        ("", ("0000.flac",), [("s/segment 0", "missing_field"), ("s/0000", "no_annotation")]),
        (0.0, ("0000.flac",), [("s/0.0", "bad_item"), ("s/0000", "no_annotation")]),
        (True, ("1.flac",), [("s/True", "bad_item"), ("s/1", "no_annotation")]),
    ],
)
def test_a_whole_number_means_the_file_of_that_number_or_of_four_digits(tmp_path, seg_id, files, expected):
    """Text is taken literally: "7" and "0007" may well be two segments."""
    song(tmp_path, "s", {"bpm": 88, "lyric": [segment(seg_id)]}, files=files)

    assert expected == outcomes(tmp_path)


def test_a_bad_segment_costs_one_clip(tmp_path):
    lyric = '[3, {"seg_id": "0000", "word": ["la"]}, {"seg_id": "0001", "pitch": [1e999]}]'
    song(tmp_path, "s", f'{{"bpm": 88, "lyric": {lyric}}}', files=("0000.flac", "0001.flac"))

    assert [
        ("s/segment 0", "bad_item"),
        ("s/0000", "clip"),
        ("s/segment 2", "bad_item"),
        ("s/0001", "no_annotation"),
    ] == outcomes(tmp_path)


@pytest.mark.parametrize("lyric", [{}, {"lyric": None}])
def test_older_exports_have_one_file_a_segment(tmp_path, lyric):
    """Upstream ends the whole run on `"lyric": null`."""
    folder = song(tmp_path, "s", {"bpm": 88, **lyric}, files=("b.flac", "a.flac", "c.flac"))
    for stem, text in {"b": json.dumps(SCORE), "a": json.dumps(SCORE), "d": json.dumps(SCORE), "c": "{"}.items():
        (folder / f"{stem}.json").write_text(text)

    assert [("s/a", "clip"), ("s/b", "clip"), ("s/c", "bad_item"), ("s/d", "no_audio_for_segment")] == outcomes(
        tmp_path
    )


def test_a_tempo_of_the_segment_counts_only_where_the_song_has_none(tmp_path):
    for name, metadata in {"with": {"bpm": 88}, "without": {}}.items():
        (song(tmp_path, name, metadata) / "0000.json").write_text(json.dumps({**SCORE, "bpm": 70}))

    assert [88, 70] == [read(tmp_path, name)[0].bpm for name in ("with", "without")]


def test_without_metadata_every_audio_file_is_refused(tmp_path):
    song(tmp_path, "s", None, files=("0000.flac", "0001.flac"))
    first, second = read(tmp_path)

    assert ("s/0000", "no_annotation") == outcome_of(first)
    assert str(tmp_path / "s/0001.flac") == second.audio_path
    assert "the song folder has no metadata.json" == first.fault.message


def test_a_lyric_that_is_no_list_refuses_every_audio_file(tmp_path):
    song(tmp_path, "s", {"bpm": 88, "lyric": "la la"})
    (refused,) = read(tmp_path)

    assert ("s/0000", "bad_item") == outcome_of(refused)
    assert "lyric of metadata.json is not a list of segments" in refused.fault.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"bpm": 88,\n "lyric": [}', "line 2, column 12: not JSON: invalid character"),
        ('{"bpm": 88}\n{"bpm": 90}', "line 2, column 1: the file is JSON Lines: a second object begins here"),
        ('{"bpm": 88', "line 1, column 11: the file ends in the middle"),
        ('{"bpm": NaN}', "line 1, column 9: NaN is not JSON"),
        ("[]", "line 1, column 1: the file holds an array, expected an object"),
        ("", "line 1, column 1: the file is empty"),
        ('{"bpm": 1e999}', "line 1, column 1: Number out of range"),
    ],
)
def test_metadata_that_is_no_json_object_is_named_with_its_place(tmp_path, text, message):
    song(tmp_path, "s", text)
    with pytest.raises(BrokenMetadata) as caught:
        read(tmp_path)

    assert str(caught.value).startswith(f"{tmp_path}/s/metadata.json, {message}")


@pytest.mark.parametrize(
    ("artists", "expected"),
    [
        ([{"id": 1, "name": "x", "type": "男歌手"}], True),
        ([{"type": "女歌手"}], True),
        ([{"type": "组合"}], False),
        ([{"type": "男歌手"}, {"type": "女歌手"}], False),
        ([{"name": "x"}], False),
        (["x"], False),
        ([], False),
        (None, False),
        ({"type": "男歌手"}, False),
    ],
)
def test_a_solo_song_has_one_artist_of_a_singers_type(artists, expected):
    """The three shapes of `artists` that one release holds: objects, names, null."""
    assert expected is is_solo(artists)


def test_solo_singer_only_filters_every_segment_of_another_song(tmp_path):
    song(tmp_path, "s", {"bpm": 88, "artists": ["x"], "lyric": [segment()]})

    assert [("s/0000", "filtered")] == outcomes(tmp_path, solo_singer_only=True)
    assert [("s/0000", "clip")] == outcomes(tmp_path, solo_singer_only=False)


def test_names_that_are_no_utf8_are_refused_in_a_form_that_can_be_written(tmp_path):
    """Neither Arrow nor JSON can hold the lone surrogates that Python makes of such bytes."""
    os.mkdir(os.fsencode(tmp_path) + b"/\xb8\xe8")
    song(tmp_path, "s", {"bpm": 88}, files=())
    for suffix in (b".flac", b".json"):
        with open(os.fsencode(tmp_path) + b"/s/\xb8" + suffix, "wb") as file:
            file.write(json.dumps(SCORE).encode())

    found = [*read(tmp_path, os.fsdecode(b"\xb8\xe8")), *read(tmp_path)]

    assert [("\\udcb8\\udce8", "bad_item"), ("s/\\udcb8", "bad_item")] == [outcome_of(item) for item in found]
    assert all(item.audio_path.encode() for item in found)


def test_a_song_that_vanished_is_refused_by_name(tmp_path):
    assert [("gone", "unreadable")] == outcomes(tmp_path, "gone")


def test_half_a_character_costs_its_segment_alone(tmp_path):
    """json.dump writes it for a file name that is no UTF-8; the song's other segments are fine."""
    lyric = [segment("0000"), segment("0001", text="\udcff", word=["\udcff"]), segment("0002")]
    song(tmp_path, "s", json.dumps({"bpm": 88, "lyric": lyric}), files=("0000.flac", "0001.flac", "0002.flac"))

    assert [
        ("s/0000", "clip"),
        ("s/segment 1", "bad_item"),
        ("s/0002", "clip"),
        ("s/0001", "no_annotation"),
    ] == outcomes(tmp_path)


def test_half_a_character_beside_the_segments_is_named_by_its_place(tmp_path):
    song(tmp_path, "s", '{"bpm": 88,\n "artists": ["\\udcff"]}')

    with pytest.raises(BrokenMetadata, match=r"line 2, column 15: not JSON: \\udcff is half of a character"):
        read(tmp_path)


def test_deep_nesting_of_an_older_segment_costs_that_segment(tmp_path):
    folder = song(tmp_path, "s", {"bpm": 88})
    (folder / "0000.json").write_text('{"x": ' + "[" * 5000 + "]" * 5000 + "}")
    (refused,) = read(tmp_path)

    assert ("s/0000", "bad_item") == outcome_of(refused)
    assert "nested too deeply" in refused.fault.message


def test_a_fifo_in_place_of_an_annotation_is_not_waited_for(tmp_path):
    """Opening it blocks until somebody writes: the whole run would stand still."""
    os.mkfifo(song(tmp_path, "s", None) / "metadata.json")
    os.mkfifo(song(tmp_path, "t", {"bpm": 88}) / "0000.json")
    first, second = *read(tmp_path), *read(tmp_path, "t")

    assert [("s/0000", "no_annotation"), ("t/0000", "bad_item")] == [outcome_of(item) for item in (first, second)]
    assert "metadata.json of the song folder cannot be read: a device or a FIFO, not a file" == first.fault.message
    assert "0000.json: a device or a FIFO, not a file" == second.fault.message


@pytest.mark.parametrize("seg_id", ["x" * 5000, {"a": "x" * 5000}, int("9" * 4000)], ids=type)
def test_a_segment_with_an_endless_name_is_called_by_its_number(tmp_path, seg_id):
    """No file can have it, and it would stand in the plan, in skipped.jsonl and on the screen."""
    song(tmp_path, "s", {"bpm": 88, "lyric": [segment(seg_id)]}, files=())
    (refused,) = read(tmp_path)

    assert ("s/segment 0", "bad_item") == outcome_of(refused)
    assert 120 > len(refused.fault.message)
