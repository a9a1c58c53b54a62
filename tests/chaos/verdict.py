"""Which exit codes a run may end with, given the faults that were injected into it."""

import signal
from collections import Counter

from latentprep.core.errors import ExitCode

from .command import Ended
from .faults import LIVE_DAMAGE, PARENT_KILLS, SIGNALS, Fault

MANY_DEATHS = ("no worker could start", "workers died in a row")
"""The run gives up by a rule of preprocess/dispatch/decide.py; the same command goes on."""
DAMAGED_BENEATH = "were reported done and are not in"
"""Finalize found that something deleted or cut files under the run; the same command goes on."""


def objection(ended: Ended, faults: Counter[Fault], log: str) -> str | None:
    """What is wrong with the end of a run; None if the faults explain it."""
    if ended.hung:
        return "it hung"
    if ended.orphans:
        return f"{ended.orphans} processes outlived the parent"
    allowed = _allowed(faults, log)
    if ended.exit_code in allowed:
        return None
    return f"exit code {ended.exit_code}, not one of {sorted(allowed)}"


def _allowed(faults: Counter[Fault], log: str) -> set[int]:
    """A fault may always come too late to matter: 0 is allowed unless the parent was killed."""
    if faults.keys() & PARENT_KILLS:
        return {-signal.SIGKILL}
    allowed = {int(ExitCode.OK)}
    if faults.keys() & SIGNALS:
        allowed |= {ExitCode.STOPPED, *_before_the_first_line(log)}
    if faults[Fault.DISK_FULL]:
        allowed.add(ExitCode.STOPPED)
    worker_kills = faults[Fault.WORKER_KILL] + faults[Fault.WORKER_STOP_KILL] + faults[Fault.WORKER_STOP]
    if worker_kills > 1 and any(text in log for text in MANY_DEATHS):
        allowed.add(ExitCode.FAILED)
    if faults.keys() & LIVE_DAMAGE and DAMAGED_BENEATH in log:
        allowed.add(ExitCode.FAILED)
    return allowed


def _before_the_first_line(log: str) -> set[int]:
    """While Python itself starts, SIGTERM ends it as it ends any program."""
    return set() if log.strip() else {-signal.SIGTERM}
