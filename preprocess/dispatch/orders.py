"""What a run tells its workers at their start: plain frozen data, pickled into the new process."""

from dataclasses import dataclass
from pathlib import Path

from ...core.paths import WHOLE, OutputPaths, Part
from ..config import RunConfig
from ..encode.protocol import DeviceKind, EncoderInfo
from .devices import Devices
from .thread_share import ThreadShare

RANKS_PER_PART = 1000
"""Rank 2003 is the fourth worker of part 3. No node has more devices, and not many cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetOrders:
    """What every worker of a run needs to know."""

    config: RunConfig
    info: EncoderInfo
    devices: Devices
    paths: OutputPaths
    threads: ThreadShare
    reuse_index: Path | None = None
    """Where rows lie whose latents may be taken."""
    part: Part = WHOLE
    """Part of the plan that the workers do."""

    @property
    def ranks(self) -> range:
        """One a device, unique over all parts: nodes may have different numbers of devices."""
        first = (self.part.number - 1) * RANKS_PER_PART
        return range(first, first + self.devices.num_ranks)

    def device_of(self, rank: int) -> int:
        """Index of the rank's device."""
        return rank - self.ranks.start


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOrders:
    """All that one worker incarnation is told at its start."""

    rank: int
    run_id: str
    """Unique to this incarnation: names its journal and its open shards."""
    config: RunConfig
    info: EncoderInfo
    device_kind: DeviceKind
    device_name: str
    output_dir: str
    board_path: str
    threads: ThreadShare
    reuse_index: str | None = None
    part: Part = WHOLE


def worker_orders(fleet: FleetOrders, rank: int, run_id: str, boards: Path) -> WorkerOrders:
    """The orders of one incarnation of ``rank``; its board lies in the folder ``boards``."""
    return WorkerOrders(
        rank=rank,
        run_id=run_id,
        config=fleet.config,
        info=fleet.info,
        device_kind=fleet.devices.kind,
        device_name=fleet.devices.names[fleet.device_of(rank)],
        output_dir=str(fleet.paths.root),
        board_path=str(boards / f"r{rank}-{run_id}"),
        threads=fleet.threads,
        reuse_index=None if fleet.reuse_index is None else str(fleet.reuse_index),
        part=fleet.part,
    )
