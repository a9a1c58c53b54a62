"""A second start looks at the audio from outside only: what its headers said was kept."""

import os
from pathlib import Path

import pytest

from latentprep import run
from latentprep.core.errors import CorpusError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess import events
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.output_folder import clear_output
from latentprep.preprocess.plan.plan import Plan
from latentprep.preprocess.run import plan_only

from .corpus_changes import BulkCorpus
from .runs import bulk_config


def _blank(config: RunConfig) -> None:
    """Zeros in place of every audio file's bytes; size and time stay. Whoever reads one again refuses the clip."""
    corpus = BulkCorpus(config)
    for number in range(len(corpus.items())):
        path = corpus.audio(number)
        before = path.stat()
        path.write_bytes(bytes(before.st_size))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _fingerprint(config: RunConfig) -> str:
    return Plan.open(OutputPaths(config.output_dir).plan).fingerprint


@pytest.fixture
def planned(tmp_path: Path) -> RunConfig:
    """Twelve clips, planned; then their files were blanked."""
    config = bulk_config(tmp_path, 12, seconds=(0.5, 1.5), workers=1)
    plan_only(config)
    _blank(config)
    return config


def test_a_run_killed_while_planning_reads_no_header_again(planned: RunConfig) -> None:
    """What was scanned is there, the plan isn't."""
    before = _fingerprint(planned)
    OutputPaths(planned.output_dir).plan.unlink()

    bill = plan_only(planned)

    assert (12, 0) == (bill.clips, bill.num_refused)
    assert before == _fingerprint(planned)


def test_overwriting_reads_no_header_again(planned: RunConfig) -> None:
    """--overwrite deletes the dataset; the corpora are what they were."""
    before = _fingerprint(planned)
    clear_output(OutputPaths(planned.output_dir))

    assert ["headers.bin"] == [path.name for path in OutputPaths(planned.output_dir).work.iterdir()]
    assert 12 == plan_only(planned).clips
    assert before == _fingerprint(planned)


def test_rescan_and_extend_read_the_headers_of_new_files_alone(tmp_path: Path) -> None:
    """A blanked file that counts as unchanged was not opened."""
    config = bulk_config(tmp_path, 12, seconds=(0.5, 1.5), workers=1)
    run(config)
    _blank(config)
    told: list[events.Event] = []
    plan_only(config, told.append, rescan=True)
    texts = [event.text for event in told if isinstance(event, events.Notice)]
    (tmp_path / "like").mkdir()
    new = BulkCorpus(bulk_config(tmp_path / "like", 1, seconds=(0.5, 1.5))).audio(0)
    corpus = BulkCorpus(config)
    (corpus.audio_root / "new.wav").write_bytes(new.read_bytes())
    corpus.save([*corpus.items(), {**corpus.items()[0], "item_name": "new#song#1", "wav_fn": "new.wav"}])

    assert "the plan stands: no clip was added, changed, or is gone" in texts
    assert 1 == plan_only(config, extend=True).clips


def test_without_the_kept_headers_the_files_are_read(planned: RunConfig) -> None:
    """So the tests above would fail if nothing were kept."""
    paths = OutputPaths(planned.output_dir)
    paths.plan.unlink()
    paths.headers.unlink()

    with pytest.raises(CorpusError, match="12 not_audio"):
        plan_only(planned)
