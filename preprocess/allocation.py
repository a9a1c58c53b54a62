"""``Allocation``: what a scheduler says about the tasks of one job that were started together, by its variables.

SLURM's are believed only inside a step (SLURM_STEP_ID): a bare batch script of a job of two nodes has SLURM_PROCID=0 and
SLURM_NTASKS=2, too, and is alone. torchrun's are believed only with TORCHELASTIC_RUN_ID: RANK alone may be a left-over. A
torchrun that was started by srun is the inner one, and counts.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.paths import Part
from .dispatch.devices import Share

_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """This process is one of several tasks that do one run together."""

    part: Part
    """Its part of the plan: one a task."""
    share: Share
    run: str
    """Names this start of the tasks: another one after a requeue. Letters, digits, ``.``, ``_``, ``-``."""


def read_allocation(environ: Mapping[str, str] = os.environ, num_cores: int | None = None) -> Allocation | None:
    """The allocation of this process; None if it is alone. ``num_cores``: those of its affinity mask."""
    if "TORCHELASTIC_RUN_ID" in environ:
        found = _torchrun(environ)
    elif environ.get("SLURM_STEP_ID"):
        found = _slurm_step(environ, num_cores or len(os.sched_getaffinity(0)))
    else:
        found = None
    return found if found is not None and found.part.count > 1 else None


def _torchrun(environ: Mapping[str, str]) -> Allocation | None:
    rank, world = _number(environ, "RANK"), _number(environ, "WORLD_SIZE")
    if rank is None or world is None or rank >= world:
        return None
    tasks = _number(environ, "LOCAL_WORLD_SIZE") or 1
    place = _number(environ, "LOCAL_RANK") or 0
    names = (environ.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"))
    return Allocation(
        part=Part(rank + 1, world),
        share=Share(place=place, num_on_gpus=tasks, num_on_cores=tasks),
        run=_file_name("-".join(("torchrun", *names))),
    )


def _slurm_step(environ: Mapping[str, str], num_cores: int) -> Allocation | None:
    rank = _number(environ, "SLURM_PROCID")
    world = _number(environ, "SLURM_STEP_NUM_TASKS") or _number(environ, "SLURM_NTASKS")
    if rank is None or world is None or rank >= world:
        return None
    tasks = _tasks_on_node(environ)
    has_own_gpus = _has_own_gpus(environ, tasks)
    has_own_cores = "SLURM_CPUS_PER_TASK" in environ or num_cores < (_number(environ, "SLURM_CPUS_ON_NODE") or 0)
    names = (environ.get(name, "0") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"))
    return Allocation(
        part=Part(rank + 1, world),
        share=Share(
            place=0 if has_own_gpus else _number(environ, "SLURM_LOCALID") or 0,
            num_on_gpus=1 if has_own_gpus else tasks,
            num_on_cores=1 if has_own_cores else tasks,
        ),
        run=_file_name("-".join(("slurm", *names))),
    )


def _tasks_on_node(environ: Mapping[str, str]) -> int:
    """Tasks of the step on this node, out of a list like ``2(x3),1``."""
    text = environ.get("SLURM_STEP_TASKS_PER_NODE") or environ.get("SLURM_TASKS_PER_NODE") or "1"
    matches = [_TASKS.fullmatch(item) for item in text.split(",")]
    counts = [int(match[1]) for match in matches if match for _ in range(int(match[2] or 1))]
    node = _number(environ, "SLURM_NODEID") or 0
    return max(1, counts[node]) if node < len(counts) else 1


def _has_own_gpus(environ: Mapping[str, str], tasks: int) -> bool:
    """Whether the tasks of this node see different GPUs: only --gpus-per-task and --gpu-bind make it so."""
    if "SLURM_GPUS_PER_TASK" in environ or "gpu" in environ.get("SLURM_TRES_PER_TASK", ""):
        return True
    if any(word in environ.get("SLURM_GPU_BIND", "") for word in ("single", "per_task")):
        return True
    visible, on_node = environ.get("CUDA_VISIBLE_DEVICES", ""), _number(environ, "SLURM_GPUS_ON_NODE")
    return bool(visible) and on_node is not None and len(visible.split(",")) * tasks <= on_node


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:120]
