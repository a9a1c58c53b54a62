"""A run that changes its decode threads all the time makes the rows of one that never does."""

import json
from pathlib import Path

import pytest

from latentprep.core.paths import OutputPaths
from latentprep.preprocess.run import run

from . import hooks
from .runs import bulk_config


@pytest.mark.timeout(120)
def test_adapting_changes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Batches are planned; threads only decide when they are decoded. Each decision is told."""
    limits = {"max_chunk_rows": 8, "max_batch_clips": 2}
    config = bulk_config(tmp_path, 64, seconds=(0.5, 1.0), limits=limits, workers=1)
    digests, changes, kept = [], [], []
    for hook in (hooks.SETTLED, hooks.RESTLESS):
        for name, value in hooks.environment(tmp_path / "hook", seconds=0.02, hook=hook).items():
            monkeypatch.setenv(name, value)
        out = tmp_path / hook.partition(":")[2]
        digests.append(run(config.model_copy(update={"output_dir": out})).digest)
        events = [json.loads(line) for line in OutputPaths(out).events().read_text().splitlines()]
        changes.append([event for event in events if event["event"] == "DecodeAdapted"])
        kept.append(json.loads(OutputPaths(out).provenance.read_text())["timings"]["adapted"])

    assert digests[0] == digests[1]
    assert [] == changes[0]
    assert changes[1]
    assert [0, len(changes[1])] == kept
