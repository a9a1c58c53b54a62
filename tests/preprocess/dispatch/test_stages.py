"""Sums over incarnations, ranks and time."""

from pathlib import Path

from latentprep.preprocess.dispatch.board import Board
from latentprep.preprocess.dispatch.stages import SUMMED, StageHistory, StageTotals, minus, plus, total
from latentprep.preprocess.events import StageSeconds


def test_a_worker_that_was_replaced_keeps_what_it_did(tmp_path: Path):
    """Else a run with deaths reports half its work."""
    totals = StageTotals()
    first, second = (Board.create(tmp_path / name, 1) for name in ("first", "second"))
    first.add("encode", 2.0)
    first.add("decoded_clips", 3)
    totals.keep(1, first)
    second.add("encode", 1.0)

    now = totals.with_board(1, second)

    assert (1, 3.0, 3) == (now.rank, now.encode, now.decoded_clips)
    assert 2.0 == totals.with_board(1, None).encode
    assert 0.0 == totals.with_board(2, None).encode


def test_sum_and_difference_are_inverse():
    """Of every counter; a forgotten one would stand still in each window."""
    one = StageSeconds(rank=0, threads=2, **dict.fromkeys(SUMMED, 3))
    two = StageSeconds(rank=0, threads=2, **dict.fromkeys(SUMMED, 4))

    assert two == minus(plus(one, two), one)


def test_all_ranks_together_have_all_threads():
    ranks = [StageSeconds(rank=rank, threads=3, span=2.0) for rank in range(4)]

    assert (12, 8.0) == (total(ranks).threads, total(ranks).span)
    assert StageSeconds(rank=0) == total([])


def test_the_window_is_the_last_half_minute():
    """What was slow an hour ago is not what to change now."""
    history = StageHistory()
    spans = [history.window(5.0 * i, [StageSeconds(rank=0, span=5.0 * i, encode=float(i))])[0].span for i in range(20)]

    assert [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0] == spans[:7]
    assert [30.0] * 13 == spans[7:]


def test_a_rank_that_started_later_has_a_shorter_window():
    history = StageHistory()
    history.window(0.0, [StageSeconds(rank=0, span=1.0)])

    early, late = history.window(5.0, [StageSeconds(rank=0, span=6.0), StageSeconds(rank=1, span=2.0)])

    assert (5.0, 2.0) == (early.span, late.span)
