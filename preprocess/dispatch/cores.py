"""How many cores this process may really use: affinity, cgroup quota, SLURM_CPUS_PER_TASK; the least of them.

A quota may stand at any level: a job's slice, its step, a container in it. So the process' own cgroup and every one above
it is looked at, as far as they can be seen from here (a container sees its own as the root).
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Cores:
    """Usable cores and which limit it was."""

    count: int
    limit: str
    """"affinity", "cgroup" or "SLURM_CPUS_PER_TASK"."""


def usable_cores(
    environ: Mapping[str, str] = os.environ, cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP
) -> Cores:
    """The number of cores for decode threads and CPU workers, at least 1."""
    limits = [Cores(len(os.sched_getaffinity(0)), "affinity")]
    limits += [Cores(quota, "cgroup") for quota in _quotas(cgroups, membership)]
    slurm = environ.get("SLURM_CPUS_PER_TASK", "")
    if slurm.isdigit() and int(slurm) > 0:
        limits.append(Cores(int(slurm), "SLURM_CPUS_PER_TASK"))
    return min(limits, key=lambda cores: cores.count)


def _quotas(cgroups: Path, membership: Path) -> Iterator[int]:
    """Whole cores, rounded up, of each CPU quota that holds for this process."""
    for folder in _folders(cgroups, membership):
        quota = _version_2(folder)
        if quota is None:
            quota = _version_1(folder)
        if quota is not None:
            yield quota


def _folders(cgroups: Path, membership: Path) -> Iterator[Path]:
    """Of the process' cgroup and all above it, in every hierarchy that may hold CPU quotas."""
    for controllers, path in _memberships(membership):
        roots = {cgroups, cgroups / "unified"} if not controllers else {cgroups / controllers, cgroups / "cpu"}
        inside = PurePosixPath(path.lstrip("/"))
        for root in sorted(roots):
            yield from (root / level for level in (inside, *inside.parents) if ".." not in level.parts)


def _memberships(membership: Path) -> Iterator[tuple[str, str]]:
    """(controllers, path) of the lines ``id:controllers:path``; no controllers is version 2. The roots, if unreadable."""
    yield from (("", ""), ("cpu", ""))
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers or "cpu" in controllers.split(","):
            yield controllers, path


def _version_2(folder: Path) -> int | None:
    try:
        return _cores(*(folder / "cpu.max").read_text().split())
    except (OSError, ValueError, TypeError):
        return None


def _version_1(folder: Path) -> int | None:
    try:
        return _cores(*((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")))
    except (OSError, ValueError):
        return None


def _cores(quota: str, period: str) -> int | None:
    """``max`` or -1 is no quota."""
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return max(1, -(-int(quota) // int(period)))
