"""The whole run, in one function: ``run``. Read this file first.

    choose devices ─► describe the encoder ─► lock the output folder ─► plan (read, scan, sort, cut, deal)
        ─► settle (repair what is damaged, recover what earlier runs committed)
        ─► dispatch the rest to the workers ─► finalize (metadata)

The parent process imports no torch and touches no CUDA: the workers do (dispatch/worker.py). On a cluster the same
steps are taken by several processes: ``prepare`` and ``finalize_parts`` (cluster_run.py), ``run_part`` (part_run.py).
"""

import contextlib
from collections.abc import Iterator, Sequence

from ..core.errors import PrepError
from ..core.paths import OutputPaths
from . import events
from .cluster_run import bill_of, devices_of_bill
from .config import RunConfig
from .dispatch.devices import choose_devices
from .dispatch.stop import StopRequests
from .dispatched import dispatch
from .event_log import EventLog
from .events import EventSink, RunSummary
from .finalize import finalize, interrupted
from .lock import part_lock
from .output_folder import output_folder, start_over, sweep
from .plan.bill import Bill
from .plan.plans import Plans
from .progress_so_far import plan_ready
from .ready_plan import ready_plans
from .settle import settle
from .setup import set_up


def ignore(event: events.Event) -> None:
    """The sink of who does not listen."""


def run(
    config: RunConfig,
    on_event: EventSink = ignore,
    *,
    overwrite: bool = False,
    rescan: bool = False,
    extend: bool = False,
    check: bool = True,
    command: Sequence[str] = (),
) -> RunSummary:
    """Turn the corpora of ``config`` into a dataset in ``config.output_dir``; go on where an earlier run stopped.

    ``rescan`` reads the corpora again even if they look unchanged; ``extend`` takes their changes up.
    A finished dataset is read whole and repaired if it is damaged; without ``check`` only names, sizes and headers are
    looked at (repair.py). ``command`` is recorded in provenance.json. Call it from the main thread: elsewhere no
    signals are handled.

    Raises PrepError (core/errors.py has the tree); what is committed is kept whatever is raised, and the same call
    goes on from there.
    """
    with StopRequests() as stop:
        setup = set_up(config, choose_devices(config))
        paths = setup.paths
        with output_folder(paths), part_lock(paths) as lock, EventLog(paths.events(), on_event) as tell:
            sweep(paths)
            if overwrite:
                start_over(paths, tell)
            plan, resumed = ready_plans(setup, tell, rescan=rescan, extend=extend)
            done = settle(setup, plan, tell, check=check)
            tell(plan_ready(plan, plan.live, done, resumed=resumed))
            with account_if_interrupted(paths, plan, tell):
                todo = tuple(chunk for chunk in plan.live if chunk not in done.done)
                work = dispatch(setup, plan, todo, done, tell, stop)
            lock.check()
            with stop.finishing():
                return finalize(setup, plan, work, command, tell)


def plan_only(config: RunConfig, on_event: EventSink = ignore, *, rescan: bool = False, extend: bool = False) -> Bill:
    """The bill of a run: what it would encode and write, and how long that takes. Writes nothing but a plan.

    The plan goes into ``output_dir`` if that is a run's already or does not exist, and is taken up by ``run``. Where no
    GPU is visible (a login node), the bill is for the number that the configuration names, or for one.
    """
    setup = set_up(config, devices_of_bill(config, on_event))
    with StopRequests(), output_folder(setup.paths), part_lock(setup.paths):
        sweep(setup.paths)
        plan, _ = ready_plans(setup, on_event, rescan=rescan, extend=extend)
        return bill_of(setup, plan)


@contextlib.contextmanager
def account_if_interrupted(paths: OutputPaths, plan: Plans, tell: EventSink) -> Iterator[None]:
    """A run that ends early says what it leaves."""
    try:
        yield
    except PrepError:
        with contextlib.suppress(OSError):  # the folder may be gone, and the first error counts
            tell(interrupted(paths, plan))
        raise
