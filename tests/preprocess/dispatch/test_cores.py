"""How many cores a run may use."""

import os
from pathlib import Path

import pytest

from latentprep.preprocess.dispatch.cores import Cores, usable_cores

AFFINITY = len(os.sched_getaffinity(0))


def test_affinity_counts_where_nothing_else_limits(tmp_path: Path):
    """Not os.cpu_count(): a scheduler's mask is what we may use."""
    assert Cores(AFFINITY, "affinity") == usable_cores({}, tmp_path)


def test_the_least_limit_wins(tmp_path: Path):
    """A container with a quota of one core on a machine with many must not start many threads."""
    (tmp_path / "cpu.max").write_text("50000 100000\n")

    assert Cores(1, "cgroup") == usable_cores({"SLURM_CPUS_PER_TASK": "64"}, tmp_path)


def test_a_cgroup_without_quota_does_not_limit(tmp_path: Path):
    """``max`` means none."""
    (tmp_path / "cpu.max").write_text("max 100000\n")

    assert Cores(AFFINITY, "affinity") == usable_cores({}, tmp_path)


def test_slurm_cpus_per_task_limits(tmp_path: Path):
    """The variable only exists with ``-c``; it is what the user asked for."""
    assert Cores(1, "SLURM_CPUS_PER_TASK") == usable_cores({"SLURM_CPUS_PER_TASK": "1"}, tmp_path)


def test_cgroup_version_1_is_read(tmp_path: Path):
    """Old clusters."""
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("100000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")

    assert 1 == usable_cores({}, tmp_path).count


@pytest.mark.parametrize("level", ["", "slurm.slice", "slurm.slice/job_7", "slurm.slice/job_7/step_0"])
def test_a_quota_at_any_level_above_the_process_counts(tmp_path: Path, level: str):
    """SLURM and Kubernetes put the quota on the job or the pod, and the process into a cgroup below it."""
    (tmp_path / "slurm.slice/job_7/step_0").mkdir(parents=True)
    (tmp_path / "slurm.slice/job_7/step_0/cpu.max").write_text("max 100000\n")
    (tmp_path / level / "cpu.max").write_text("100000 100000\n")
    (tmp_path / "other").mkdir()
    membership = tmp_path / "self"
    membership.write_text("0::/slurm.slice/job_7/step_0\n")

    assert 1 == usable_cores({}, tmp_path, membership).count


def test_a_neighbours_quota_does_not_count(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b/cpu.max").write_text("100000 100000\n")
    membership = tmp_path / "self"
    membership.write_text("0::/a\n")

    assert Cores(AFFINITY, "affinity") == usable_cores({}, tmp_path, membership)


@pytest.mark.parametrize("text", ["0::/../../elsewhere\n", "0::/gone\n", "nonsense\n", "", "3:cpu,cpuacct:/gone\n"])
def test_a_membership_that_leads_nowhere_leaves_the_visible_root(tmp_path: Path, text: str):
    """Inside a container the path may be the host's, which isn't to be seen."""
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    membership = tmp_path / "self"
    membership.write_text(text)

    assert 1 == usable_cores({}, tmp_path, membership).count


def test_nested_cgroups_of_version_1_are_read(tmp_path: Path):
    folder = tmp_path / "cpu,cpuacct/slurm/uid_1/job_7"
    folder.mkdir(parents=True)
    (folder.parent / "cpu.cfs_quota_us").write_text("100000\n")
    (folder.parent / "cpu.cfs_period_us").write_text("100000\n")
    membership = tmp_path / "self"
    membership.write_text("5:memory:/x\n4:cpu,cpuacct:/slurm/uid_1/job_7\n")

    assert 1 == usable_cores({}, tmp_path, membership).count
