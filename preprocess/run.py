"""The whole run, in one function: ``run``. Read this file first.

    choose devices ─► describe the encoder ─► lock the output folder ─► plan (read, scan, sort, cut, deal)
        ─► repair what is damaged
        ─► recover what earlier runs committed ─► dispatch the rest to the workers ─► finalize (metadata)

The parent process imports no torch and touches no CUDA: the workers do (dispatch/worker.py).
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np

from ..core.errors import NoDeviceError, PrepError
from ..core.paths import OutputPaths
from ..core.units import samples_to_seconds
from ..writers.ledger import Journal, read_journals
from . import events
from .config import RunConfig
from .copy_rows import copy_rows
from .dispatch.cores import usable_cores
from .dispatch.devices import Devices, choose_devices
from .dispatch.fleet import Fleet
from .dispatch.orders import FleetOrders
from .dispatch.stop import StopRequests
from .dispatched import Dispatched
from .encode.compile_choice import kept_form
from .encode.protocol import EncoderInfo
from .encode.registry import describe
from .event_log import EventLog
from .events import EventSink, RunSummary
from .finalize import finalize, interrupted, recover
from .latent_settings import latent_settings
from .lock import part_lock
from .output_folder import check_output, clear_output, describe_output, output_folder, sweep
from .plan.bill import Bill, free_space, make_bill
from .plan.identity import Identity
from .plan.plans import Plans
from .ready_plan import check_sample_rate, ready_plans
from .repair import repair
from .reuse_source import check_reuse, own_blocks, reuse_index, with_form_of_source


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
        devices = choose_devices(config)
        info = describe(config.encoder, devices.kind)
        check_sample_rate(config, info)
        paths = OutputPaths(config.output_dir)
        check_output(paths)
        if (source := config.reuse) is not None:
            config = with_form_of_source(config, source)
            form = kept_form(config.encoder, info, "eager")
            check_reuse(source, paths.root, latent_settings(Identity.of(config, info, "", devices.kind, form), info))
        with output_folder(paths), part_lock(paths), EventLog(paths.events, on_event) as tell:
            sweep(paths)
            if overwrite and (old := describe_output(paths)) is not None:
                tell(events.Notice("warning", f"--overwrite deletes {old}"))
                clear_output(paths)
            plan, resumed = ready_plans(config, info, devices.kind, paths, tell, rescan=rescan, extend=extend)
            repair(paths, plan, tell, check=check)
            done = _copied(paths, plan, recover(paths, plan, tell), config, tell)
            tell(_plan_ready(plan, done, resumed))
            with _account_if_interrupted(paths, plan, tell):
                work = _dispatch(plan, done, config, info, devices, tell, stop)
            with stop.finishing():
                return finalize(paths, plan, config, info, devices, work, command, tell)


def plan_only(config: RunConfig, on_event: EventSink = ignore, *, rescan: bool = False, extend: bool = False) -> Bill:
    """The bill of a run: what it would encode and write, and how long that takes. Writes nothing but a plan.

    The plan goes into ``output_dir`` if that is a run's already or does not exist, and is taken up by ``run``. Where no
    GPU is visible (a login node), the bill is for the number that the configuration names, or for one.
    """
    devices = _devices_of_bill(config, on_event)
    info = describe(config.encoder, devices.kind)
    check_sample_rate(config, info)
    paths = OutputPaths(config.output_dir)
    check_output(paths)
    with StopRequests(), output_folder(paths), part_lock(paths):
        sweep(paths)
        plan, _ = ready_plans(config, info, devices.kind, paths, on_event, rescan=rescan, extend=extend)
        return make_bill(plan.last, config, info, workers=devices.num_ranks, free=free_space(paths.root))


def _devices_of_bill(config: RunConfig, tell: EventSink) -> Devices:
    try:
        return choose_devices(config)
    except NoDeviceError as error:
        count = config.gpus if isinstance(config.gpus, int) else 1
        tell(events.Notice("warning", f"{error.what}; the bill is for {count} of the kind that plans assume"))
        return Devices(kind="cuda", names=("GPU",) * count, environments=({},) * count)


def _copied(paths: OutputPaths, plan: Plans, done: Journal, config: RunConfig, tell: EventSink) -> Journal:
    """What is done when the rows that an extension only copies are copied."""
    num_rows = copy_rows(paths, plan, done, config.shards)
    if not num_rows:
        return done
    tell(events.Notice("info", f"copied {num_rows:,} unchanged rows out of blocks that hold changed or vanished clips"))
    return read_journals(paths, plan.fingerprints)


def _plan_ready(plan: Plans, done: Journal, resumed: bool) -> events.PlanReady:
    blocks = {chunk: block.record for chunk, block in done.done.items() if chunk not in plan.superseded}
    chunks = np.fromiter(blocks, np.int64, len(blocks))
    return events.PlanReady(
        fingerprint=plan.fingerprint,
        num_clips=plan.num_clips,
        num_refused=plan.num_refused,
        num_chunks=len(plan.live),
        audio_seconds=plan.audio_seconds,
        done_chunks=len(chunks),
        done_audio_seconds=samples_to_seconds(int(plan.chunk_samples[chunks].sum()), plan.spec.sample_rate),
        done_rows=sum(record.rows for record in blocks.values()),
        resumed=resumed,
    )


@contextlib.contextmanager
def _account_if_interrupted(paths: OutputPaths, plan: Plans, tell: EventSink) -> Iterator[None]:
    try:
        yield
    except PrepError:
        with contextlib.suppress(OSError):  # the folder may be gone, and the first error counts
            tell(interrupted(paths, plan))
        raise


def _dispatch(
    plan: Plans,
    done: Journal,
    config: RunConfig,
    info: EncoderInfo,
    devices: Devices,
    tell: EventSink,
    stop: StopRequests,
) -> Dispatched:
    """Have the workers do the chunks that aren't ``done``; nothing is started if there are none."""
    started = datetime.now(UTC)
    todo = tuple(chunk for chunk in plan.live if chunk not in done.done)
    if not todo:
        return Dispatched(started=started, todo=todo, wall_seconds=0.0, stages=())
    ranks = min(devices.num_ranks, len(todo))
    threads = decode_threads(config, ranks, devices)
    tell(events.Notice("info", f"workers: {ranks}, decode threads of each: {threads}"))
    paths = OutputPaths(config.output_dir)
    with reuse_index(config.reuse, own_blocks(paths, plan, done), paths, tell) as index:
        orders = FleetOrders(
            config=config,
            info=info,
            devices=devices,
            paths=paths,
            decode_threads=threads,
            reuse_index=index,
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
    cores = usable_cores().count
    if config.decode_threads is not None:
        return max(1, min(config.decode_threads, cores) // ranks)
    return 2 if devices.kind == "cpu" else max(2, cores // ranks)
