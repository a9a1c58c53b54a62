"""What limits a run, by table: counters of ten seconds and two workers' worth of stages in, words out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.dispatch.bottleneck import find_bottleneck, judge
from latentprep.preprocess.dispatch.cores import Cores
from latentprep.preprocess.dispatch.stages import SUMMED
from latentprep.preprocess.dispatch.thread_share import ThreadShare
from latentprep.preprocess.events import StageSeconds

SLURM = ThreadShare(16, 16, Cores(16, "SLURM_CPUS_PER_TASK"))
QUOTA = ThreadShare(16, 16, Cores(16, "cgroup"))
MASK = ThreadShare(16, 16, Cores(16, "affinity"))
SET = ThreadShare(4, 4, Cores(16, "affinity"), configured=True)


def ten_seconds(**changes: float) -> StageSeconds:
    """16 decode threads, an encoder that is busy seven tenths."""
    values = {"span": 10.0, "thread_seconds": 160.0, "decode": 140.0, "decode_cpu": 130.0, "encode": 6.9, **changes}
    return StageSeconds(rank=3, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "done", "share"),
    [
        (
            "decode: 14 of 16 threads busy, encoder idle 31 %; give more cores: --cpus-per-task",
            ten_seconds(wait=3.1),
            SLURM,
        ),
        (
            "decode: 14 of 16 threads busy, encoder idle 31 %; give more cores: the cgroup's CPU quota",
            ten_seconds(wait=3.1),
            QUOTA,
        ),
        (
            "decode: 4 of 4 threads busy, encoder idle 31 %; more decode_threads: 16 cores are usable",
            ten_seconds(wait=3.1, thread_seconds=40.0, decode=39.0, decode_cpu=38.0),
            SET,
        ),
        (
            "disk: 15 of 16 threads busy, encoder idle 80 %, threads wait for reads 87 % of it; faster disk for the audio",
            ten_seconds(encode=2.0, wait=8.0, decode=150.0, decode_cpu=20.0, read=120.0),
            MASK,
        ),
        (
            "disk: 4 of 4 threads busy, encoder idle 80 %, threads wait for reads 50 % of it; "
            "faster disk for the audio, or more decode_threads",
            ten_seconds(encode=2.0, wait=8.0, thread_seconds=40.0, decode=40.0, decode_cpu=20.0, read=20.0),
            SET,
        ),
        (
            "cores: 15 of 16 threads busy, encoder idle 50 %, threads wait for a core or each other 40 % of it; "
            "give more cores: 16 are usable, or fewer workers or decode_threads",
            ten_seconds(encode=5.0, wait=5.0, decode=150.0, decode_cpu=90.0, read=10.0),
            MASK,
        ),
        (
            "prefetch: 5 of 16 threads busy, encoder idle 20 %; more prefetch_bytes",
            ten_seconds(wait=2.0, decode=50.0, decode_cpu=50.0, held_bytes=5.0),
            MASK,
        ),
        (
            "prefetch: 5 of 16 threads busy, encoder idle 20 %; nothing: batches wait for their longest clip",
            ten_seconds(wait=2.0, decode=50.0, decode_cpu=50.0),
            MASK,
        ),
        (
            "decode: 7 of 16 threads busy, encoder idle 31 %; give more cores: 16 are usable",
            ten_seconds(wait=3.1, decode=70.0, decode_cpu=69.0, no_task=5.0),
            MASK,
        ),
        (
            "write: encoder held up 40 %, writing takes 90 %; faster disk for output_dir",
            ten_seconds(encode=5.0, wait=0.5, blocked=4.0, rows=1.0, write=9.0),
            MASK,
        ),
        (
            "rows: encoder held up 40 %, writing takes 10 %, making rows 90 %; give more cores: --cpus-per-task",
            ten_seconds(encode=5.0, blocked=4.0, rows=9.0, write=1.0),
            SLURM,
        ),
        (
            "encode: encoder busy 97 %; nothing: the encoder is the limit",
            ten_seconds(encode=9.7, wait=0.3, decode=159.0),
            MASK,
        ),
        (
            "parent: workers without a chunk 60 %; larger chunks: limits.max_chunk_rows, limits.max_chunk_bytes of a new plan",
            ten_seconds(encode=3.0, wait=1.0, no_work=6.0),
            MASK,
        ),
    ],
)
def test_the_limit_is_named_with_figures_and_what_to_change(expected: str, done: StageSeconds, share: ThreadShare):
    verdict = find_bottleneck(done, share)

    assert verdict is not None
    assert expected == verdict.text


def test_a_run_whose_chunks_are_all_handed_out_is_at_its_end():
    """Idle workers are nobody's fault then."""
    verdict = find_bottleneck(ten_seconds(encode=3.0, no_work=6.0), MASK, work_left=False)

    assert verdict is not None
    assert ("end", "nothing: too little work is left for all workers") == (verdict.limit, verdict.advice)


def test_several_workers_are_judged_one_by_one_and_together():
    """Their spans add up, their wall time does not."""
    waiting, fed = ten_seconds(encode=5.0, wait=5.0), ten_seconds(encode=10.0, decode=20.0, decode_cpu=20.0)

    verdicts = list(judge([waiting, fed], SLURM, work_left=True))

    assert [(3, "decode"), (3, "encode"), (None, "prefetch")] == [(one.rank, one.limit) for one in verdicts]
    assert "16 of 32 threads busy, encoder idle 25 %" == verdicts[-1].facts


def test_before_anything_is_counted_nothing_is_said():
    assert find_bottleneck(StageSeconds(rank=0), MASK) is None
    assert find_bottleneck(StageSeconds(rank=0, span=5.0), MASK) is None


@given(st.dictionaries(st.sampled_from(SUMMED), st.floats(0, 1e6)), st.sampled_from([SLURM, MASK, SET]), st.booleans())
def test_any_counters_get_a_verdict_in_words(values: dict[str, float], share: ThreadShare, work_left: bool):
    """Counters are read while they are written: no combination may end a run with a division by zero."""
    done = StageSeconds(rank=0, **{"span": 1.0, "encode": 1.0, **values})  # type: ignore[arg-type]

    verdict = find_bottleneck(done, share, work_left=work_left)

    if verdict is not None:
        assert verdict.facts
        assert verdict.advice
    assert (verdict is None) == (done.span <= 0 or not (done.encode or done.wait or done.no_work))
