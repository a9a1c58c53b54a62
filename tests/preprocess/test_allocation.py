"""What the variables of SLURM and torchrun say."""

import pytest

from latentprep.core.paths import Part
from latentprep.preprocess.allocation import Allocation, read_allocation
from latentprep.preprocess.dispatch.devices import Share

STEP = {
    "SLURM_JOB_ID": "17",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_NTASKS": "5",
    "SLURM_STEP_NUM_TASKS": "5",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
    "SLURM_NODEID": "1",
    "SLURM_LOCALID": "1",
    "SLURM_CPUS_ON_NODE": "8",
}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "a/b c",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "MASTER_PORT": "29500",
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
}


def allocation(environ: dict[str, str], num_cores: int = 8) -> Allocation:
    found = read_allocation(environ, num_cores)
    assert found is not None
    return found


def test_a_task_of_a_step_has_a_part_and_its_share_of_the_node():
    found = allocation(STEP)

    assert Allocation(part=Part(4, 5), share=Share(place=1, num_on_gpus=2, num_on_cores=2), run="slurm-17-0-0") == found


def test_the_last_node_may_have_fewer_tasks():
    found = allocation({**STEP, "SLURM_PROCID": "4", "SLURM_NODEID": "2", "SLURM_LOCALID": "0"})

    assert Share() == found.share


@pytest.mark.parametrize(
    "narrowing",
    [
        {"SLURM_GPUS_PER_TASK": "1"},
        {"SLURM_TRES_PER_TASK": "gres/gpu:1"},
        {"SLURM_GPU_BIND": "single:1"},
        {"CUDA_VISIBLE_DEVICES": "1", "SLURM_GPUS_ON_NODE": "2"},
    ],
)
def test_gpus_that_slurm_gave_to_each_task_are_not_divided_again(narrowing: dict[str, str]):
    """The second task of a node would be left without one."""
    assert (0, 1) == (
        allocation({**STEP, **narrowing}).share.place,
        allocation({**STEP, **narrowing}).share.num_on_gpus,
    )


def test_gpus_that_all_tasks_see_are_divided():
    found = allocation({**STEP, "CUDA_VISIBLE_DEVICES": "0,1,2,3", "SLURM_GPUS_ON_NODE": "4"})

    assert (1, 2) == (found.share.place, found.share.num_on_gpus)


def test_cores_are_divided_unless_the_mask_is_narrow_or_their_number_is_given():
    assert 1 == allocation(STEP, num_cores=4).share.num_on_cores
    assert 1 == allocation({**STEP, "SLURM_CPUS_PER_TASK": "4"}).share.num_on_cores


def test_a_requeued_job_is_another_start():
    """The sign of the first start must not let the second one's tasks begin before it is prepared."""
    assert "slurm-17-0-1" == allocation({**STEP, "SLURM_RESTART_COUNT": "1"}).run


@pytest.mark.parametrize("missing", ["SLURM_STEP_ID", "SLURM_PROCID"])
def test_without_a_step_a_job_is_one_task(missing: str):
    """A bare batch script has the other variables."""
    assert None is read_allocation({name: value for name, value in STEP.items() if name != missing}, 8)


@pytest.mark.parametrize(
    "environ",
    [{}, {**STEP, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, {**TORCHRUN, "WORLD_SIZE": "1", "RANK": "0"}],
)
def test_a_single_task_is_an_ordinary_run(environ: dict[str, str]):
    assert None is read_allocation(environ, 8)


def test_torchruns_variables_win_over_those_of_the_srun_around_it():
    found = allocation({**STEP, **TORCHRUN})

    assert (
        Allocation(part=Part(6, 8), share=Share(place=1, num_on_gpus=4, num_on_cores=4), run="torchrun-a_b_c-29500-2")
        == found
    )


def test_rank_alone_is_a_left_over():
    assert None is read_allocation({"RANK": "1", "WORLD_SIZE": "2"}, 8)
