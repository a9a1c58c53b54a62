"""When an extension is complete: the one journal line that makes the old dataset the extended one.

Until it is written the dataset is what it was: old blocks count, state.json names them, what the extension has made so far
lies beside them. From then on the superseded blocks are hidden, and shards that hold some are rewritten without them.
A kill before or after the line leaves one of the two, and the same command goes on.
"""

import os
import time

from ..core.paths import OutputPaths
from ..writers.journal import JournalWriter, journal_header
from ..writers.ledger import Journal
from ..writers.records import SupersededRecord
from .plan.plan import Plan
from .plan.plans import Plans


def is_complete(plans: Plans, journal: Journal) -> bool:
    """Whether every chunk is done and no extension is under way."""
    return not _pending(plans, journal) and all(chunk in journal.done for chunk in plans.live)


def supersede(paths: OutputPaths, plans: Plans, journal: Journal) -> bool:
    """Write the line for extensions that have none; every live chunk must be done. Says whether there was one.

    Raises DiskError if the disk refuses.
    """
    pending = _pending(plans, journal)
    if not pending:
        return False
    run_id = f"extend-{time.time_ns():x}-{os.getpid():x}"
    writer = JournalWriter(paths.journal(0, run_id), journal_header(0, run_id, plans.fingerprints, salvage=True))
    for plan in pending:
        assert plan.head.extension is not None
        writer.append(SupersededRecord(plan=plan.fingerprint, chunks=plan.head.extension.supersedes))
    writer.close()
    return True


def _pending(plans: Plans, journal: Journal) -> list[Plan]:
    return [plan for plan in plans.parts[1:] if plan.fingerprint not in journal.extensions]
