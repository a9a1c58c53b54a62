"""Parts of one plan, done by several processes: whatever happens to them, the rows are those of a single run."""

import shutil
from pathlib import Path
from signal import SIGKILL, SIGUSR1

import datasets
import pytest

from latentprep.core.errors import OutputError, Stopped
from latentprep.core.paths import OutputPaths, Part
from latentprep.preprocess import events
from latentprep.preprocess.cluster_run import finalize_parts, prepare
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.lock import part_lock
from latentprep.preprocess.part_run import run_part
from latentprep.preprocess.run import ignore, run

from .hooks import environment
from .real_run import RealRun
from .runs import bulk_config

CLIPS = 60


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """60 short clips in about 32 chunks."""
    folder = tmp_path_factory.mktemp("parts")
    return bulk_config(folder, CLIPS, seconds=(0.5, 1.0), workers=1, limits={"max_chunk_rows": 4, "max_batch_clips": 2})


@pytest.fixture(scope="module")
def digest(corpus: RunConfig) -> str:
    """Of a single run."""
    return run(corpus).digest


@pytest.fixture
def config(corpus: RunConfig, tmp_path: Path) -> RunConfig:
    """The same corpus into a fresh folder, with a plan."""
    config = corpus.model_copy(update={"output_dir": tmp_path / "out"})
    prepare(config, ignore)
    return config


def assert_whole(config: RunConfig, summary: events.RunSummary, digest: str) -> None:
    """Nothing lost, nothing twice, and it opens."""
    rows = datasets.load_from_disk(str(config.output_dir))

    assert (digest, CLIPS, 0) == (summary.digest, summary.written, summary.remaining)
    assert CLIPS == len(set(rows["item_name"])) == len(rows)


def test_parts_one_after_another_make_what_a_single_run_makes(config: RunConfig, digest: str):
    """And none of them writes metadata."""
    ended = [run_part(config, Part(number, 3), ignore) for number in (2, 3, 1)]
    assert not (config.output_dir / "state.json").exists()
    assert CLIPS == sum(part.written for part in ended)
    assert [0, 0, 0] == [part.remaining for part in ended]

    assert_whole(config, finalize_parts(config, ignore), digest)


def test_parts_at_the_same_time_make_what_a_single_run_makes(config: RunConfig, digest: str, tmp_path: Path):
    """Each in a process of its own, as on three nodes; ranks, journals and shards are its own."""
    with (
        RealRun(config, "--part", "1/3") as one,
        RealRun(config, "--part", "2/3") as two,
        RealRun(config, "--part", "3/3") as three,
    ):
        assert [0, 0, 0] == [part.end().code for part in (one, two, three)]

    shards = {path.name.partition("-0")[0] for path in config.output_dir.glob("data-*.arrow")}
    assert {"data-r0", "data-r1000", "data-r2000"} == shards
    assert_whole(config, finalize_parts(config, ignore), digest)


def test_a_part_that_is_killed_goes_on_also_in_another_division(config: RunConfig, digest: str, tmp_path: Path):
    """Its open shard counts as done for others, and is finished by whoever holds the lock of the whole."""
    with RealRun(config, "--part", "1/2", env=environment(tmp_path / "hook", seconds=0.2)) as part:
        part.until(lambda: len(part.events("ChunkDone")) >= 3)
        part.send(SIGKILL)
        part.end()
    assert [] != list((config.output_dir / ".prep/open").iterdir())

    with pytest.raises(Stopped) as caught:
        finalize_parts(config, ignore, go_on="prep slurm svs")
    assert "chunks are not done" in caught.value.what
    assert "prep slurm svs" in caught.value.fix

    ended = [run_part(config, Part(number, 3), ignore) for number in (1, 2, 3)]
    assert CLIPS == sum(part.written for part in ended)
    assert_whole(config, finalize_parts(config, ignore), digest)


@pytest.mark.slow
def test_a_part_takes_up_its_own_open_shards_alone(config: RunConfig, digest: str, tmp_path: Path):
    """What another part has open may be open in a living process."""
    for number, chunks in ((1, 2), (2, 2)):
        with RealRun(config, "--part", f"{number}/2", env=environment(tmp_path / f"hook{number}", seconds=0.2)) as part:
            path = OutputPaths(config.output_dir).events(Part(number, 2))
            part.until(lambda path=path, chunks=chunks: path.exists() and path.read_text().count("ChunkDone") >= chunks)
            part.send(SIGKILL)
            part.end()
    others = {path.name for path in (config.output_dir / ".prep/open").glob("data-r1000-*")}

    ended = run_part(config, Part(1, 2), ignore)

    assert 0 == ended.num_left
    assert others == {path.name for path in (config.output_dir / ".prep/open").iterdir()} != set()
    assert 0 == run_part(config, Part(2, 2), ignore).num_left
    assert_whole(config, finalize_parts(config, ignore), digest)


def test_a_part_that_is_drained_says_what_is_left(config: RunConfig, tmp_path: Path):
    """Exit code 75, and its numbers add up."""
    with RealRun(config, "--part", "1/1", env=environment(tmp_path / "hook", seconds=0.2)) as part:
        part.until(lambda: len(part.events("ChunkDone")) >= 2)
        part.send(SIGUSR1)
        ended = part.end()

    (event,) = part.events("PartEnded")
    assert 75 == ended.code, ended.err
    assert event["planned"] == event["written"] + event["skipped"] + event["remaining"]
    assert event["remaining"] > 0
    assert not (config.output_dir / "state.json").exists()


@pytest.mark.slow
def test_what_a_node_back_from_the_dead_did_too_is_taken_once(config: RunConfig, digest: str, tmp_path: Path):
    """Finalize decides by chunk id: here a third of all chunks lies in the shards of two divisions."""
    other = config.model_copy(update={"output_dir": tmp_path / "other"})
    shutil.copytree(config.output_dir, other.output_dir)
    run_part(other, Part(3, 3), ignore)
    for number in (1, 2):
        run_part(config, Part(number, 2), ignore)
    for path in other.output_dir.glob("data-r2000-*"):
        shutil.copy(path, config.output_dir)
    for path in (other.output_dir / ".prep/journal").iterdir():
        shutil.copy(path, config.output_dir / ".prep/journal")

    assert_whole(config, finalize_parts(config, ignore), digest)


def test_a_finished_dataset_keeps_its_story(config: RunConfig):
    """Devices and times of the parts are in provenance.json, and finalizing again changes nothing."""
    run_part(config, Part(1, 1), ignore)
    first = finalize_parts(config, ignore)
    before = (config.output_dir / "provenance.json").read_text()

    again = finalize_parts(config, ignore)

    assert first.wall_seconds > 0
    assert [0] == [stage.rank for stage in first.stages]
    assert first.digest == again.digest
    assert (
        before.partition('"timings"')[2]
        == (config.output_dir / "provenance.json").read_text().partition('"timings"')[2]
    )


def test_there_must_be_a_plan(corpus: RunConfig, tmp_path: Path):
    """A part that planned by itself would read all corpora K times. No folder is left behind."""
    config = corpus.model_copy(update={"output_dir": tmp_path / "out"})

    with pytest.raises(OutputError) as caught:
        run_part(config, Part(1, 2), ignore)

    assert "--plan-only" in caught.value.fix
    assert not (tmp_path / "out").exists()


def test_other_settings_than_the_plans_are_refused(config: RunConfig):
    other = config.model_copy(update={"max_samples": 7})

    with pytest.raises(OutputError, match="max_samples"):
        run_part(other, Part(1, 2), ignore)


def test_nobody_finalizes_while_a_part_is_at_work(config: RunConfig):
    """It would finish shards under the part's hands."""
    with part_lock(OutputPaths(config.output_dir), Part(2, 3)):
        with pytest.raises(OutputError, match="a run of part 2 of 3 is working"):
            finalize_parts(config, ignore)
        with pytest.raises(OutputError, match="a run of part 2 of 3 is working"):
            run(config)
        with pytest.raises(OutputError, match="a run of part 2 of 3 is working"):
            run_part(config, Part(2, 3), ignore)
