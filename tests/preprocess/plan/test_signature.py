"""Whether corpora changed, told from real files."""

import os
from pathlib import Path

from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.plan.signature import CorporaSignature, changed_corpora, corpora_signature

from .builders import config


def _corpora(root: Path) -> RunConfig:
    """A JSON corpus and two song folders."""
    (root / "choir.json").write_text("[]")
    for song in ("one", "two"):
        (root / "songs" / song).mkdir(parents=True)
        (root / "songs" / song / "metadata.json").write_text("{}")
    choir = {"type": "json_file", "name": "choir", "json_path": str(root / "choir.json"), "audio_root": str(root)}
    album = {"type": "folder_based", "name": "album", "dataset_root": str(root / "songs")}
    return config(datasets=[choir, album])


def _later(path: Path) -> None:
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))


def test_nothing_changed(tmp_path: Path) -> None:
    """The usual resume: no corpus is read again."""
    run = _corpora(tmp_path)

    before, after = corpora_signature(run), corpora_signature(run)

    assert before == after
    assert [] == changed_corpora(before, after)
    assert before == CorporaSignature.from_json(before.to_json())


def test_an_annotation_file_of_another_time_is_named_by_its_corpus(tmp_path: Path) -> None:
    """The same size proves nothing."""
    run = _corpora(tmp_path)
    before = corpora_signature(run)

    _later(tmp_path / "choir.json")

    lines = ["corpus choir: an annotation file or song folder has another size or time"]
    assert lines == changed_corpora(before, corpora_signature(run))


def test_a_new_song_is_counted(tmp_path: Path) -> None:
    """root + 2 songs + 2 files, then one folder more."""
    run = _corpora(tmp_path)
    before = corpora_signature(run)

    (tmp_path / "songs/three").mkdir()

    lines = ["corpus album: 5 annotation files and song folders before, 6 now"]
    assert lines == changed_corpora(before, corpora_signature(run))


def test_metadata_edited_in_place_is_seen(tmp_path: Path) -> None:
    """A folder's own time does not change then."""
    run = _corpora(tmp_path)
    before = corpora_signature(run)

    _later(tmp_path / "songs/two/metadata.json")

    assert 1 == len(changed_corpora(before, corpora_signature(run)))


def test_a_missing_corpus_is_a_value_and_no_error(tmp_path: Path) -> None:
    """The reader names missing files; a resume of a finished part may not need them."""
    run = _corpora(tmp_path)
    before = corpora_signature(run)

    (tmp_path / "choir.json").unlink()

    assert 1 == len(changed_corpora(before, corpora_signature(run)))
