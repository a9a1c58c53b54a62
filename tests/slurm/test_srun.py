"""`srun prep svs` in an allocation: each task does a part, the first one plans and finalizes."""

import json
from pathlib import Path

import pytest

from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.config_file import resolved_yaml
from latentprep.preprocess.run import run

from ..preprocess.real_run import PREP
from ..preprocess.runs import bulk_config
from .cluster import SlurmCluster

CLIPS = 40


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    folder = tmp_path_factory.mktemp("srun")
    return bulk_config(folder, CLIPS, seconds=(0.5, 1.0), workers=1, limits={"max_chunk_rows": 4, "max_batch_clips": 2})


@pytest.fixture(scope="module")
def digest(corpus: RunConfig) -> str:
    return run(corpus).digest


@pytest.mark.slow
def test_two_nodes_do_one_run(slurm: SlurmCluster, corpus: RunConfig, digest: str, tmp_path: Path):
    """Without any option: rank, world and the part come from SLURM."""
    out = tmp_path / "out"
    (tmp_path / "prep.yaml").write_text(resolved_yaml(corpus.model_copy(update={"output_dir": out})))

    ended = slurm.command(
        "srun", "-N2", "--ntasks-per-node=1", "-l", PREP, "svs", "--config", tmp_path / "prep.yaml", "--json"
    )

    assert 0 == ended.returncode, ended.stderr
    of_task = {
        task: "\n".join(line[3:] for line in ended.stdout.splitlines() if line.startswith(f"{task}: ")) for task in "01"
    }
    assert digest in of_task["0"], ended.stdout
    assert 0 == json.loads(of_task["1"])["remaining"]
    assert {"data-r0", "data-r1000"} == {path.name.partition("-0")[0] for path in out.glob("data-*.arrow")}
    assert [] == list((out / ".prep").glob("lock-*"))


def test_tasks_of_one_node_share_its_devices(slurm: SlurmCluster):
    """Two tasks a node see both GPUs unless they are bound: each takes its own; with --gpus-per-task it has one."""
    script = "import os; from latentprep.preprocess.allocation import *; a = read_allocation(); "
    script += (
        "print(a.part.number, a.part.count, a.share.place, a.share.num_on_gpus, os.environ['CUDA_VISIBLE_DEVICES'])"
    )
    python = PREP.with_name("python")

    both = slurm.command("srun", "-N2", "--ntasks-per-node=2", "--gpus-per-node=2", python, "-c", script)
    bound = slurm.command("srun", "-N2", "--ntasks-per-node=2", "--gpus-per-task=1", python, "-c", script)

    assert ["1 4 0 2 0,1", "2 4 1 2 0,1", "3 4 0 2 0,1", "4 4 1 2 0,1"] == sorted(both.stdout.splitlines()), both.stderr
    shares = [line.split() for line in sorted(bound.stdout.splitlines())]
    assert [["0", "1"]] * 4 == [share[2:4] for share in shares], bound.stderr
    assert {"0", "1"} == {share[4] for share in shares[:2]}


def test_a_bare_batch_script_of_two_nodes_is_alone(slurm: SlurmCluster, tmp_path: Path):
    """It has SLURM_NTASKS=2, too, and nobody beside it."""
    script = tmp_path / "job.sh"
    script.write_text(
        f"#!/bin/bash\n{PREP.with_name('python')} -c 'from latentprep.preprocess.allocation import *; print(read_allocation())'\n"
        "echo ntasks $SLURM_NTASKS\n"
    )

    slurm.command("sbatch", "--wait", "-N2", "--ntasks-per-node=1", "-o", tmp_path / "log", script)

    assert "None\nntasks 2\n" == (tmp_path / "log").read_text()
