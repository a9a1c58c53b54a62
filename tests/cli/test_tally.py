from latentprep.cli.tally import Tally
from latentprep.preprocess.events import Bottleneck, WorkerReady

from .builders import Clock, chunk_done, plan_ready


def tally_of(clock: Clock, *, done: float = 0.0) -> Tally:
    tally = Tally(clock)
    tally.add(plan_ready(audio_seconds=36_000, done_audio_seconds=done))
    tally.add(WorkerReady(0, "cpu", 1.0))
    return tally


def test_work_of_earlier_runs_is_done_but_not_fast():
    """A resumed run that counts old work as speed promises an end that does not come."""
    clock = Clock()
    tally = tally_of(clock, done=18_000)
    clock.time += 100
    tally.add(chunk_done(audio_seconds=6_000))

    assert 24_000 == tally.done_seconds
    assert 60 == tally.speed
    assert 200 == tally.eta
    assert "6.7 h of 10.0 h, 60.0 x real time, 0.10 rows/s, ETA 0:03:20" == tally.line()


def test_the_clock_of_the_speed_starts_with_the_first_worker():
    """Reading corpora and loading a VAE takes minutes in which nothing can be encoded."""
    clock = Clock()
    tally = Tally(clock)
    tally.add(plan_ready())
    clock.time += 1_000

    assert 0 == tally.elapsed
    assert tally.speed is None
    assert "0.0 s of 1.0 h, no chunk done yet in this run" == tally.line()


def test_skipped_clips_show_as_soon_as_there_are_any():
    clock = Clock()
    tally = tally_of(clock)
    clock.time += 1
    tally.add(chunk_done(num_skipped=3))

    assert tally.line().endswith(", 3 skipped")


def test_the_line_of_a_worker_says_what_it_did():
    clock = Clock()
    tally = tally_of(clock)
    clock.time += 2
    tally.add(chunk_done(audio_seconds=100))
    tally.add(Bottleneck(rank=0, limit="decode", facts="2 of 2 threads busy", advice="more cores"))
    tally.add(Bottleneck(rank=9, limit="write", facts="not ready yet", advice=""))
    tally.add(Bottleneck(limit="decode", facts="2 of 2 threads busy", advice="more cores"))

    assert "worker 0 cpu: 1 chunk, 50.0 x, limit: decode" == tally.worker_line(0)
    assert tally.line().endswith(", limit: decode: 2 of 2 threads busy; more cores")
