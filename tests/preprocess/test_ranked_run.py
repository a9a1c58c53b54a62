"""Tasks that were started together wait for each other, never for ever."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths, Part
from latentprep.preprocess.allocation import Allocation
from latentprep.preprocess.cluster_run import prepare
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.config_file import resolved_yaml
from latentprep.preprocess.dispatch.devices import Share
from latentprep.preprocess.lock_holder import myself
from latentprep.preprocess.part_run import run_part
from latentprep.preprocess.ranked_run import START_S, VISIBLE_S, wait_for_others, wait_until_ready
from latentprep.preprocess.run import ignore, run

from .real_run import PREP
from .runs import bulk_config

SECOND = Allocation(part=Part(2, 2), share=Share(), run="slurm-1-0-0")


class Clock:
    """Time that passes while somebody waits; ``deeds`` happen at their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self.deeds: dict[float, Callable[[], object]] = {}

    def at(self, when: float, deed: Callable[[], object]) -> "Clock":
        self.deeds[when] = deed
        return self

    def wait(self, seconds: float) -> None:
        self.now += seconds
        for when in [when for when in self.deeds if when <= self.now]:
            self.deeds.pop(when)()


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """A plan of some chunks, none done."""
    config = bulk_config(
        tmp_path_factory.mktemp("ranked"), 12, seconds=(0.5, 1.0), workers=1, limits={"max_chunk_rows": 2}
    )
    prepare(config, ignore)
    return config


def lock_of_elsewhere(paths: OutputPaths, part: Part, beat: int = 0) -> None:
    holder = msgspec.structs.replace(myself(), host="elsewhere", token="t", beat=beat)
    paths.lock(part).write_bytes(msgspec.json.encode(holder))


def test_a_task_begins_when_the_first_one_says_so(tmp_path: Path):
    paths, clock = OutputPaths(tmp_path), Clock()
    paths.work.mkdir()
    clock.at(100, lambda: paths.ready(SECOND.run).write_text("ready"))

    wait_until_ready(paths, SECOND, wait=clock.wait, now=lambda: clock.now)

    assert 100 == clock.now


def test_a_task_waits_as_long_as_the_first_one_plans(tmp_path: Path):
    """Ten million clips take a while; its lock beats."""
    paths, clock = OutputPaths(tmp_path), Clock()
    paths.work.mkdir()
    for beat in range(40):
        clock.at(20.0 * beat, lambda beat=beat: lock_of_elsewhere(paths, Part(1, 1), beat))
    clock.at(800, lambda: paths.ready(SECOND.run).write_text("ready"))

    wait_until_ready(paths, SECOND, wait=clock.wait, now=lambda: clock.now)

    assert 800 == clock.now


def test_a_first_task_that_is_never_seen_is_not_waited_for(tmp_path: Path):
    """The folder of an earlier start's sign says nothing."""
    paths, clock = OutputPaths(tmp_path), Clock()
    paths.work.mkdir()
    paths.ready("slurm-1-0-7").write_text("ready")

    with pytest.raises(OutputError, match="has not planned"):
        wait_until_ready(paths, SECOND, wait=clock.wait, now=lambda: clock.now)

    assert START_S + 1 == clock.now


def test_a_first_task_that_failed_says_so(tmp_path: Path):
    paths = OutputPaths(tmp_path)
    paths.work.mkdir()
    paths.ready(SECOND.run).write_text("failed: corpora: gone")

    with pytest.raises(OutputError, match="corpora: gone"):
        wait_until_ready(paths, SECOND)


def waited_for_others(config: RunConfig, clock: Clock) -> float:
    """The plan's second part is another task's."""
    wait_for_others(OutputPaths(config.output_dir), Part(1, 2), wait=clock.wait, now=lambda: clock.now)
    return clock.now


def test_a_task_that_never_comes_is_waited_for_until_it_is_too_late(planned: RunConfig):
    """And a little for what a network file system does not show yet."""
    assert START_S + VISIBLE_S == waited_for_others(planned, Clock())


def test_a_task_that_was_there_and_is_gone_is_not_waited_for(planned: RunConfig):
    paths = OutputPaths(planned.output_dir)
    clock = Clock().at(5, lambda: lock_of_elsewhere(paths, Part(2, 2)))
    clock.at(10, paths.lock(Part(2, 2)).unlink)

    assert 10 + VISIBLE_S == waited_for_others(planned, clock)


def test_a_task_whose_node_died_is_waited_for_until_its_lock_is_stale(planned: RunConfig):
    paths = OutputPaths(planned.output_dir)
    lock_of_elsewhere(paths, Part(2, 2))

    assert 120 + VISIBLE_S == waited_for_others(planned, Clock())
    paths.lock(Part(2, 2)).unlink()


def test_nothing_is_waited_for_when_all_is_done(planned: RunConfig):
    run_part(planned, Part(2, 2), ignore)

    assert 0 == waited_for_others(planned, Clock())


@pytest.mark.slow
def test_torchrun_starts_one_run(planned: RunConfig, tmp_path: Path):
    """Its variables are believed like SLURM's."""
    config = planned.model_copy(update={"output_dir": tmp_path / "out"})
    (tmp_path / "prep.yaml").write_text(resolved_yaml(config))
    expected = run(planned.model_copy(update={"output_dir": tmp_path / "single"})).digest

    command = [
        PREP.with_name("python"),
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "--no-python",
    ]
    ended = subprocess.run(
        [*command, PREP, "svs", "--config", tmp_path / "prep.yaml"],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ},
        check=False,
    )

    assert 0 == ended.returncode, ended.stderr
    assert expected in ended.stdout
    assert {"data-r0", "data-r1000"} == {
        path.name.partition("-0")[0] for path in config.output_dir.glob("data-*.arrow")
    }
