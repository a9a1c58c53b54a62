"""A finished dataset whose corpora changed: what is new is encoded, the rest stays, and nobody can tell the difference."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from latentprep import run
from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess import events
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.config_file import resolved_yaml
from latentprep.preprocess.events import RunSummary
from latentprep.preprocess.plan.plans import Plans
from latentprep.writers.ledger import read_journals
from latentprep.writers.verify import find_damage

from .corpus_changes import BulkCorpus
from .runs import GOLDEN, bulk_config, golden_config
from .test_run import assert_golden, rows_of


@pytest.fixture
def finished(tmp_path: Path) -> RunConfig:
    """A finished run of 40 clips in several chunks and shards."""
    config = bulk_config(
        tmp_path, 40, seconds=(0.5, 1.5), workers=1, limits={"max_chunk_rows": 8}, shards={"max_rows": 16}
    )
    run(config)
    return config


def fresh(config: RunConfig) -> RunSummary:
    """A run over the corpora as they are now, into another folder."""
    return run(config.model_copy(update={"output_dir": config.output_dir.parent / "fresh"}))


def chunks_encoded(config: RunConfig, **options: Any) -> tuple[RunSummary, int]:
    """Run, and count the rows that workers wrote."""
    seen: list[events.Event] = []
    summary = run(config, seen.append, **options)
    return summary, sum(event.num_rows for event in seen if isinstance(event, events.ChunkDone))


def assert_whole(config: RunConfig) -> None:
    """`prep verify` finds nothing, and no file is left over."""
    report = find_damage(OutputPaths(config.output_dir))
    assert () == report.problems
    names = [entry["filename"] for entry in json.loads((config.output_dir / "state.json").read_text())["_data_files"]]
    assert sorted(names) == sorted(path.name for path in config.output_dir.glob("data-*.arrow"))


def test_everything_at_once_gives_the_rows_of_a_fresh_run(finished: RunConfig):
    """New, relabelled, other audio, gone: the dataset is the one that a run over the corpora of now would make."""
    corpus = BulkCorpus(finished)
    corpus.add("new#song#1")
    corpus.add("new#song#2", like=7)
    corpus.relabel(1)
    corpus.replace_audio(12)
    corpus.remove(20)

    summary, encoded = chunks_encoded(finished, extend=True)
    expected = fresh(finished)

    assert (41, 41, 0) == (summary.planned, summary.written, summary.remaining)
    assert expected.content_digest == summary.content_digest
    assert rows_of(finished.output_dir).equals(rows_of(finished.output_dir.parent / "fresh"))
    assert (4, 1) == (encoded, summary.reused)
    assert_whole(finished)


def test_only_what_is_new_is_encoded_and_old_shards_stay(finished: RunConfig):
    """An addition touches no old block: their files, and what trainers have mapped of them, remain as they are."""
    before = {path.name: path.stat().st_mtime_ns for path in finished.output_dir.glob("data-*.arrow")}
    BulkCorpus(finished).add("new#song#1")

    summary, encoded = chunks_encoded(finished, extend=True)

    after = {path.name: path.stat().st_mtime_ns for path in finished.output_dir.glob("data-*.arrow")}
    assert 1 == encoded
    assert before.items() <= after.items()
    assert 41 == summary.written
    assert_whole(finished)


def test_a_vanished_clip_takes_its_row_and_no_other_along(finished: RunConfig):
    """The other rows of its block are copied bit for bit; nothing is encoded."""
    gone = BulkCorpus(finished).remove(3)
    rows = rows_of(finished.output_dir)

    summary, encoded = chunks_encoded(finished, extend=True)

    assert (0, 39) == (encoded, summary.written)
    kept = rows.filter(pa.compute.not_equal(rows["item_name"], gone))
    assert kept.equals(rows_of(finished.output_dir))
    assert_whole(finished)


def test_a_dataset_is_extended_again_and_again(finished: RunConfig):
    """Ids go on; a copied block may be superseded in its turn."""
    corpus = BulkCorpus(finished)
    for turn in range(3):
        corpus.add(f"new#song#{turn}")
        corpus.remove(0)
        run(finished, extend=True)
    expected = fresh(finished)

    plans = Plans.open(OutputPaths(finished.output_dir))
    journal = read_journals(OutputPaths(finished.output_dir), plans.fingerprints)
    assert 4 == len(plans.parts)
    assert set(plans.live) == set(journal.done)
    assert expected.content_digest == journal.digests.content_hex
    report = find_damage(OutputPaths(finished.output_dir))
    assert plans.fingerprints == report.plans
    assert_whole(finished)


def test_nothing_to_extend_changes_nothing(finished: RunConfig):
    first = (finished.output_dir / "state.json").read_bytes()

    summary, encoded = chunks_encoded(finished, extend=True)

    assert (0, 40) == (encoded, summary.written)
    assert first == (finished.output_dir / "state.json").read_bytes()
    assert not (finished.output_dir / ".prep/plan-2.arrow").exists()


def test_skipped_clips_and_refused_items_add_up_after_an_extension(finished: RunConfig):
    """A clip that had no row keeps its reason when its block is rewritten; a refused item is counted once."""
    corpus = BulkCorpus(finished)
    corpus.audio(2).write_bytes(b"RIFF, or so it says" * 100)
    corpus.save([*corpus.items(), {"item_name": "broken"}])
    summary, _ = chunks_encoded(finished, extend=True)
    assert (41, 39, 2) == (summary.planned, summary.written, summary.num_skipped)

    corpus.remove(3)
    summary, _ = chunks_encoded(finished, extend=True)

    assert (40, 38, 0) == (summary.planned, summary.written, summary.remaining)
    assert fresh(finished).skipped == summary.skipped
    assert_whole(finished)


def test_the_refusal_without_extend_names_it(finished: RunConfig):
    BulkCorpus(finished).add("new#song#1")

    with pytest.raises(OutputError) as caught:
        run(finished)

    assert "--extend" in caught.value.fix


def test_without_its_plan_a_dataset_is_not_extended(finished: RunConfig):
    """Nothing says which clip lies where; --reuse into another folder does the same work."""
    work = finished.output_dir / ".prep"
    work.rename(work.with_name("gone"))

    with pytest.raises(OutputError) as caught:
        run(finished, extend=True)

    assert "--reuse" in caught.value.fix


def test_a_damaged_block_is_not_copied_but_made_again(finished: RunConfig):
    """Copying would carry a flipped bit into a block with a right checksum."""
    item = BulkCorpus(finished).items()[3]["item_name"]
    paths = OutputPaths(finished.output_dir)
    plans = Plans.open(paths)
    chunk = next(chunk for chunk in plans.live if item in plans.chunk(chunk)["item_name"].to_pylist())
    block = read_journals(paths, plans.fingerprints).done[chunk]
    content = bytearray((paths.root / block.shard).read_bytes())
    content[block.record.offset + block.record.length - 1000] ^= 1
    (paths.root / block.shard).write_bytes(content)
    BulkCorpus(finished).remove(3)

    summary, encoded = chunks_encoded(finished, extend=True)

    assert block.record.rows - 1 == encoded
    assert fresh(finished).content_digest == summary.content_digest
    assert_whole(finished)


def test_the_old_dataset_opens_until_the_new_one_is_there(finished: RunConfig, monkeypatch: pytest.MonkeyPatch):
    """A trainer that starts in the midst of an extension gets the old rows, not half of both."""
    corpus = BulkCorpus(finished)
    corpus.add("new#song#1")
    corpus.remove(3)
    rows = rows_of(finished.output_dir)
    monkeypatch.setattr("latentprep.preprocess.finalize.write_provenance", _fail)

    with pytest.raises(RuntimeError, match="in the midst"):
        run(finished, extend=True)

    assert rows.equals(rows_of(finished.output_dir))
    assert () == find_damage(OutputPaths(finished.output_dir)).problems
    monkeypatch.undo()
    assert 40 == run(finished).written
    assert_whole(finished)


def _fail(*_: object) -> None:
    raise RuntimeError("in the midst")


def test_the_golden_rows_come_out_of_an_extension(tmp_path: Path):
    """With a real VAE: a clip was missing, another mislabelled, an audio file was another one's."""
    shutil.copytree(GOLDEN / "corpus", tmp_path / "corpus")
    config = golden_config(tmp_path / "out", corpus=tmp_path / "corpus")
    right = tmp_path / "corpus/json_file/annotations.json"
    items = json.loads(right.read_text())
    audio = [tmp_path / "corpus/json_file/audio" / item["wav_fn"] for item in items]
    contents = [path.read_bytes() for path in audio[:2]]
    relabelled = {**items[2], "word": items[2]["word"][::-1]}
    right.write_text(json.dumps([*items[:2], relabelled, *items[4:]]))
    audio[0].write_bytes(contents[1])
    run(config)

    right.write_text(json.dumps(items))
    audio[0].write_bytes(contents[0])
    summary = run(config, extend=True)

    assert (11, 1) == (summary.written, summary.reused)
    assert_golden(tmp_path / "out")
    assert_whole(config)


@pytest.mark.slow
def test_killed_at_any_moment_the_same_command_goes_on(finished: RunConfig, tmp_path: Path):
    """kill -9 of the parent during planning, copying, encoding and finishing."""
    corpus = BulkCorpus(finished)
    for number in range(20):
        corpus.add(f"new#song#{number}", like=number)
    corpus.relabel(1)
    corpus.remove(20)
    expected = fresh(finished)
    (tmp_path / "prep.yaml").write_text(resolved_yaml(finished))
    start = "from latentprep.cli.main import main; main()"
    command = [sys.executable, "-c", start, "svs", "--config", tmp_path / "prep.yaml", "--extend"]

    kills, codes = 0, []
    for delay in (0.8, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(delay)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        codes.append(process.wait())
        rows_of(finished.output_dir)  # opens, whatever the moment
    summary = run(finished, extend=True)
    summary = run(finished, extend=True)

    assert kills >= 1, codes
    assert (59, expected.content_digest) == (summary.written, summary.content_digest)
    assert_whole(finished)
