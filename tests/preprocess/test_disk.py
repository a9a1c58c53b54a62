"""Disks that fill up, turn read-only, break or vanish under real runs: exit code 75, and the same command goes on."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM

import pytest

from latentprep import run
from latentprep.core.errors import DiskError
from latentprep.preprocess import events
from latentprep.preprocess.config import RunConfig

from .hooks import environment
from .real_run import Ended, RealRun, finished, read_events
from .runs import bulk_config
from .small_disk import LoopDisk, SmallDisk, loop_disk, mount, small_tmpfs, unmount

CLIPS = 40
MIB = 1 << 20


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """40 short clips, about 14 kB a row, in chunks of at most 4."""
    folder = tmp_path_factory.mktemp("disk")
    limits = {"max_chunk_rows": 4, "max_batch_clips": 2}
    return bulk_config(folder, CLIPS, seconds=(0.5, 1.0), workers=1, limits=limits)


@pytest.fixture(scope="module")
def undisturbed(corpus: RunConfig) -> Ended:
    """The run that others are compared with."""
    ended = finished(corpus)
    assert 0 == ended.code, ended.err
    return ended


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_tmpfs(tmp_path / "disk", 4 * MIB) as disk:
        yield disk


@pytest.fixture
def breakable(tmp_path: Path) -> Iterator[LoopDisk]:
    with loop_disk(tmp_path / "loop") as disk:
        yield disk


def onto(disk: SmallDisk, corpus: RunConfig) -> RunConfig:
    return corpus.model_copy(update={"output_dir": disk.root / "out"})


def half_done(started: RealRun):
    """For ``until``."""
    return lambda: len(started.events("ChunkDone")) >= 4


def assert_stopped(ended: Ended, *texts: str) -> None:
    """Exit code 75, the texts on the terminal, and no traceback."""
    assert 75 == ended.code, ended.err
    for text in texts:
        assert text in ended.err
    assert "Traceback" not in ended.err


def assert_finishes(config: RunConfig, undisturbed: Ended) -> None:
    """The same command finishes, and what it makes is what an undisturbed run makes."""
    again = finished(config)
    assert (0, undisturbed.digest) == (again.code, again.digest), again.err
    assert (config.output_dir / "state.json").exists()


def test_a_disk_that_fills_up_under_the_shards(corpus: RunConfig, undisturbed: Ended, disk: SmallDisk, tmp_path: Path):
    """It says how much is free and how much is needed; trying again before there is room harms nothing."""
    config = onto(disk, corpus)
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.1)) as started:
        started.until(half_done(started))
        disk.fill()
        ended = started.end()
    too_early = finished(config)
    disk.clear()

    assert_stopped(ended, "no space left: ", "free there: 0 bytes; to be written: ", " chunks left need about ")
    assert [] == read_events(config.output_dir, "WorkerLost")
    assert_stopped(too_early, "no space left: ")
    assert not (config.output_dir / "state.json").exists()
    assert_finishes(config, undisturbed)


@pytest.mark.slow
def test_a_disk_that_is_full_when_the_journal_is_begun(corpus: RunConfig, undisturbed: Ended, disk: SmallDisk):
    """While the workers load."""
    config = onto(disk, corpus)
    with RealRun(config) as started:
        started.until(started.workers)
        disk.fill()
        ended = started.end()
    disk.clear()

    assert_stopped(ended, "no space left: ", "/.prep/journal/r0-")
    assert_finishes(config, undisturbed)


@pytest.mark.parametrize("moment", [events.ShardClosed, events.WorkerReady])
def test_a_disk_that_fills_up_at_the_very_end(
    moment: type[events.Event], corpus: RunConfig, undisturbed: Ended, disk: SmallDisk
):
    """Under the metadata, and under the end of the shard: all rows are there, and are not made again."""
    config = onto(disk, corpus)
    chunks = json.loads(undisturbed.out)["num_chunks"]
    done = 0

    def fill(event: events.Event) -> None:
        nonlocal done
        done += isinstance(event, events.ChunkDone)
        if isinstance(event, events.ShardClosed) or (moment is events.WorkerReady and done == chunks):
            disk.fill()

    with pytest.raises(DiskError, match="no space left"):
        run(config, fill)
    disk.clear()
    again = run(config)

    assert (undisturbed.digest, CLIPS) == (again.digest, again.written)
    assert 0.0 == again.encoded_seconds


@pytest.mark.parametrize(
    "leave", [4 * 4096, *(pytest.param(leave, marks=pytest.mark.slow) for leave in (0, 12 * 4096))]
)
def test_a_disk_without_room_for_the_plan(leave: int, corpus: RunConfig, undisturbed: Ended, disk: SmallDisk):
    """Or for the lock, or for the clips on their way into the plan; no half of one is left."""
    config = onto(disk, corpus)
    disk.fill(leave)

    ended = finished(config)

    assert_stopped(ended, "no space left: ", "free there: ")
    assert not list(disk.root.glob("out/.prep/*plan*"))
    disk.clear()
    assert_finishes(config, undisturbed)


@pytest.mark.slow
def test_a_disk_that_fills_up_while_a_run_is_stopping(
    corpus: RunConfig, undisturbed: Ended, disk: SmallDisk, tmp_path: Path
):
    """Two reasons to stop at once."""
    config = onto(disk, corpus)
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.2)) as started:
        started.until(half_done(started))
        started.send(SIGTERM)
        disk.fill()
        ended = started.end()
    disk.clear()

    assert_stopped(ended, "SIGTERM received: stopping")
    assert_finishes(config, undisturbed)


@pytest.mark.slow
def test_a_disk_that_turns_read_only(corpus: RunConfig, undisturbed: Ended, breakable: LoopDisk, tmp_path: Path):
    """As ext4 does when it meets damage; and again at the next start, before anything is done."""
    config = onto(breakable, corpus)
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.1)) as started:
        started.until(half_done(started))
        breakable.fail_to_read_only()
        ended = started.end()
    too_early = finished(config)
    breakable.unmount()
    breakable.mount()

    assert_stopped(ended, "the file system is read-only: ")
    assert_stopped(too_early, "the file system is read-only: ")
    assert_finishes(config, undisturbed)


@pytest.mark.slow
def test_a_disk_that_is_unplugged(corpus: RunConfig, undisturbed: Ended, breakable: LoopDisk, tmp_path: Path):
    """EIO for everything, from the plan to the journal."""
    config = onto(breakable, corpus)
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.1)) as started:
        started.until(half_done(started))
        breakable.unplug()
        ended = started.end()
    breakable.unmount()
    breakable.mount()

    assert_stopped(ended)
    assert "I/O error" in ended.err or "can't be reached any more" in ended.err
    assert_finishes(config, undisturbed)


@pytest.mark.slow
def test_a_mount_that_vanishes(corpus: RunConfig, undisturbed: Ended, breakable: LoopDisk, tmp_path: Path):
    """The folder below it must not be taken for the dataset."""
    config = onto(breakable, corpus)
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.1)) as started:
        started.until(half_done(started))
        breakable.unmount()
        ended = started.end()
    left_below = list(breakable.root.iterdir())
    breakable.mount()

    assert_stopped(ended, "can't be reached any more")
    assert [] == left_below
    assert_finishes(config, undisturbed)


def test_a_corpus_that_vanishes_skips_no_clip(corpus: RunConfig, tmp_path: Path):
    """Its clips are not at fault: skipped ones would never be tried again."""
    [dataset] = corpus.datasets
    root = tmp_path / "mounted"
    root.mkdir()
    mounted = dataset.model_copy(update={"audio_root": root})
    config = corpus.model_copy(update={"output_dir": tmp_path / "out", "datasets": (mounted,)})
    source = str(dataset.audio_root)  # type: ignore[union-attr]
    mount("--bind", source, str(root))
    try:
        with RealRun(config, env=environment(tmp_path / "hook", seconds=0.1)) as started:
            started.until(half_done(started))
            unmount(root)
            ended = started.end()
        mount("--bind", source, str(root))
        again = finished(config)
    finally:
        unmount(root)

    assert_stopped(ended, f"the audio folder {root} is empty", "are not skipped")
    assert (0, CLIPS, {}) == (again.code, *(json.loads(again.out)[key] for key in ("written", "skipped")))


def test_one_missing_file_is_a_fault_of_its_clip(corpus: RunConfig, tmp_path: Path):
    """Its folder is still there."""
    [dataset] = corpus.datasets
    root = tmp_path / "audio"
    os.system(f"cp -r {dataset.audio_root} {root}")  # type: ignore[union-attr]
    there = dataset.model_copy(update={"audio_root": root})
    config = corpus.model_copy(update={"output_dir": tmp_path / "out", "datasets": (there,)})
    with RealRun(config, env=environment(tmp_path / "hook", seconds=0.1)) as started:
        started.until(started.workers)
        next(iter(sorted(root.rglob("*.wav")))).unlink()
        ended = started.end()

    assert (0, {"missing_audio": 1}) == (ended.code, json.loads(ended.out)["skipped"]), ended.err
