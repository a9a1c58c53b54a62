"""All corpora of a run."""

from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest

from latentprep.core.errors import CorpusError
from latentprep.core.schema import ANNOTATION_COLUMNS, IDENTITY_COLUMNS
from latentprep.preprocess.config import Corpus
from latentprep.preprocess.corpora.clip import Clip
from latentprep.preprocess.corpora.registry import READERS, read_corpora
from latentprep.preprocess.events import CorpusRead, Reading

from .builders import folder_corpus, item, json_corpus, outcome_of, run_config, segment, song, weak_corpus

GOLDEN = Path(__file__).parents[2] / "golden"


def golden_config(**options):
    """The reference corpus, as the reference rows were made of it."""
    corpora = GOLDEN / "corpus"
    choir = {"name": "choir", "type": "json_file", "json_path": corpora / "json_file/annotations.json"}
    opera = {"name": "opera", "type": "weak_json_file", "json_path": corpora / "weak_json_file/annotations.json"}
    return run_config(
        {**choir, "audio_root": corpora / "json_file/audio", "song_id_indices": [0, 1]},
        {"name": "album", "dataset_root": corpora / "folder_based"},
        {**opera, "audio_root": corpora / "weak_json_file/audio"},
        **options,
    )


def read(config):
    events = []
    return list(read_corpora(config, events.append)), events


def test_the_reference_corpus_gives_the_annotation_columns_of_the_reference_rows():
    """What upstream reads rightly is read to the same values, column by column."""
    rows = {row["item_name"]: row for row in pq.read_table(GOLDEN / "expected.parquet").to_pylist()}
    clips, _ = read(golden_config())

    assert 11 == len(clips) == len(rows)
    for clip in clips:
        assert isinstance(clip, Clip)
        for column in (*IDENTITY_COLUMNS, *ANNOTATION_COLUMNS):
            value = getattr(clip, column)
            assert rows[clip.item_name][column] == (list(value) if isinstance(value, tuple) else value), column
        assert Path(clip.audio_path).is_file()


def test_corpora_come_in_the_order_of_the_configuration():
    clips, events = read(golden_config())

    assert ["choir"] * 6 + ["album"] * 4 + ["opera"] == [clip.dataset_name for clip in clips]
    assert [
        Reading("choir"),
        CorpusRead("choir", 6, 0),
        Reading("album"),
        CorpusRead("album", 4, 0),
        Reading("opera"),
        CorpusRead("opera", 1, 0),
    ] == events


def test_every_type_of_the_configuration_has_a_reader():
    tags = [get_args(member)[1].tag for member in get_args(get_args(Corpus)[0])]

    assert sorted(tags) == sorted(READERS)


@pytest.mark.parametrize(("limit", "names"), [(1, ["choir"]), (6, ["choir"]), (7, ["choir", "album"]), (99, 3)])
def test_max_samples_takes_the_first_clips_of_the_run(limit, names):
    clips, events = read(golden_config(max_samples=limit))
    all_clips, _ = read(golden_config())

    assert all_clips[:limit] == clips
    started = [event.dataset_name for event in events if isinstance(event, Reading)]
    assert names in (started, len(started))


def test_refused_items_do_not_count_as_samples(tmp_path):
    """Otherwise a trial of 10 might have no clip at all."""
    items = [item(item_name="a", bpm=0), item(item_name="b"), item(item_name="c"), item(item_name="d")]
    found, events = read(run_config(json_corpus(tmp_path, items), max_samples=2))

    assert [("a", "bad_bpm"), ("b", "clip"), ("c", "clip")] == [outcome_of(outcome) for outcome in found]
    assert CorpusRead("choir", 2, 1) == events[-1]


def test_the_second_item_of_a_name_is_refused_whatever_the_first_became(tmp_path):
    """Names are how rows are found again, so they must be unique within a corpus, and only there."""
    items = [item(), item(bpm=0), item(item_name="x", bpm=0), item(item_name="x")]
    first, second = json_corpus(tmp_path / "1", items), json_corpus(tmp_path / "2", [item()], name="other")
    found, _ = read(run_config(first, second))

    assert [
        ("s#a#0", "clip"),
        ("s#a#0", "duplicate_item"),
        ("x", "bad_bpm"),
        ("x", "duplicate_item"),
        ("s#a#0", "clip"),
    ] == [outcome_of(outcome) for outcome in found]


def test_what_is_missing_is_named_before_anything_is_read(tmp_path):
    """All of it, so that one correction is enough; and before a scan of an hour."""
    fine = json_corpus(tmp_path / "fine", "this would be an error, too")
    lost = json_corpus(tmp_path / "lost", []).model_copy(
        update={"name": "lost", "json_path": tmp_path / "no.json", "audio_root": tmp_path / "no"}
    )
    with pytest.raises(CorpusError) as caught:
        read_corpora(run_config(fine, lost, folder_corpus(tmp_path / "gone")), lambda event: None)

    assert (
        f"corpus 'lost': json_path '{tmp_path}/no.json' is no file\n"
        f"corpus 'lost': audio_root '{tmp_path}/no' is no folder\n"
        f"corpus 'album': dataset_root '{tmp_path}/gone' is no folder" == caught.value.what
    )
    assert "the current folder" in caught.value.fix


@pytest.mark.parametrize(
    "make", [lambda path: json_corpus(path, []), lambda path: weak_corpus(path, []), folder_corpus]
)
def test_a_corpus_without_items_is_an_error(tmp_path, make):
    """A run that ends well without a row of a corpus would be believed."""
    with pytest.raises(CorpusError, match=r"corpus '.+': no items in "):
        read(run_config(make(tmp_path)))


def test_a_corpus_without_a_usable_item_says_why(tmp_path):
    song(tmp_path, "s", {"lyric": [segment(), segment("0001")]}, files=("0000.wav", "0002.wav"))
    with pytest.raises(CorpusError) as caught:
        read(run_config(folder_corpus(tmp_path)))

    assert "none of the 3 items of" in caught.value.what
    assert "1 bad_bpm, 1 no_audio_for_segment, 1 no_annotation" in caught.value.what
    assert "the first, s/0000: there is no bpm" == caught.value.why
