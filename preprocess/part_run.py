"""``run_part``: the chunks of one part of a stored plan, by one task of a cluster.

It writes shards, journals and events of its own and takes no file of another part in hand; what the others have done it
reads from their journals. Open shards that earlier runs of the same part left it finishes; those of other divisions of
the plan count as done and are finished by ``finalize_parts``. It never writes metadata.
"""

import contextlib
from collections.abc import Iterator

from ..core.errors import PrepError
from ..core.paths import OutputPaths, Part
from ..writers.atomic import disk_errors
from ..writers.ledger import read_journals
from ..writers.salvage import salvage_open_shards
from . import events
from .config import RunConfig
from .dispatch.devices import ALL, Share, choose_devices
from .dispatch.stop import StopRequests
from .dispatched import Dispatched, dispatch
from .division import chunks_of
from .event_log import EventLog
from .lock import part_lock
from .plan.plans import Plans
from .progress_so_far import committed_records, plan_ready
from .ready_plan import stored_plans
from .setup import set_up


def run_part(config: RunConfig, part: Part, on_event: events.EventSink, *, share: Share = ALL) -> events.PartEnded:
    """Do what is left of ``part``; returns when nothing of it is.

    Raises Stopped after a signal, OutputError if there is no plan, or another one, and other PrepErrors as ``run``.
    """
    with StopRequests() as stop:
        setup = set_up(config, choose_devices(config, share))
        paths = setup.paths
        plan = stored_plans(setup)
        chunks = chunks_of(part, plan.live)
        if not _left(paths, plan, chunks):  # also if others hold the lock of the whole: they may finalize
            return _ended(paths, plan, part, None)
        with disk_errors(paths.root), part_lock(paths, part), EventLog(paths.events(part), on_event) as tell:
            salvage_open_shards(paths, plan.fingerprints, part=part)
            journal = read_journals(paths, plan.fingerprints)
            todo = tuple(chunk for chunk in chunks if chunk not in journal.committed_chunks)
            tell(events.Notice("info", f"part {part}"))
            tell(plan_ready(plan, chunks, journal, resumed=True))
            with _account_if_interrupted(paths, plan, part, tell):
                work = dispatch(setup, plan, todo, journal, tell, stop, part)
            ended = _ended(paths, plan, part, work)
            tell(ended)
            return ended


def _left(paths: OutputPaths, plan: Plans, chunks: tuple[int, ...]) -> bool:
    return not read_journals(paths, plan.fingerprints).committed_chunks.issuperset(chunks)


@contextlib.contextmanager
def _account_if_interrupted(paths: OutputPaths, plan: Plans, part: Part, tell: events.EventSink) -> Iterator[None]:
    try:
        yield
    except PrepError:
        with contextlib.suppress(OSError):
            tell(_ended(paths, plan, part, None))
        raise


def _ended(paths: OutputPaths, plan: Plans, part: Part, work: Dispatched | None) -> events.PartEnded:
    chunks = chunks_of(part, plan.live)
    done = committed_records(read_journals(paths, plan.fingerprints))
    records = [done[chunk] for chunk in chunks if chunk in done]
    planned = int(plan.chunks.rows[list(chunks)].sum())
    written, skipped = sum(record.rows for record in records), sum(len(record.skipped) for record in records)
    return events.PartEnded(
        number=part.number,
        count=part.count,
        num_chunks=len(chunks),
        num_left=len(chunks) - len(records),
        planned=planned,
        written=written,
        skipped=skipped,
        remaining=planned - written - skipped,
        wall_seconds=work.wall_seconds if work else 0.0,
        precision_error=work.precision_error if work else None,
    )
