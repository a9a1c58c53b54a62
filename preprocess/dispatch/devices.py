"""Which devices a run uses, found without torch and without touching CUDA: ``nvidia-smi -L`` and CUDA_VISIBLE_DEVICES.

Each worker gets one device by its UUID (of a GPU, or of a MIG instance), set in its environment before it starts, so
that numbering by PCI bus, by speed or by a scheduler cannot send two workers to one card.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...core.errors import NoDeviceError, UsageError
from ..config import RunConfig
from ..encode.protocol import DeviceKind
from .cores import Cores, usable_cores

_GPU = re.compile(r"GPU (\d+): (.+?) \(UUID: (GPU-[0-9a-f-]+)\)")
_MIG = re.compile(r"\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (MIG-[^)]+)\)")
SMI_TIMEOUT_S = 60
"""nvidia-smi takes some seconds on a node with eight cards whose driver isn't persistent; one that hangs is broken."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU or a MIG instance of one."""

    index: str
    """As nvidia-smi numbers it: "0", or "0:1" for the second MIG instance of GPU 0."""
    name: str
    uuid: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Devices:
    """What the workers run on: one entry a rank."""

    kind: DeviceKind
    names: tuple[str, ...]
    """For people, one per rank."""
    environments: tuple[Mapping[str, str], ...]
    """Environment variables of each rank's process."""
    cores: Cores = field(default_factory=usable_cores)
    """That the workers of this run may use, all together."""

    @property
    def num_ranks(self) -> int:
        return len(self.names)


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """What of a node's devices is for this process, where several tasks of one job see the same ones."""

    place: int = 0
    """Number of this task among those that see the same GPUs, from 0."""
    num_on_gpus: int = 1
    """Tasks that see the same GPUs."""
    num_on_cores: int = 1
    """Tasks that see the same cores."""


ALL = Share()
"""This process is alone on what it sees."""


def choose_devices(config: RunConfig, share: Share = ALL) -> Devices:
    """The devices that the configuration asks for, out of this task's share.

    Raises NoDeviceError if they aren't there.
    """
    usable = usable_cores()
    cores = replace(usable, count=max(1, usable.count // share.num_on_cores))
    if config.device == "cpu":
        return _cpu(config, cores)
    visible = visible_gpus(list_gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    gpus = visible[share.place :: share.num_on_gpus]
    if visible and not gpus:
        raise _too_many_tasks(share, len(visible))
    wanted = len(gpus) if config.gpus in (None, "all") else int(config.gpus)
    if not gpus or wanted > len(gpus):
        raise _too_few(wanted, gpus)
    chosen = gpus[:wanted]
    return Devices(
        kind="cuda",
        names=tuple(f"GPU {gpu.index} {gpu.name}" for gpu in chosen),
        environments=tuple({"CUDA_VISIBLE_DEVICES": gpu.uuid} for gpu in chosen),
        cores=cores,
    )


def _cpu(config: RunConfig, cores: Cores) -> Devices:
    count = config.workers or cores.count
    environments = ({"CUDA_VISIBLE_DEVICES": ""},) * count
    return Devices(kind="cpu", names=("cpu",) * count, environments=environments, cores=cores)


def _too_many_tasks(share: Share, num_gpus: int) -> NoDeviceError:
    return NoDeviceError(
        f"{share.num_on_gpus} tasks share the {num_gpus} GPUs of this node, and none is left for this one",
        why="each worker needs a GPU of its own",
        fix=f"start at most {num_gpus} tasks a node; one is enough, it uses all GPUs",
    )


def _too_few(wanted: int, gpus: Sequence[Gpu]) -> NoDeviceError:
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    seen = f" (CUDA_VISIBLE_DEVICES={mask})" if mask is not None else ""
    asked = f"{wanted} GPUs were asked for" if wanted else "a GPU run was asked for"
    fewer = f"`--gpus {len(gpus)}`, or " if gpus else ""
    return NoDeviceError(
        f"{asked}, {len(gpus)} {'is' if len(gpus) == 1 else 'are'} visible on this machine{seen}",
        why="each worker needs a GPU of its own; the CPU is never taken silently, it is some hundred times slower",
        fix=f"{fewer}run on the CPU with `--device cpu --workers N`",
    )


def list_gpus() -> list[Gpu]:
    """All GPUs of this machine as nvidia-smi lists them; none if there is no NVIDIA driver."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        listing = subprocess.run([command, "-L"], capture_output=True, text=True, timeout=SMI_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_listing(listing.stdout) if listing.returncode == 0 else []


def parse_listing(text: str) -> list[Gpu]:
    """The output of ``nvidia-smi -L``. A card in MIG mode stands for its instances."""
    gpus: list[Gpu] = []
    parent: Gpu | None = None
    instances = 0
    for line in text.splitlines():
        if match := _GPU.match(line):
            parent, instances = Gpu(match[1], match[2], match[3]), 0
            gpus.append(parent)
        elif (match := _MIG.match(line)) and parent is not None:
            if instances == 0:
                gpus.remove(parent)
            gpus.append(Gpu(f"{parent.index}:{instances}", f"{parent.name} MIG {match[1]}", match[2]))
            instances += 1
    return gpus


def visible_gpus(gpus: Sequence[Gpu], mask: str | None) -> list[Gpu]:
    """What CUDA_VISIBLE_DEVICES leaves of ``gpus``, in its order: indices, UUIDs or unique beginnings of UUIDs.

    As CUDA does, the list ends at the first entry that names nothing. Raises UsageError for a device named twice.
    """
    if mask is None:
        return list(gpus)
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in mask.split(",")):
        matches = [gpu for gpu in gpus if entry and (gpu.index == entry or gpu.uuid.startswith(entry))]
        if entry.isdigit():
            matches = [gpu for gpu in gpus if gpu.index.partition(":")[0] == entry]
        if not matches:
            break
        if matches[0] in chosen:
            raise UsageError(f"CUDA_VISIBLE_DEVICES={mask} names {matches[0].uuid} twice", fix="name each device once")
        chosen.append(matches[0])
    return chosen
