"""How many cores this process may really use: affinity, cgroup quota, SLURM_CPUS_PER_TASK; the least of them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cores:
    """Usable cores and which limit it was."""

    count: int
    limit: str
    """"affinity", "cgroup" or "SLURM_CPUS_PER_TASK"."""


def usable_cores(environ: Mapping[str, str] = os.environ, cgroup: Path = Path("/sys/fs/cgroup")) -> Cores:
    """The number of cores for decode threads and CPU workers, at least 1."""
    limits = [Cores(len(os.sched_getaffinity(0)), "affinity")]
    quota = _cgroup_quota(cgroup)
    if quota is not None:
        limits.append(Cores(quota, "cgroup"))
    slurm = environ.get("SLURM_CPUS_PER_TASK", "")
    if slurm.isdigit() and int(slurm) > 0:
        limits.append(Cores(int(slurm), "SLURM_CPUS_PER_TASK"))
    return min(limits, key=lambda cores: cores.count)


def _cgroup_quota(root: Path) -> int | None:
    """Whole cores of the CPU quota (v2 ``cpu.max``, v1 ``cpu.cfs_quota_us``), rounded up; None without one."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (root / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return max(1, -(-int(quota) // int(period)))
