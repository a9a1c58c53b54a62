"""The main job, from corpora to what ``load_from_disk`` opens, with real processes and real files."""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from latentprep import run
from latentprep.core.errors import CheckpointError, ConfigError, CorpusError, OutputError, PrepError
from latentprep.core.schema import COLUMNS
from latentprep.preprocess import events
from latentprep.preprocess.config_file import resolved_yaml
from latentprep.preprocess.events import RunSummary
from latentprep.preprocess.run import plan_only

from .runs import GOLDEN, bulk_config, golden_config


def rows_of(output_dir: Path) -> pa.Table:
    """All rows, sorted by item, as the Arrow table that ``datasets`` opens."""
    table = datasets.load_from_disk(str(output_dir)).data.table
    return table.sort_by("item_name")


def assert_golden(output_dir: Path) -> None:
    """All columns equal; latents within the tolerance of float16 in another batch shape."""
    expected, actual = pq.read_table(GOLDEN / "expected.parquet"), rows_of(output_dir)
    assert expected.column_names == actual.column_names == list(COLUMNS)
    for name in COLUMNS:
        if name != "audio_feats":
            assert expected[name].to_pylist() == actual[name].to_pylist(), name
    for want, have in zip(expected["audio_feats"], actual["audio_feats"], strict=True):
        want, have = (np.array(cell.as_py(), np.float32) for cell in (want, have))
        assert want.shape == have.shape
        np.testing.assert_allclose(have, want, rtol=2e-3, atol=2e-2)


@pytest.fixture(scope="module")
def golden_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunSummary]:
    """One run over the golden corpus with one worker."""
    output_dir = tmp_path_factory.mktemp("golden") / "out"
    return output_dir, run(golden_config(output_dir))


def test_the_golden_corpus_gives_the_golden_rows(golden_run: tuple[Path, RunSummary]):
    """A trainer must not be able to tell our rows from upstream's."""
    output_dir, summary = golden_run

    assert (11, 11, 0, {}) == (summary.planned, summary.written, summary.remaining, dict(summary.skipped))
    assert_golden(output_dir)


def test_two_workers_give_the_same_digest(golden_run: tuple[Path, RunSummary], tmp_path: Path):
    """Promise 4: content does not depend on the number of workers."""
    _, one = golden_run

    two = run(golden_config(tmp_path / "out", workers=2))

    assert (one.digest, one.content_digest) == (two.digest, two.content_digest)
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize("batch_size", [1, 8])
def test_other_batch_sizes_stay_within_the_tolerance(
    batch_size: int, golden_run: tuple[Path, RunSummary], tmp_path: Path
):
    """Batches change the last bit of some latents at most, and no other column at all."""
    _, reference = golden_run

    summary = run(golden_config(tmp_path / "out", limits={"max_batch_clips": batch_size}))

    assert reference.content_digest == summary.content_digest
    assert_golden(tmp_path / "out")


def test_the_features_are_spelt_so_that_every_version_reads_them(golden_run: tuple[Path, RunSummary]):
    """datasets 3.x knows no ``List``; dataset_info.json and the shards' schema must say ``Sequence``."""
    output_dir, _ = golden_run
    info = json.loads((output_dir / "dataset_info.json").read_text())
    shard = next(output_dir.glob("data-*.arrow"))
    schema = pa.ipc.open_stream(shard.read_bytes()).schema

    assert list(COLUMNS) == list(info["features"])
    assert "Sequence" == info["features"]["audio_feats"]["_type"]
    assert info["features"] == json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert json.loads((output_dir / "state.json").read_text())["_fingerprint"]


def test_a_finished_run_is_not_done_again(golden_run: tuple[Path, RunSummary]):
    """The same command on a finished folder starts no worker."""
    output_dir, first = golden_run
    seen: list[events.Event] = []

    again = run(golden_config(output_dir), seen.append)

    assert [] == [event for event in seen if isinstance(event, events.WorkerReady)]
    assert (first.digest, first.written, 0.0) == (again.digest, again.written, again.encoded_seconds)


def test_a_run_with_nothing_to_do_keeps_the_story_of_the_one_that_did(golden_run: tuple[Path, RunSummary]):
    """provenance.json says how long the dataset took and by which command, not how long looking at it took."""
    output_dir, _ = golden_run
    before = json.loads((output_dir / "provenance.json").read_text())

    run(golden_config(output_dir), command=("prep", "again"))

    after = json.loads((output_dir / "provenance.json").read_text())
    assert before["timings"] == after["timings"]
    assert before["command"] == after["command"]
    assert before["timings"]["encoded_seconds"] > 10


def test_other_settings_are_refused_and_named(golden_run: tuple[Path, RunSummary]):
    """Rows of two kinds must not get into one dataset."""
    output_dir, _ = golden_run

    with pytest.raises(OutputError) as caught:
        run(golden_config(output_dir, score={"word_without_note": "warn"}))

    assert "score.word_without_note: was 'error', is 'warn'" in caught.value.what


def test_overwrite_says_what_it_deletes(golden_run: tuple[Path, RunSummary]):
    """And then does the work again."""
    output_dir, first = golden_run
    seen: list[events.Event] = []

    again = run(golden_config(output_dir), seen.append, overwrite=True)

    notices = [event.text for event in seen if isinstance(event, events.Notice)]
    assert any("--overwrite deletes 1 shard (" in text for text in notices), notices
    assert first.digest == again.digest


def test_a_sample_rate_that_is_not_the_checkpoints_is_refused(tmp_path: Path):
    """Upstream's default of 44100 encodes pitch-shifted audio without a word."""
    with pytest.raises(ConfigError) as caught:
        run(golden_config(tmp_path / "out", sample_rate=44100))

    assert "44100 Hz" in caught.value.what
    assert "16000 Hz" in caught.value.what
    assert not (tmp_path / "out").exists()


def test_a_missing_vae_is_named(tmp_path: Path):
    """Before anything is read."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/config.json").write_text((GOLDEN / "checkpoint/config.json").read_text())

    with pytest.raises(CheckpointError, match=r"audiovae\.safetensors"):
        run(golden_config(tmp_path / "out", encoder={"name": "voxcpm", "path": tmp_path / "checkpoint"}))


def test_a_foreign_dataset_is_not_touched(tmp_path: Path):
    """Not even with overwrite."""
    (tmp_path / "data-00000-of-00001.arrow").write_bytes(b"theirs")

    with pytest.raises(OutputError, match="no provenance"):
        run(golden_config(tmp_path), overwrite=True)

    assert b"theirs" == (tmp_path / "data-00000-of-00001.arrow").read_bytes()


def test_a_readme_that_is_not_ours_is_not_overwritten(tmp_path: Path):
    """``--out .`` in the root of a project would replace its README by a dataset card."""
    (tmp_path / "README.md").write_text("mine")

    with pytest.raises(OutputError, match=r"holds README\.md"):
        run(golden_config(tmp_path))

    assert "mine" == (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("name", ["file/x", "x" * 300])
def test_an_output_folder_that_cannot_be_made_is_named(name: str, tmp_path: Path):
    """As an error with words, not a traceback."""
    (tmp_path / "file").write_text("")

    with pytest.raises(OutputError, match="can't be made"):
        run(golden_config(tmp_path / name))


def test_a_run_that_fails_before_its_plan_leaves_no_folder_behind(tmp_path: Path):
    """A typing error in a path must not litter the disk."""
    corpus = {"name": "x", "type": "json_file", "json_path": tmp_path / "none.json", "audio_root": tmp_path}

    with pytest.raises(CorpusError):
        run(golden_config(tmp_path / "out", datasets=[corpus]))

    assert [] == list(tmp_path.iterdir())


def test_the_bill_needs_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is asked for on a login node, before the job is sent."""
    monkeypatch.setenv("PATH", "/nonexistent")
    seen: list[events.Event] = []

    bill = plan_only(golden_config(tmp_path / "out", device=None, workers=None, gpus=4), seen.append)

    assert (11, 4) == (bill.clips, bill.workers)
    assert "4 GPUs were asked for, 0 are visible" in next(e.text for e in seen if isinstance(e, events.Notice))


def test_a_file_in_place_of_the_output_folder_is_named(tmp_path: Path):
    """As an error with words, not a traceback."""
    (tmp_path / "out").write_text("")

    with pytest.raises(OutputError, match="is a file"):
        run(golden_config(tmp_path / "out"))


def test_no_rows_at_all_is_an_error(tmp_path: Path):
    """An empty dataset saves without complaint and breaks its reader later."""
    (tmp_path / "a.wav").write_text("not audio")
    (tmp_path / "a.json").write_text(json.dumps([{"item_name": "a", "wav_fn": "a.wav", "word": ["la"]}]))
    corpus = {"name": "x", "type": "json_file", "json_path": tmp_path / "a.json", "audio_root": tmp_path}

    with pytest.raises(PrepError, match="not_audio"):
        run(golden_config(tmp_path / "out", datasets=[corpus], encoder={"name": "dummy"}))


@pytest.mark.slow
def test_the_parent_stays_small(tmp_path: Path):
    """Promise 8: its memory doesn't grow with annotations; torch alone would take 400 MB."""
    config = bulk_config(tmp_path, 1000)
    (tmp_path / "prep.yaml").write_text(resolved_yaml(config))
    command = [sys.executable, "-m", "latentprep.cli.main", "svs", "--config", tmp_path / "prep.yaml"]
    parent = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak_kib = 0
    while parent.poll() is None:
        status = Path(f"/proc/{parent.pid}/status").read_text()
        peak_kib = max(peak_kib, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
        time.sleep(0.1)

    assert 0 == parent.returncode
    assert 1000 == len(rows_of(tmp_path / "out"))
    assert 0 < peak_kib < 400 * 1024


@pytest.mark.slow
def test_three_thousand_clips(tmp_path: Path):
    """One plan, one digest with 1, 2 and 3 workers; blocks of several hundred rows; shards rotate."""
    config = bulk_config(tmp_path, 3000, shards={"max_rows": 1000})
    summaries = []
    for workers in (1, 2, 3):
        update = {"workers": workers, "output_dir": tmp_path / f"out{workers}"}
        summaries.append(run(config.model_copy(update=update)))
    counts = Counter()
    for shard in (tmp_path / "out2").glob("data-*.arrow"):
        counts[shard.name] = [batch.num_rows for batch in pa.ipc.open_stream(shard.read_bytes())]
    blocks = sorted((rows for shard in counts.values() for rows in shard), reverse=True)

    assert [3000] * 3 == [summary.written for summary in summaries]
    assert 1 == len({(s.digest, s.fingerprint, s.num_chunks) for s in summaries})
    assert len(counts) >= 3
    assert all(sum(shard) <= 1000 for shard in counts.values())
    full = [rows for rows in blocks if rows >= 300]
    assert sum(full) >= 0.85 * 3000
