"""``settle``: an output folder whose journal speaks of good blocks only, with nothing half done in it.

Damage is repaired, open shards are finished, the rows that an extension only copies are copied. It touches files of all
parts, so the caller holds the lock of the whole plan.
"""

from ..writers.ledger import Journal, read_journals
from . import events
from .copy_rows import copy_rows
from .finalize import recover
from .plan.plans import Plans
from .repair import repair
from .setup import RunSetup


def settle(setup: RunSetup, plan: Plans, tell: events.EventSink, *, check: bool = True) -> Journal:
    """What is done, after everything that can be done about it without a worker.

    A finished dataset is read whole, unless ``check`` is False. Raises OutputError and DiskError.
    """
    repair(setup.paths, plan, tell, check=check)
    done = recover(setup.paths, plan, tell)
    num_rows = copy_rows(setup.paths, plan, done, setup.config.shards)
    if not num_rows:
        return done
    tell(events.Notice("info", f"copied {num_rows:,} unchanged rows out of blocks that hold changed or vanished clips"))
    return read_journals(setup.paths, plan.fingerprints)
