"""``dispatch``: have the workers do chunks; ``Dispatched``: what they did, for the summary and for provenance.json."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from ..core.paths import WHOLE, Part
from ..writers.ledger import Journal
from .config import RunConfig
from .dispatch.devices import Devices
from .dispatch.fleet import Fleet
from .dispatch.orders import FleetOrders
from .dispatch.stop import StopRequests
from .events import EventSink, Notice, StageSeconds
from .plan.plans import Plans
from .reuse_source import own_blocks, reuse_index
from .setup import RunSetup


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispatched:
    """Of this run alone."""

    started: datetime
    todo: tuple[int, ...]
    """Chunks that it had to do."""
    wall_seconds: float
    """From the first worker's readiness to the last one's end; 0 if there was nothing to do."""
    stages: tuple[StageSeconds, ...]
    precision_error: float | None = None
    """Of latents, relative to strict float32, on probe clips: the worst worker's; None where none was measured."""


def dispatch(
    setup: RunSetup,
    plan: Plans,
    todo: tuple[int, ...],
    done: Journal,
    tell: EventSink,
    stop: StopRequests,
    part: Part = WHOLE,
) -> Dispatched:
    """Have the workers do the chunks of ``todo``; nothing is started if there are none.

    Raises Stopped after a signal, DiskError if the output can't be written, WorkerError if it gives up.
    """
    started = datetime.now(UTC)
    if not todo:
        return Dispatched(started=started, todo=todo, wall_seconds=0.0, stages=())
    config, devices = setup.config, setup.devices
    ranks = min(devices.num_ranks, len(todo))
    threads = decode_threads(config, ranks, devices)
    tell(Notice("info", f"workers: {ranks}, decode threads of each: {threads}"))
    with reuse_index(config.reuse, own_blocks(setup.paths, plan, done), setup.paths, tell, part) as index:
        orders = FleetOrders(
            config=config,
            info=setup.info,
            devices=devices,
            paths=setup.paths,
            decode_threads=threads,
            reuse_index=index,
            part=part,
        )
        with stop.polled(), Fleet(orders, plan, tell, stop) as fleet:
            fleet.run(todo)
            wall = time.monotonic() - (fleet.report.ready_at or time.monotonic())
            return Dispatched(
                started=started,
                todo=todo,
                wall_seconds=wall,
                stages=fleet.stage_seconds(),
                precision_error=fleet.report.precision_error,
            )


def decode_threads(config: RunConfig, ranks: int, devices: Devices) -> int:
    """Decode threads per worker: the configured number shared out, else the cores; a CPU worker needs few."""
    if config.decode_threads is not None:
        return max(1, min(config.decode_threads, devices.cores) // ranks)
    return 2 if devices.kind == "cpu" else max(2, devices.cores // ranks)
