"""A stored plan against corpora that may have changed: what is taken as it is, what is refused, with which words."""

from pathlib import Path

import pytest

from latentprep import run
from latentprep.core.errors import OutputError
from latentprep.preprocess import events
from latentprep.preprocess.config import RunConfig

from .corpus_changes import BulkCorpus
from .runs import bulk_config


@pytest.fixture
def finished(tmp_path: Path) -> RunConfig:
    """A finished run of 20 clips."""
    config = bulk_config(tmp_path, 20, seconds=(0.5, 1.5), workers=1)
    run(config)
    return config


def notices(config: RunConfig, **options: bool) -> list[str]:
    seen: list[events.Event] = []
    run(config, seen.append, **options)
    return [event.text for event in seen if isinstance(event, events.Notice)]


def test_the_refusal_says_how_many_clips_were_added_changed_and_are_gone(finished: RunConfig):
    """Who sees the numbers knows whether it is the right folder, before hours of encoding anything."""
    corpus = BulkCorpus(finished)
    added = corpus.add("new#song#1")
    relabelled = corpus.relabel(1)
    other_audio = corpus.replace_audio(2)
    gone = [corpus.remove(5), corpus.remove(5)]

    with pytest.raises(OutputError) as caught:
        run(finished)

    assert "clips: 1 added, 2 gone, 1 changed (annotation), 1 changed (audio)" in caught.value.what
    for name in (added, relabelled, other_audio, *gone):
        assert f"bulk/{name}" in caught.value.what


def test_audio_that_changed_in_place_is_found_by_rescan_only(finished: RunConfig):
    """The signature looks at annotation files alone: looking at every audio file would cost minutes on each resume."""
    BulkCorpus(finished).replace_audio(3)

    assert [] == [text for text in notices(finished) if "reading" in text]
    with pytest.raises(OutputError, match=r"clips: 1 changed \(audio\)"):
        run(finished, rescan=True)


def test_a_copied_corpus_is_the_same_corpus(finished: RunConfig):
    """Times differ, bytes don't: nobody wants to encode again because of `cp`."""
    corpus = BulkCorpus(finished)
    corpus.copy_audio()
    corpus.save(corpus.items())

    assert "the plan stands: no clip was added, changed, or is gone" in notices(finished, rescan=True)


def test_an_annotation_that_only_moved_in_its_file_is_the_same(finished: RunConfig):
    """Items are the stable names, not their order."""
    corpus = BulkCorpus(finished)
    corpus.save(corpus.items()[::-1])

    assert "the plan stands: no clip was added, changed, or is gone" in notices(finished)


def test_nothing_is_left_behind_by_reading_again(finished: RunConfig):
    """Not a second plan, not the spilled clips."""
    before = sorted(path.name for path in (finished.output_dir / ".prep").iterdir())

    notices(finished, rescan=True)

    assert before == sorted(path.name for path in (finished.output_dir / ".prep").iterdir())


def test_a_refused_item_counts_as_a_change_too(finished: RunConfig):
    """planned = written + skipped + remaining holds for the items that were planned."""
    corpus = BulkCorpus(finished)
    items = corpus.items()
    corpus.save([*items, {"item_name": "broken"}])

    with pytest.raises(OutputError, match="1 more refused"):
        run(finished)
