"""How many cores a run may use."""

import os
from pathlib import Path

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
