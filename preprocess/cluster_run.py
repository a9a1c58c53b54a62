"""The two steps of a run on a cluster that are taken once: ``prepare`` before the parts, ``finalize_parts`` after them.

    prepare ──► run_part 1 of K, 2 of K, ... (part_run.py), on any nodes, in any order ──► finalize_parts

Both hold the lock of the whole plan. Only ``finalize_parts`` writes metadata, and only if every chunk is done, by id,
whichever part, division or incarnation did it.
"""

from collections.abc import Sequence

from ..core.errors import NoDeviceError, Stopped
from ..writers.atomic import disk_errors
from . import events
from .config import RunConfig
from .dispatch.devices import Devices, choose_devices
from .dispatch.stop import StopRequests
from .event_log import EventLog
from .finalize import finalize, interrupted
from .lock import part_lock
from .output_folder import output_folder, start_over, sweep
from .part_story import PartStory
from .plan.bill import Bill, free_space, make_bill
from .plan.make import device_kind
from .plan.plans import Plans
from .progress_so_far import plan_ready
from .ready_plan import ready_plans, stored_plans
from .settle import settle
from .setup import RunSetup, set_up


def prepare(
    config: RunConfig,
    on_event: events.EventSink,
    *,
    overwrite: bool = False,
    rescan: bool = False,
    extend: bool = False,
    check: bool = True,
) -> Bill:
    """Make the plan, or take the one that is there, and put the folder in order, so that parts can begin.

    No GPU is needed. Raises PrepError.
    """
    setup = set_up(config, devices_of_bill(config, on_event))
    paths = setup.paths
    with StopRequests(), output_folder(paths), part_lock(paths), EventLog(paths.events(), on_event) as tell:
        sweep(paths)
        if overwrite:
            start_over(paths, tell)
        plan, resumed = ready_plans(setup, tell, rescan=rescan, extend=extend)
        done = settle(setup, plan, tell, check=check)
        tell(plan_ready(plan, plan.live, done, resumed=resumed))
        return bill_of(setup, plan)


def finalize_parts(
    config: RunConfig,
    on_event: events.EventSink,
    *,
    check: bool = True,
    command: Sequence[str] = (),
    go_on: str = "prep svs",
) -> events.RunSummary:
    """Write the metadata if every part is done. No GPU is needed.

    Raises Stopped if chunks are left, with ``go_on`` as the command that does them; OutputError while parts are at work.
    """
    setup = set_up(config, _planned_devices(config))
    paths = setup.paths
    with StopRequests() as stop:
        plan = stored_plans(setup)
        with disk_errors(paths.root), part_lock(paths) as lock, EventLog(paths.events(), on_event) as tell:
            sweep(paths, keep_signs=True)  # a task that is late still waits for its own
            done = settle(setup, plan, tell, check=check)
            tell(plan_ready(plan, plan.live, done, resumed=True))
            if missing := sum(chunk not in done.done for chunk in plan.live):
                tell(interrupted(paths, plan))
                raise Stopped(
                    f"{missing} of {len(plan.live)} chunks are not done: no metadata is written",
                    why="a folder that opens is a folder that is complete",
                    fix=f"do what is left with:\n    {go_on}",
                )
            story = PartStory.read(paths, plan)
            devices = Devices(kind=setup.devices.kind, names=story.devices, environments=({},) * len(story.devices))
            setup = RunSetup(config=setup.config, info=setup.info, devices=devices, paths=paths)
            lock.check()
            with stop.finishing():
                return finalize(setup, plan, story.work, command, tell)


def bill_of(setup: RunSetup, plan: Plans) -> Bill:
    """What is left to pay for is not looked at: the bill is for the whole of the last plan."""
    free = free_space(setup.paths.root)
    return make_bill(plan.last, setup.config, setup.info, workers=setup.devices.num_ranks, free=free)


def devices_of_bill(config: RunConfig, tell: events.EventSink) -> Devices:
    """The devices of a run that isn't begun here; where no GPU is visible, as many as the configuration names."""
    try:
        return choose_devices(config)
    except NoDeviceError as error:
        devices = _planned_devices(config)
        text = f"{error.what}; the bill is for {devices.num_ranks} of the kind that plans assume"
        tell(events.Notice("warning", text))
        return devices


def _planned_devices(config: RunConfig) -> Devices:
    kind = device_kind(config)
    count = config.gpus if kind == "cuda" and isinstance(config.gpus, int) else 1
    return Devices(kind=kind, names=("cpu" if kind == "cpu" else "GPU",) * count, environments=({},) * count)
