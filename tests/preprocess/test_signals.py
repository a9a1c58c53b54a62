"""Signals and kills of real runs: they end in time, with exit code 75, and the same command finishes what they left."""

import json
import os
import pty
import subprocess
import time
from collections import Counter
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGUSR1, SIGUSR2, Signals

import pytest

from latentprep.preprocess.config import Corpus, RunConfig
from latentprep.preprocess.config_file import resolved_yaml

from .hooks import decoded, environment
from .real_run import PREP, Ended, RealRun, finished, is_alive, read_events, wait_until
from .runs import bulk_config

CLIPS = 60
HUNG = "000030.wav"


def slow(value: object) -> object:
    """A variant that the quick tests leave out: two real runs take some ten seconds."""
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """60 short clips in chunks of at most 4, two workers."""
    folder = tmp_path_factory.mktemp("signals")
    return bulk_config(folder, CLIPS, seconds=(0.5, 1.0), limits={"max_chunk_rows": 4, "max_batch_clips": 2})


@pytest.fixture(scope="module")
def undisturbed(corpus: RunConfig) -> Ended:
    """The run that others are compared with."""
    ended = finished(corpus)
    assert 0 == ended.code, ended.err
    return ended


@pytest.fixture
def config(corpus: RunConfig, tmp_path: Path) -> RunConfig:
    """The same corpus into a fresh folder."""
    return corpus.model_copy(update={"output_dir": tmp_path / "out"})


def committed(run: RealRun, chunks: int):
    """For ``until``: so many chunks are done."""
    return lambda: len(run.events("ChunkDone")) >= chunks


class OnlyHungLeft:
    """For ``until``: a decoder hangs, and nothing has come for longer than a chunk takes.

    Before that, a signal may find the hanging clip in a chunk that was only prefetched, which a drain gives back.
    """

    def __init__(self, run: RealRun, hook_folder: Path):
        self._run, self._hook_folder = run, hook_folder
        self._done, self._since = -1, 0.0

    def __call__(self) -> bool:
        done = len(self._run.events("ChunkDone"))
        if done != self._done or HUNG not in decoded(self._hook_folder):
            self._done, self._since = done, time.monotonic()
        return time.monotonic() - self._since > 2.0


def assert_resumes(config: RunConfig, undisturbed: Ended) -> None:
    """The same command finishes, and what it makes is what an undisturbed run makes."""
    assert not (config.output_dir / "state.json").exists()
    again = finished(config)
    assert (0, undisturbed.digest) == (again.code, again.digest), again.err


@pytest.mark.parametrize("number", [SIGTERM, *(slow(number) for number in (SIGINT, SIGUSR1, SIGUSR2))])
def test_a_signal_drains_and_the_same_command_goes_on(
    number: Signals, config: RunConfig, undisturbed: Ended, tmp_path: Path
):
    """Preemption, a time limit, Ctrl-C: what is on the encoders is committed, and it says what it waits for."""
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.15)) as run:
        run.until(committed(run, 3))
        run.send(number)
        ended = run.end(timeout=50)

    assert 75 == ended.code, ended.err
    assert f"{number.name} received: stopping; waiting up to 55 s for " in ended.err
    assert "Traceback" not in ended.err
    assert [] == read_events(config.output_dir, "WorkerLost")
    assert 0 < json.loads(ended.out)["remaining"] < CLIPS
    assert_resumes(config, undisturbed)


@pytest.mark.parametrize("number", [SIGINT, slow(SIGUSR1)])
def test_a_signal_to_the_whole_group_is_one_drain(
    number: Signals, config: RunConfig, undisturbed: Ended, tmp_path: Path
):
    """Ctrl-C and scancel reach the workers and the helpers of multiprocessing, too, and may come twice."""
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.15)) as run:
        run.until(committed(run, 3))
        run.send_to_group(number)
        run.send(number)
        ended = run.end(timeout=50)

    assert 75 == ended.code, ended.err
    assert "resource_tracker" not in ended.err
    assert "Traceback" not in ended.err
    assert [] == read_events(config.output_dir, "WorkerLost")
    assert_resumes(config, undisturbed)


def test_a_second_signal_means_now(config: RunConfig, undisturbed: Ended, tmp_path: Path):
    """A decoder that hangs would be waited for for 55 s."""
    with RealRun(config, env=environment(tmp_path / "hook", {HUNG: "hang"}, seconds=0.1)) as run:
        run.until(OnlyHungLeft(run, tmp_path / "hook"))
        run.send(SIGTERM)
        time.sleep(2.1)
        assert run.running
        sent = time.monotonic()
        run.send(SIGTERM)
        ended = run.end(timeout=50)

    assert 75 == ended.code, ended.err
    assert time.monotonic() - sent < 50
    assert_resumes(config, undisturbed)


@pytest.mark.slow
def test_a_drain_has_an_end(config: RunConfig, undisturbed: Ended, tmp_path: Path):
    """After ``stop_s`` the workers that still hang are killed; the scheduler would kill all."""
    supervision = config.supervision.model_copy(update={"stop_s": 2.0})
    short = config.model_copy(update={"supervision": supervision})
    with RealRun(short, env=environment(tmp_path / "hook", {HUNG: "hang"}, seconds=0.1)) as run:
        run.until(OnlyHungLeft(run, tmp_path / "hook"))
        sent = time.monotonic()
        run.send(SIGTERM)
        ended = run.end(timeout=50)

    assert 75 == ended.code, ended.err
    assert 1.9 < time.monotonic() - sent < 50
    assert "1 workers are ended at once" in ended.err
    assert_resumes(short, undisturbed)


def test_workers_that_still_load_are_not_waited_for(config: RunConfig, undisturbed: Ended):
    """They have nothing to lose, and loading may take longer than a scheduler's patience."""
    with RealRun(config) as run:
        run.until(run.workers)
        sent = time.monotonic()
        run.send(SIGTERM)
        ended = run.end(timeout=50)

    assert 75 == ended.code, ended.err
    assert time.monotonic() - sent < 50
    assert [] == read_events(config.output_dir, "WorkerLost")
    assert_resumes(config, undisturbed)


@pytest.mark.parametrize("options", [(), slow(("--dry-run",))])
def test_a_signal_while_planning_leaves_nothing_broken(
    options: tuple[str, ...], config: RunConfig, undisturbed: Ended, tmp_path: Path
):
    """Reading and scanning take minutes on a slow disk; here there is much to read."""
    with RealRun(config.model_copy(update={"datasets": (much(config, tmp_path),)}), *options) as run:
        run.until(lambda: list((config.output_dir / ".prep").glob("planning-*")))
        run.send(SIGTERM)
        ended = run.end(timeout=50)

    assert 75 == ended.code, ended.err
    assert "SIGTERM received" in ended.err
    assert "Traceback" not in ended.err
    assert not config.output_dir.exists()
    assert_resumes(config, undisturbed)


def test_a_kill_while_planning_leaves_nothing_broken(config: RunConfig, undisturbed: Ended, tmp_path: Path):
    """What was spilled, gigabytes for a large corpus, goes when the next run begins."""
    with RealRun(config.model_copy(update={"datasets": (much(config, tmp_path),)})) as run:
        run.until(lambda: list((config.output_dir / ".prep").glob("planning-*")))
        run.send(SIGKILL)
        run.end()
    left = list((config.output_dir / ".prep").glob("planning-*"))

    assert_resumes(config, undisturbed)
    assert 1 == len(left)
    assert not left[0].exists()


def much(config: RunConfig, folder: Path) -> Corpus:
    """The corpus a thousand times, under other names; planning it takes some seconds."""
    [dataset] = config.datasets
    items = json.loads(dataset.json_path.read_text())  # type: ignore[union-attr]
    path = folder / "much.json"
    many = (item | {"item_name": f"{item['item_name']}-{copy}"} for copy in range(1000) for item in items)
    path.write_text(json.dumps(list(many)))
    return dataset.model_copy(update={"json_path": path})


def test_a_closed_terminal_costs_no_work(config: RunConfig, undisturbed: Ended, tmp_path: Path):
    """SIGHUP, and then EIO for every line that is written to the terminal: the run goes on to its end."""
    config_path = tmp_path / "prep.yaml"
    config_path.write_text(resolved_yaml(config))
    ours, theirs = pty.openpty()
    env = {**os.environ, **environment(tmp_path / "hook", seconds=0.15)}
    run = subprocess.Popen(
        [PREP, "svs", "--config", config_path], stdin=theirs, stdout=theirs, stderr=theirs, env=env,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    wait_until(lambda: len(read_events(config.output_dir, "ChunkDone")) >= 3 or run.poll() is not None)
    os.close(ours)
    os.killpg(run.pid, SIGHUP)
    run.wait(60)

    [event] = read_events(config.output_dir, "Finished")
    assert undisturbed.digest == event["summary"]["digest"]
    assert 0 == run.returncode


def test_no_worker_outlives_a_killed_parent(config: RunConfig, undisturbed: Ended, tmp_path: Path):
    """An orphan would hold a card's memory, and write beside the next run."""
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.15)) as run:
        run.until(committed(run, 3))
        workers = run.workers()
        run.send(SIGKILL)
        ended = run.end()
    wait_until(lambda: not any(map(is_alive, workers)), seconds=5)

    assert 2 == len(workers)
    assert -SIGKILL == ended.code
    assert_resumes(config, undisturbed)


@pytest.mark.slow
def test_workers_that_still_load_do_not_outlive_it_either(config: RunConfig, undisturbed: Ended):
    """They may be at their imports, before any code of ours runs."""
    with RealRun(config) as run:
        run.until(run.workers)
        workers = run.workers()
        run.send(SIGKILL)
        run.end()
    wait_until(lambda: not any(map(is_alive, workers)), seconds=15)

    assert_resumes(config, undisturbed)


def test_half_a_run_of_two_and_half_of_one_decode_hardly_more_than_a_whole_one(
    config: RunConfig, undisturbed: Ended, tmp_path: Path
):
    """Promise 2: at most the chunks in flight are done again, whatever the number of workers."""
    env = environment(tmp_path / "hook", seconds=0.1)
    with RealRun(config, env=env) as run:
        run.until(lambda: sum(e["num_rows"] for e in run.events("ChunkDone")) >= CLIPS / 2)
        run.send(SIGKILL)
        run.end()
    first = len(decoded(tmp_path / "hook"))
    one = config.model_copy(update={"workers": 1})

    again = finished(one, env=env)

    assert (0, undisturbed.digest) == (again.code, again.digest), again.err
    chunks = Counter(event["chunk_id"] for event in read_events(config.output_dir, "ChunkDone"))
    assert 1 == max(chunks.values())
    assert len(chunks) <= json.loads(undisturbed.out)["num_chunks"]
    in_flight = 2 * 3 * 4  # workers, chunks that each has begun or is committing, rows of a chunk
    assert first < CLIPS
    assert len(decoded(tmp_path / "hook")) <= CLIPS + in_flight


def test_a_second_run_on_one_folder_is_refused(config: RunConfig, tmp_path: Path):
    """It names who works there."""
    go = tmp_path / "go"
    go.write_text("wait")
    with RealRun(config, env=environment(tmp_path / "hook", until=(go, "now"))) as run:
        run.until(lambda: decoded(tmp_path / "hook"))
        second = finished(config)
        go.write_text("now")
        first = run.end()

    assert (1, 0) == (second.code, first.code)
    assert f"another run is working in {config.output_dir}: process {run.pid} on {os.uname().nodename}" in second.err
