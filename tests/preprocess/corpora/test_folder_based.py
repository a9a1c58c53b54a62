"""The folder_based reader: order and errors over many songs."""

import pytest

from latentprep.core.errors import CorpusError
from latentprep.preprocess.config import ScoreSettings
from latentprep.preprocess.corpora import folder_based
from latentprep.preprocess.corpora.folder_based import read_folder_based, song_folders

from .builders import folder_corpus, segment, song


def read(root, **options):
    return read_folder_based(folder_corpus(root, **options), ScoreSettings())


def test_songs_come_by_name_whatever_the_threads(tmp_path, monkeypatch):
    """max_samples and duplicates depend on the order, so timing must not."""
    monkeypatch.setattr(folder_based, "GROUP_SONGS", 3)
    monkeypatch.setattr(folder_based, "WINDOW_GROUPS", 2)
    for number in reversed(range(25)):
        song(tmp_path, f"s{number}", {"bpm": 88, "lyric": [segment("b"), segment("a")]}, files=("a.wav", "b.wav"))

    expected = [f"{name}/{part}" for name in sorted(f"s{number}" for number in range(25)) for part in "ba"]
    assert expected == [clip.item_name for clip in read(tmp_path)]


def test_only_visible_folders_are_songs(tmp_path):
    for name in ("b", "a", ".cache", "__MACOSX"):
        (tmp_path / name).mkdir()
    (tmp_path / "readme.txt").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")

    assert ["a", "b", "link"] == song_folders(str(tmp_path))


def test_all_broken_metadata_files_are_listed_in_one_error(tmp_path):
    """To be told of them one run at a time would take as many runs."""
    for number in range(23):
        song(tmp_path, f"s{number:02}", "[]")
    song(tmp_path, "fine", {"bpm": 88, "lyric": [segment()]})
    clips = []
    with pytest.raises(CorpusError) as caught:
        clips.extend(read(tmp_path))
    lines = str(caught.value).splitlines()

    assert "corpus 'album': 23 metadata.json can't be read as a JSON object" == lines[0]
    assert f"  {tmp_path}/s00/metadata.json, line 1, column 1: the file holds an array, expected an object" == lines[1]
    assert f"  {tmp_path}/s19/metadata.json" == lines[20].partition(",")[0]
    assert "  and 3 more" == lines[21]


def test_stopping_early_ends_the_threads(tmp_path, monkeypatch):
    """A trial with max_samples must not read a hundred thousand songs to its end."""
    monkeypatch.setattr(folder_based, "GROUP_SONGS", 1)
    monkeypatch.setattr(folder_based, "WINDOW_GROUPS", 2)
    seen = []
    real = folder_based.read_song
    monkeypatch.setattr(
        folder_based, "read_song", lambda corpus, name, score: seen.append(name) or real(corpus, name, score)
    )
    for number in range(20):
        song(tmp_path, f"s{number:02}", {"bpm": 88, "lyric": [segment()]})
    items = read(tmp_path)
    next(items)
    items.close()

    assert len(seen) <= 3
