"""The whole way from clips to a stored plan."""

from pathlib import Path

import pytest

from latentprep.core.errors import CorpusError, FaultCode
from latentprep.preprocess.events import Event, Scanning
from latentprep.preprocess.plan.plan import Plan

from .builders import by_item, clip, config, info, plan_of, refused_clip


def _items(plan: Plan) -> list[list[str]]:
    return [plan.chunk(number)["item_name"].to_pylist() for number in range(plan.num_chunks)]


def test_every_clip_is_in_the_plan_once_or_refused(tmp_path: Path) -> None:
    """planned = written + skipped + remaining starts with these numbers."""
    clips = [clip(f"{number}") for number in range(100)]
    spelled = clip("spelled", word=("AP", "<|audio_end|>"))

    plan = plan_of(tmp_path, [*clips[:50], refused_clip(), spelled, *clips[50:]])

    assert sorted(c.item_name for c in clips) == sorted(name for chunk in _items(plan) for name in chunk)
    refused = {(r.item_name, r.fault.code) for r in plan.refused()}
    assert {("bad", FaultCode.MISSING_AUDIO), ("spelled", FaultCode.RESERVED_TOKEN)} == refused
    assert (100, 2) == (plan.num_clips, plan.num_refused)


def test_a_plan_of_five_clips_worked_out_by_hand(tmp_path: Path) -> None:
    """Pairs from the longest down; the shortest is left over. All in one chunk: 10 % of the audio is less than the
    middle of any pair."""
    seconds = {"a": 2.0, "b": 9.0, "c": 10.0, "d": 3.0, "e": 1.0}

    plan = plan_of(tmp_path, [clip(name) for name in seconds], probe=by_item(seconds))

    rows = [row for number in range(plan.num_chunks) for row in plan.chunk(number).to_pylist()]
    batches: dict[int, list[str]] = {}
    for row in rows:
        batches.setdefault(row["batch"], []).append(row["item_name"])
    assert sorted([["c", "b"], ["d", "a"], ["e"]]) == sorted(batches.values())
    assert [0, 1, 2] == list(batches)
    assert 25.0 == plan.audio_seconds
    assert [3] == [int(plan.chunks.batches.sum())]
    # padded to whole patches of 0.16 s: 2 x 10.08, 2 x 3.04, 1 x 1.12
    assert 27.36 == pytest.approx(plan.chunks.padded_samples.sum() / 16000)


def test_prompt_lengths_are_in_the_plan(tmp_path: Path) -> None:
    """bpm, two words, two notes of two tokens, audio_start, with the bundled tokenizer: AP and la have these ids."""
    plan = plan_of(tmp_path, [clip("a"), clip("b", has_score=False, pitch=(), note=(), pitch2word=(), bpm=0)])

    lengths = {row["item_name"]: row["prompt_length"] for row in plan.chunk(0).to_pylist()}
    assert lengths["a"] == lengths["b"] >= 8
    assert 1 == plan.chunks.weak.sum()


def test_three_thousand_clips_with_the_dummy_make_blocks_of_hundreds_of_rows(tmp_path: Path) -> None:
    """Datasets of 32-row blocks open with ten to twenty times the memory."""
    seconds = {str(number): 2 + number % 1000 / 100 for number in range(3000)}

    plan = plan_of(tmp_path, [clip(name) for name in seconds], probe=by_item(seconds))

    big = plan.chunk_rows[plan.chunk_rows > 256]
    assert 2700 == pytest.approx(big.sum(), rel=0.02)
    assert big.min() >= 500
    assert plan.chunk_rows.max() <= 1024


def test_the_configuration_bounds_the_plan(tmp_path: Path) -> None:
    """limits.* are the shape of the plan, and stand in it."""
    run = config(limits={"max_chunk_rows": 20, "max_batch_clips": 3})

    plan = plan_of(tmp_path, [clip(f"{number}") for number in range(200)], run=run)

    assert plan.chunk_rows.max() <= 20
    assert 20 == plan.limits.max_chunk_rows
    assert 3 == plan.limits.max_batch_clips


def test_a_plan_without_clips_is_an_error_that_says_why(tmp_path: Path) -> None:
    """A wrong audio_root shows as all audio missing."""
    with pytest.raises(CorpusError, match="choir: 2 missing_audio"):
        plan_of(tmp_path, [refused_clip("a"), refused_clip("b")])


def test_nothing_temporary_is_left_behind(tmp_path: Path) -> None:
    """Also after a failure: a spill can be larger than the plan."""
    plan_of(tmp_path, [clip()])
    with pytest.raises(CorpusError):
        plan_of(tmp_path, [])

    assert ["plan.arrow", "plan.arrow.xxh3"] == sorted(path.name for path in tmp_path.iterdir())


def test_progress_is_told_at_least_once_with_the_final_number(tmp_path: Path) -> None:
    """The renderer's last line."""
    events: list[Event] = []

    plan_of(tmp_path, [clip("a"), clip("b"), refused_clip()], events=events)

    assert Scanning(3, 3) == events[-1]


def test_the_rate_of_the_encoder_bounds_chunks(tmp_path: Path) -> None:
    """1,000 clips of 10 s at 3 x real time: 180 s a chunk."""
    plan = plan_of(tmp_path, [clip(f"{number}") for number in range(1000)], encoder=info(rate=3.0))

    assert plan.chunk_samples.max() <= 180 * 16_000
    assert plan.num_chunks >= 56
