"""Latents taken from an older dataset: a relabelled corpus costs no encoding, and nothing else changes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latentprep import run
from latentprep.core.errors import OutputError, UsageError
from latentprep.preprocess import events
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.events import RunSummary

from .corpus_changes import BulkCorpus
from .runs import bulk_config, golden_config
from .test_run import rows_of


@pytest.fixture
def old(tmp_path: Path) -> RunConfig:
    """A finished run of 20 clips."""
    config = bulk_config(tmp_path, 20, seconds=(0.5, 1.5), workers=1)
    run(config)
    return config


def again(config: RunConfig, name: str = "new", **changes: Any) -> tuple[RunConfig, RunSummary]:
    """A run over the same corpora into another folder."""
    update = {"output_dir": config.output_dir.parent / name, **changes}
    other = config.model_copy(update=update)
    return other, run(other)


def test_unchanged_clips_give_the_same_rows_without_being_encoded(old: RunConfig):
    """Bit for bit, weak durations and warnings included: who reuses must not get another dataset."""
    config, summary = again(old, reuse=old.output_dir)

    assert (20, 20, 0.0) == (summary.written, summary.reused, round(summary.encoded_seconds, 3))
    assert rows_of(old.output_dir).equals(rows_of(config.output_dir))
    assert json.loads((config.output_dir / "provenance.json").read_text())["reused_from"] == str(old.output_dir)


def test_a_relabelled_corpus_gets_new_words_and_old_latents(old: RunConfig):
    """The point of it: corrections of lyrics are frequent, GPU time is dear."""
    corpus = BulkCorpus(old)
    item = corpus.relabel(4)

    config, summary = again(old, reuse=old.output_dir)
    _, fresh = again(old, "fresh")

    before, after = rows_of(old.output_dir).to_pylist(), rows_of(config.output_dir).to_pylist()
    assert 20 == summary.reused
    assert fresh.content_digest == summary.content_digest
    assert [item] == [b["item_name"] for a, b in zip(before, after, strict=True) if a["word"] != b["word"]]
    for a, b in zip(before, after, strict=True):
        patches = [
            np.array([patch for patch, mask in zip(row["audio_feats"], row["audio_mask"], strict=True) if mask])
            for row in (a, b)
        ]
        np.testing.assert_array_equal(*patches)


def test_new_and_changed_audio_is_encoded_beside_reused_rows(old: RunConfig):
    """Same name, other samples: the bytes decide, never the name."""
    corpus = BulkCorpus(old)
    changed = corpus.replace_audio(2)
    corpus.add("new#song#1")

    config, summary = again(old, reuse=old.output_dir)
    _, fresh = again(old, "fresh")

    assert (21, 19) == (summary.written, summary.reused)
    assert (fresh.content_digest, fresh.digest) == (summary.content_digest, summary.digest)
    rows = {row["item_name"]: row["audio_feats"] for row in rows_of(config.output_dir).to_pylist()}
    then = {row["item_name"]: row["audio_feats"] for row in rows_of(old.output_dir).to_pylist()}
    assert rows[changed] != then[changed]


def test_reused_rows_can_be_reused(old: RunConfig):
    """Their facts are those of the first encoding, the device's name included."""
    middle, _ = again(old, "middle", reuse=old.output_dir)

    config, summary = again(old, reuse=middle.output_dir)

    assert 20 == summary.reused
    assert rows_of(old.output_dir).equals(rows_of(config.output_dir))


def test_the_golden_corpus_is_reused_whatever_its_files_are(tmp_path: Path):
    """FLAC, 24 bit, stereo and other sample rates: the length in latent frames is worked out from stored facts."""
    first = run(golden_config(tmp_path / "old"))

    again = run(golden_config(tmp_path / "new", reuse=tmp_path / "old"))

    assert 11 == again.reused
    assert (first.digest, first.content_digest, first.warnings) == (again.digest, again.content_digest, again.warnings)


def test_another_vae_is_refused_and_named(old: RunConfig):
    """Latents of two VAEs in one dataset can't be told apart later."""
    with pytest.raises(OutputError, match=r"encoder\.weights: was '.+', is '.+'"):
        again(old, reuse=old.output_dir, encoder=old.encoder.model_copy(update={"name": "tiny"}))

    assert not (old.output_dir.parent / "new").exists()


def test_the_output_folder_itself_is_refused(old: RunConfig):
    with pytest.raises(UsageError, match="the output folder itself"):
        run(old.model_copy(update={"reuse": old.output_dir}))


def test_an_unfinished_dataset_is_refused(old: RunConfig, tmp_path: Path):
    """Nobody has said yet how its latents were made."""
    with pytest.raises(OutputError, match="can't be reused"):
        again(old, reuse=tmp_path / "nothing")


def test_a_damaged_block_costs_encoding_and_nothing_else(old: RunConfig):
    """A latent that isn't finite is never taken."""
    shard = next(old.output_dir.glob("data-*.arrow"))
    row = rows_of(old.output_dir).to_pylist()[3]
    frame = np.array(row["audio_feats"][row["audio_mask"].index(1)][0], np.float16).tobytes()
    content = shard.read_bytes()
    shard.write_bytes(content.replace(frame, b"\xff" * len(frame)))

    _, summary = again(old, reuse=old.output_dir)
    _, fresh = again(old, "fresh")

    assert 19 == summary.reused
    assert fresh.digest == summary.digest


def test_the_index_goes_when_it_is_not_needed_any_more(old: RunConfig):
    seen: list[events.Event] = []
    config = old.model_copy(update={"output_dir": old.output_dir.parent / "new", "reuse": old.output_dir})

    run(config, seen.append)

    assert [] == list((config.output_dir / ".prep").glob("reuse*"))
    assert any("among the 20 of" in event.text for event in seen if isinstance(event, events.Notice))
