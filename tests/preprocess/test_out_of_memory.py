"""A run on a card that is too small: the same rows, and one line about it."""

import json
from pathlib import Path

import pytest

from latentprep import run
from latentprep.core.errors import PrepError
from latentprep.preprocess import events

from .runs import golden_config
from .test_run import assert_golden


def test_a_run_that_is_short_of_memory_makes_the_golden_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Batches in parts, long clips in windows: within the tolerance of other batch sizes, and nothing is skipped."""
    monkeypatch.setenv("PREP_TEST_DECODE_HOOK", "tests.preprocess.cramped:room_for_3_s")
    seen: list[events.Event] = []

    summary = run(golden_config(tmp_path / "out", workers=2), seen.append)

    remarks = [e.text for e in seen if isinstance(e, events.Notice) and e.level == "warning"]
    assert (11, 11, {}) == (summary.planned, summary.written, dict(summary.skipped))
    assert_golden(tmp_path / "out")
    assert summary.warnings["windowed"] > 0
    assert 1 == len(remarks), "two workers are short of memory, in many batches"
    assert "out of memory in batch" in remarks[0]
    assert [] == [event for event in seen if isinstance(event, events.WorkerLost)]


def test_clips_that_fit_in_no_way_are_skipped_as_oom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And no worker dies of them."""
    monkeypatch.setenv("PREP_TEST_DECODE_HOOK", "tests.preprocess.cramped:room_for_1_s")
    seen: list[events.Event] = []

    with pytest.raises(PrepError, match="not one of 11 clips gave a row: oom 11"):
        run(golden_config(tmp_path / "out"), seen.append)

    lines = [json.loads(line) for line in (tmp_path / "out/skipped.jsonl").read_text().splitlines()]
    assert {("encode", "oom")} == {(line["stage"], line["code"]) for line in lines}
    assert all("CUDA out of memory" in line["message"] for line in lines)
    assert [] == [event for event in seen if isinstance(event, events.WorkerLost)]
