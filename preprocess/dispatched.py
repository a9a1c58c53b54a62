"""``dispatch``: have the workers do chunks; ``Dispatched``: what they did, for the summary and for provenance.json."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from ..core.paths import WHOLE, Part
from ..writers.ledger import Journal
from .dispatch.fleet import Fleet
from .dispatch.orders import FleetOrders
from .dispatch.stop import StopRequests
from .dispatch.thread_share import share_threads
from .events import Bottleneck, EventSink, Notice, StageSeconds
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
    bottleneck: Bottleneck | None = None
    """What limited it as a whole."""
    adapted: int = 0
    """How often a worker changed its decode threads or how far it reads ahead."""
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
    threads = share_threads(config.decode_threads, ranks, devices.kind, devices.cores)
    tell(Notice("info", f"workers: {ranks}, {threads.text}"))
    with reuse_index(config.reuse, own_blocks(setup.paths, plan, done), setup.paths, tell, part) as index:
        orders = FleetOrders(
            config=config,
            info=setup.info,
            devices=devices,
            paths=setup.paths,
            threads=threads,
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
                bottleneck=fleet.bottleneck(),
                adapted=fleet.report.adapted,
                precision_error=fleet.report.precision_error,
            )
