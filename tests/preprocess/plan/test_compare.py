"""Which clips are kept, new, changed or gone: every one is exactly one of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.preprocess.corpora.clip import Clip, RefusedClip
from latentprep.preprocess.plan.clip_table import ClipTable, ClipTableWriter
from latentprep.preprocess.plan.compare import ClipState, Comparison, KnownClips, compare, is_relabelled
from latentprep.preprocess.plan.scan import audio_facts

from .builders import SPEC, clip, header, refused_clip

Versions = Mapping[str, tuple[int, int]]
"""By item: version of the annotation, time of the audio file."""


@contextmanager
def table_of(versions: Versions, refused: tuple[RefusedClip, ...] = ()) -> Iterator[ClipTable]:
    with TemporaryDirectory() as folder, ClipTableWriter(Path(folder)) as writer:
        for item, (words, mtime) in versions.items():
            writer.add(_clip(item, words), audio_facts(header(mtime_ns=mtime), SPEC), 10)
        for item in refused:
            writer.refuse(item)
        yield writer.finish()


def _clip(item: str, words: int) -> Clip:
    return clip(item, word=("AP", f"la{words}"))


def known_of(versions: Versions, refused: tuple[RefusedClip, ...] = ()) -> KnownClips:
    """The same clips as two chunks of earlier plans."""
    codes = [(item.dataset_name, item.item_name, item.fault.code) for item in refused]
    with table_of(versions) as table:
        half = len(table) // 2
        parts = [(7, np.arange(half)), (9, np.arange(half, len(table)))]
        return KnownClips.of([(chunk, table.gather(rows)) for chunk, rows in parts if len(rows)], codes)


def comparison(then: Versions, now: Versions) -> Comparison:
    with table_of(now) as table:
        return compare(table, known_of(then))


versions = st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1)


@settings(max_examples=40, deadline=None)
@given(then=versions, now=versions)
def test_every_clip_is_one_of_kept_new_changed_or_gone(then: Versions, now: Versions):
    """A clip that is none of them would be lost by an extension without a word."""
    found = comparison(then, now)

    for item, state, number in zip(now, found.state, found.known, strict=True):
        if item not in then:
            expected = ClipState.NEW
        elif then[item][1] != now[item][1]:
            expected = ClipState.TOUCHED
        else:
            expected = ClipState.KEPT if then[item][0] == now[item][0] else ClipState.RELABELLED
        assert expected == state
        assert (item in then) == (number >= 0)
    gone = [item for item in then if item not in now]
    assert gone == [list(then)[number] for number in found.gone]
    assert (then == now) == found.is_equal


def test_a_known_clip_is_found_where_it_stands():
    """Its block is what an extension supersedes."""
    found, known = (
        comparison({"a": (0, 0), "b": (0, 0), "c": (0, 0)}, {"c": (1, 0)}),
        known_of(dict.fromkeys("abc", (0, 0))),
    )

    assert [9] == known.chunk[found.known].tolist()
    assert [1] == known.position[found.known].tolist()
    assert [0, 1] == found.gone.tolist()


def test_touched_files_with_the_same_bytes_are_kept_or_relabelled():
    """A copy has another time, and may have got another annotation besides."""
    then, now = {"a": (0, 0), "b": (0, 0), "c": (0, 0)}, {"a": (0, 1), "b": (1, 1), "c": (0, 1)}
    with table_of(now) as table:
        known = known_of(then)
        found = compare(table, known)
        other = is_relabelled(table, found.touched, known, found.known[found.touched])
        settled = found.settle(np.array([True, True, False]), other)

    assert [False, True, False] == other.tolist()
    assert [ClipState.KEPT, ClipState.RELABELLED, ClipState.TOUCHED] == settled.state.tolist()


def test_refused_items_are_compared_by_their_fault():
    """The text of a fault may quote the operating system; its code does not."""
    then, now = refused_clip("x", message="one"), refused_clip("x", message="two")
    with table_of({"a": (0, 0)}, (now, refused_clip("y"))) as table:
        found = compare(table, known_of({"a": (0, 0)}, (then, refused_clip("z"))))

    assert (1, 1) == (found.num_refused_added, found.num_refused_gone)
    assert not found.is_equal


def test_the_text_names_only_what_is_there():
    assert "clips: 1 added, 1 gone" == comparison({"a": (0, 0), "b": (0, 0)}, {"a": (0, 0), "c": (0, 0)}).text()
