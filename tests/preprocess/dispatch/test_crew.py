"""Worker processes: how they start, are stopped, watched and got rid of."""

import multiprocessing
import os
import resource
import shutil
import signal
import time
from collections.abc import Iterator

import pytest

from latentprep.core.errors import WorkerError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.dispatch import handle
from latentprep.preprocess.dispatch.cores import Cores
from latentprep.preprocess.dispatch.crew import Crew
from latentprep.preprocess.dispatch.death import examine
from latentprep.preprocess.dispatch.devices import choose_devices
from latentprep.preprocess.dispatch.handle import WorkerHandle
from latentprep.preprocess.dispatch.messages import Ready
from latentprep.preprocess.dispatch.orders import FleetOrders
from latentprep.preprocess.dispatch.thread_share import share_threads
from latentprep.preprocess.dispatch.watchdog import Verdict
from latentprep.preprocess.encode.registry import describe
from latentprep.preprocess.run import plan_only

from ..real_run import is_alive, wait_until
from ..runs import bulk_config


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> FleetOrders:
    """Of a planned run of 12 clips."""
    config: RunConfig = bulk_config(tmp_path_factory.mktemp("crew"), 12, seconds=(0.5, 1.0), workers=1)
    plan_only(config)
    return FleetOrders(
        config=config,
        info=describe(config.encoder, "cpu"),
        devices=choose_devices(config),
        paths=OutputPaths(config.output_dir),
        threads=share_threads(2, 1, "cpu", Cores(2, "affinity")),
    )


@pytest.fixture
def crew(orders: FleetOrders) -> Iterator[Crew]:
    with Crew(orders) as crew:
        yield crew


def ready_worker(crew: Crew) -> WorkerHandle:
    """Rank 0, loaded and idle."""
    crew.spawn(0)
    wait_until(lambda: any(isinstance(message, Ready) for message in crew[0].messages()))
    return crew[0]


@pytest.mark.timeout(60)
def test_stacks_on_demand_name_what_every_thread_is_at(crew: Crew):
    """Of a worker that lives: what to send to whoever wrote the driver that hangs."""
    worker = ready_worker(crew)
    worker.dump_stacks()
    [stacks] = worker.evidence()

    assert is_alive(worker.pid)
    assert "write_stage.py" in stacks.read_text()
    assert f"it hangs; see {stacks}" == examine(worker, None, Verdict("it hangs")).cause
    stacks.unlink()


@pytest.mark.timeout(60)
def test_a_process_that_sigkill_does_not_end_is_left_behind(orders: FleetOrders, monkeypatch: pytest.MonkeyPatch):
    """It hangs in the kernel (a dead mount); the run, and its exit, must not hang with it."""
    monkeypatch.setattr(handle, "JOIN_S", 0.5)
    with Crew(orders) as crew:
        worker = ready_worker(crew)
        os.kill(worker.pid, signal.SIGSTOP)
        monkeypatch.setattr(worker, "_signal", lambda number: None)  # the kernel takes the signal and does nothing
        worker.kill()
        assert not worker.is_unkillable
        wait_until(lambda: worker.is_unkillable)
        began = time.monotonic()
    closed_in = time.monotonic() - began

    assert is_alive(worker.pid)
    assert closed_in < 5
    assert [] == multiprocessing.active_children()  # else this process would wait for it at its own exit
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)


@pytest.mark.timeout(60)
def test_a_worker_whose_parent_lets_go_of_it_ends(crew: Crew):
    """The lifeline's end, where the kernel's signal does not reach."""
    worker = ready_worker(crew)
    worker._lifeline.close()

    wait_until(lambda: worker.exit_code is not None)

    assert 1 == worker.exit_code


def test_a_machine_without_open_files_for_a_worker_is_named(crew: Crew):
    """An error with words, not a traceback from multiprocessing."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(WorkerError, match="Too many open files"):
            crew.spawn(0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.timeout(60)
def test_a_folder_of_boards_that_a_cleaner_removed_is_made_again(crew: Crew):
    """A run of weeks outlives what lies in /tmp."""
    shutil.rmtree(crew._boards)

    assert ready_worker(crew).exit_code is None
