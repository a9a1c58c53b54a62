from io import StringIO

import pytest

from latentprep.cli.progress import LINE_INTERVAL_S, BarProgress, LineProgress, announcement, progress
from latentprep.preprocess.events import (
    CorpusRead,
    Event,
    Notice,
    Reading,
    Scanning,
    ShardClosed,
    StageSeconds,
    WorkerLost,
    WorkerReady,
)

from .builders import Clock, chunk_done, plan_ready


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_the_stream_decides_between_bar_and_lines():
    """A bar in a log file is a megabyte of carriage returns."""
    assert isinstance(progress(Terminal()), BarProgress)
    assert isinstance(progress(StringIO()), LineProgress)


@pytest.mark.parametrize(
    ("expected", "event"),
    [
        ("read m4singer: 20,896 clips, 12 refused", CorpusRead("m4singer", 20896, 12)),
        ("plan a1b2c3d4e5f6: 1,000 clips in 40 chunks, 1.0 h of audio, 4 refused", plan_ready()),
        ("worker 2 ready on cuda:2 after 12.1 s", WorkerReady(2, "cuda:2", 12.1)),
        ("worker 1 lost: killed by signal 11; it was decoding a, b", WorkerLost(1, "killed by signal 11", ("a", "b"))),
        ("warning: slow disk", Notice("warning", "slow disk")),
        ("hello", Notice("info", "hello")),
        (None, ShardClosed(0, "data-r0-00000.arrow", 10, 1000)),
        (None, chunk_done()),
    ],
)
def test_events_that_matter_to_people_are_announced(expected: str | None, event: Event):
    assert expected == announcement(event)


def test_a_resumed_plan_says_where_it_goes_on():
    text = announcement(plan_ready(resumed=True, done_chunks=10, done_audio_seconds=900.0))

    assert text is not None
    assert text.endswith("; goes on after 10 chunks (15.0 min)")


@pytest.mark.parametrize(
    ("expected", "done"), [("planned before, nothing encoded yet", 0), ("all of it done before", 40)]
)
def test_a_resumed_plan_of_which_nothing_or_all_is_done_says_so(expected: str, done: int):
    """A run after its dry run goes on after nothing."""
    text = announcement(plan_ready(resumed=True, done_chunks=done))

    assert text is not None
    assert text.endswith(f"; {expected}")


def test_without_a_terminal_there_is_one_line_in_thirty_seconds():
    """A log must show that the run lives, and stay short: one line a chunk would be thousands a day."""
    clock, stream = Clock(), StringIO()
    with LineProgress(stream, now=clock) as sink:
        sink(plan_ready(audio_seconds=6_000))
        sink(WorkerReady(0, "cpu", 0.5))
        for _ in range(12):
            clock.time += 10
            sink(chunk_done(audio_seconds=100))
            sink(StageSeconds(rank=0, encode=1.0))

    lines = stream.getvalue().splitlines()
    assert "prep: worker 0 ready on cpu after 0.5 s" == lines[1]
    assert 2 + 120 / LINE_INTERVAL_S == len(lines), "two announcements, one line in 30 s, the last state once"
    assert "prep: 5.0 min of 1.7 h, 10.0 x real time, 1.00 rows/s, ETA 0:09:30" == lines[2].partition(", limit")[0]
    assert "prep: 20.0 min of 1.7 h" in lines[-1]


def test_the_last_state_is_written_whenever_the_run_ends():
    clock, stream = Clock(), StringIO()
    with LineProgress(stream, now=clock) as sink:
        sink(plan_ready())
        sink(WorkerReady(0, "cpu", 0.5))
        clock.time += 10
        sink(chunk_done(audio_seconds=3_600))

    assert stream.getvalue().endswith("prep: 1.0 h of 1.0 h, 360 x real time, 1.00 rows/s, ETA 0:00:00\n")


def test_before_the_first_chunk_no_rate_is_shown():
    """A first line of dashes after a long scan says nothing; a slow encoder's first half minute has one fact."""
    clock, stream = Clock(), StringIO()
    sink = LineProgress(stream, now=clock)
    clock.time += LINE_INTERVAL_S
    sink(plan_ready())
    sink(StageSeconds(rank=0))
    assert 1 == len(stream.getvalue().splitlines())

    clock.time += LINE_INTERVAL_S
    sink(StageSeconds(rank=0, encode=1.0))
    assert "prep: 0.0 s of 1.0 h, no chunk done yet in this run" == stream.getvalue().splitlines()[-1]


def test_a_long_scan_reports_how_far_it_is():
    clock, stream = Clock(), StringIO()
    sink = LineProgress(stream, now=clock)
    sink(Scanning(1, 100))
    clock.time += LINE_INTERVAL_S
    sink(Scanning(60, 100))

    assert "prep: scanned 60 of 100 audio files\n" == stream.getvalue()


def test_the_bar_starts_where_the_earlier_run_ended():
    """Half of the work done before must not show as an empty bar, nor as speed."""
    clock, stream = Clock(), Terminal()
    with BarProgress(stream, now=clock) as sink:
        sink(Reading("m4singer"))
        sink(Scanning(5, 10))
        sink(plan_ready(audio_seconds=3_600, done_audio_seconds=1_800, resumed=True))
        sink(WorkerReady(0, "cuda:0 H200", 9.0))
        clock.time += 10
        sink(chunk_done(audio_seconds=900))
        sink(Notice("warning", "slow disk"))

    shown = stream.getvalue()
    assert "reading m4singer" in shown
    assert "scanned 5 of 10 audio files" in shown
    assert " 50 %|" in shown
    assert " 75 %|" in shown
    assert "45.0 min of 1.0 h, 90.0 x real time, 1.00 rows/s, ETA 0:00:10" in shown
    assert "worker 0 cuda:0 H200: 1 chunk, 90.0 x" in shown
    assert "warning: slow disk" in shown
