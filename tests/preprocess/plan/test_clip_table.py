"""The spilled table of clips: what goes in comes out, in any order."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from latentprep.core.errors import ClipFault, FaultCode, WarningCode
from latentprep.core.schema import ANNOTATION_COLUMNS, COLUMNS
from latentprep.preprocess.plan import clip_table
from latentprep.preprocess.plan.clip_table import CLIP_SCHEMA, AudioFacts, ClipTable, ClipTableWriter

from .builders import clip, refused_clip


def _facts(samples: int = 16_000) -> AudioFacts:
    return AudioFacts(file_size=99, mtime_ns=5, num_frames=-1, source_rate=48_000, channels=2, num_samples=samples)


def _table(folder: Path, names: list[str]) -> ClipTable:
    with ClipTableWriter(folder) as writer:
        for number, name in enumerate(names):
            writer.add(clip(name), _facts(number + 1), prompt_length=number)
        return writer.finish()


def test_annotations_have_the_types_of_their_columns() -> None:
    """A row takes them over as they are."""
    assert {name: COLUMNS[name] for name in ANNOTATION_COLUMNS} == {
        name: CLIP_SCHEMA.field(name).type for name in ANNOTATION_COLUMNS
    }


def test_a_clip_comes_out_as_it_went_in(tmp_path: Path) -> None:
    """Every column, the warning codes included."""
    with ClipTableWriter(tmp_path) as writer:
        writer.add(clip("a", warnings=(WarningCode.BPM_ROUNDED,)), _facts(), prompt_length=9)
        table = writer.finish()

    batch = table.gather(np.asarray([0]))

    expected = {
        "dataset_name": "choir",
        "item_name": "a",
        "song_name": "song",
        "song_folder": "folder",
        "audio_path": "audio/a.wav",
        "audio_root": "audio",
        "word": ["AP", "la"],
        "pitch": [0, 62],
        "pitch_dur": [],
        "note": ["<NOTE_4>", "<NOTE_8>"],
        "pitch2word": [0, 1],
        "word_dur": [0.5, 0.25],
        "bpm": 100,
        "has_score": True,
        "warnings": ["bpm_rounded"],
        "file_size": 99,
        "mtime_ns": 5,
        "num_frames": -1,
        "source_rate": 48_000,
        "channels": 2,
        "num_samples": 16_000,
        "prompt_length": 9,
    }
    assert [expected] == batch.to_pylist()
    assert CLIP_SCHEMA == batch.schema


def test_clips_are_gathered_in_any_order_across_spilled_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plan order is far from reading order; a batch of the spill is made small here so that there are several."""
    monkeypatch.setattr(clip_table, "SPILL_ROWS", 4)
    names = [f"clip {number}" for number in range(11)]
    table = _table(tmp_path, names)
    order = np.random.default_rng(0).permutation(11)

    batch = table.gather(order)

    assert [names[position] for position in order] == batch["item_name"].to_pylist()
    assert (order + 1).tolist() == batch["num_samples"].to_pylist()
    assert ["clip 10"] == table.gather(np.asarray([10]))["item_name"].to_pylist()


def test_what_the_cut_needs_stays_in_memory(tmp_path: Path) -> None:
    """Seventeen bytes a clip."""
    with ClipTableWriter(tmp_path) as writer:
        writer.add(clip("a"), _facts(10), 3)
        writer.add(clip("b", dataset_name="opera", has_score=False), _facts(20), 4)
        writer.add(clip("c"), _facts(30), 5)
        table = writer.finish()

    assert 3 == len(table)
    assert ("choir", "opera") == table.corpora
    assert [0, 1, 0] == table.corpus.tolist()
    assert [10, 20, 30] == table.num_samples.tolist()
    assert [3, 4, 5] == table.prompt_length.tolist()
    assert [False, True, False] == table.weak.tolist()


def test_refused_clips_are_kept_and_counted(tmp_path: Path) -> None:
    """They have a line in skipped.jsonl later; a path in another encoding must not break the file."""
    with ClipTableWriter(tmp_path) as writer:
        writer.refuse(refused_clip("b\udce9d"))
        table = writer.finish()

    assert {("choir", "missing_audio"): 1} == dict(table.refused_counts)
    (batch,) = table.refused()
    assert "b\\udce9d" == batch["item_name"][0].as_py()
    assert "scan" == batch["fault_stage"][0].as_py()


@pytest.mark.parametrize("changes", [{"word": ("la", "\ud800"), "has_score": False}, {"audio_path": "b\udce9.wav"}])
def test_text_that_is_no_unicode_refuses_the_clip_alone(tmp_path: Path, changes: dict[str, object]) -> None:
    """Arrow would refuse sixteen thousand clips with it, without a name."""
    with ClipTableWriter(tmp_path) as writer:
        with pytest.raises(ClipFault) as caught:
            writer.add(clip("a", **changes), _facts(), 3)
        writer.add(clip("b"), _facts(), 3)
        table = writer.finish()

    assert FaultCode.BAD_ITEM == caught.value.fault.code
    assert ["b"] == table.gather(np.asarray([0]))["item_name"].to_pylist()


def test_an_empty_table_is_a_table(tmp_path: Path) -> None:
    """The caller says what is wrong then."""
    table = _table(tmp_path, [])

    assert 0 == len(table)
    assert [] == list(table.refused())
    assert isinstance(table.num_samples, np.ndarray)
    assert pa.int32() == CLIP_SCHEMA.field("prompt_length").type
