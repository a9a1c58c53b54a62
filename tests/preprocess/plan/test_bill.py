"""The bill before the run, worked out by hand."""

from pathlib import Path

import pytest

from latentprep.preprocess.plan.bill import FreeSpace, free_space, make_bill

from .builders import clip, config, info, plan_of, refused_clip

PLENTY = FreeSpace(num_bytes=1 << 40, inodes=1 << 20)


def test_a_bill_adds_up(tmp_path: Path) -> None:
    """64 clips of 10 s in two corpora, two refused: 640 s of audio, 63 patches each."""
    clips = [clip(f"{number}") for number in range(40)]
    weak = {"dataset_name": "opera", "has_score": False, "pitch": (), "note": (), "pitch2word": (), "bpm": 0}
    clips += [clip(f"{number}", **weak) for number in range(24)]
    plan = plan_of(tmp_path, [*clips, refused_clip("x"), refused_clip("y")])

    bill = make_bill(plan, config(), info(rate=2.0), 4, PLENTY)

    assert (64, 24, 2) == (bill.clips, bill.weak, bill.num_refused)
    assert {"missing_audio": 2} == bill.refused
    assert 640 / 3600 == pytest.approx(bill.hours)
    assert 32 == bill.batches
    assert 1 - 62.5 / 63 == pytest.approx(bill.padding)
    assert 64 * 10.08 / 8 == pytest.approx(bill.encode_seconds)
    assert [("choir", 40, 0, 2), ("opera", 24, 24, 0)] == [(c.name, c.clips, c.weak, c.refused) for c in bill.corpora]
    assert 400 / 3600 == pytest.approx(bill.corpora[0].hours)
    assert plan.chunks.row_bytes.sum() + 12_000 * plan.num_chunks == bill.num_bytes
    assert 64 * 40_000 < bill.num_bytes < 64 * 50_000
    assert 4 * 2 + 12 == bill.inodes
    assert bill.fits


def test_small_shards_need_more_inodes(tmp_path: Path) -> None:
    """100 rows over two workers in shards of ten rows: five files and a journal each."""
    plan = plan_of(tmp_path, [clip(f"{number}") for number in range(100)])

    bill = make_bill(plan, config(shards={"max_rows": 10}), info(), 2, PLENTY)

    assert 2 * (5 + 1) + 12 == bill.inodes
    assert bill.encode_seconds is None


def test_too_little_space_shows(tmp_path: Path) -> None:
    """Before the first GPU starts."""
    plan = plan_of(tmp_path, [clip()])

    def fits(num_bytes: int, inodes: int | None) -> bool:
        return make_bill(plan, config(), info(), 1, FreeSpace(num_bytes=num_bytes, inodes=inodes)).fits

    assert fits(1 << 30, None)
    assert not fits(1000, None)
    assert not fits(1 << 30, 5)


def test_a_corpus_of_which_nothing_is_left_stays_on_the_bill(tmp_path: Path) -> None:
    """It is the line that people have to see."""
    plan = plan_of(tmp_path, [clip("a", dataset_name="opera"), refused_clip()])

    bill = make_bill(plan, config(), info(), 1, PLENTY)

    assert [("opera", 1, 0), ("choir", 0, 1)] == [(c.name, c.clips, c.refused) for c in bill.corpora]


def test_free_space_is_asked_of_the_nearest_existing_folder(tmp_path: Path) -> None:
    """The output folder of a dry run does not exist."""
    free = free_space(tmp_path / "not" / "there")

    assert free.num_bytes > 0
    assert free.inodes is None or free.inodes > 0
