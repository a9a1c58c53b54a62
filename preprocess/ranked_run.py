"""``run_ranked``: the tasks that one `srun` or `torchrun` started do one run together, each its part.

    task 0      prepare ─► says "ready" ─► its part ─► waits for the others ─► finalize_parts
    the others             wait for it  ─► their parts

They share the output folder alone. Waiting is bounded: a task that nobody has seen, or whose lock has gone stale, is not
waited for, and then finalizing says what is missing. A task that ended early is told by its lock: it was there, and is
gone or stale.
"""

import time
from collections.abc import Callable, Iterable, Sequence

from ..core.errors import OutputError, PrepError
from ..core.paths import OutputPaths, Part
from ..writers.atomic import atomic_write
from ..writers.ledger import read_journals
from . import events
from .allocation import Allocation
from .cluster_run import finalize_parts, prepare
from .config import RunConfig
from .dispatch.devices import choose_devices
from .division import chunks_of
from .lock_watch import LockState, LockWatch
from .part_run import run_part
from .plan.plans import Plans
from .setup import set_up

POLL_S = 1.0
START_S = 300.0
"""Between tasks that were started together: a cold file system and a full node make one of them minutes late."""
VISIBLE_S = 60.0
"""After which a network file system shows what another node wrote: NFS keeps listings for up to a minute."""
_FAILED = "failed: "


def run_ranked(
    config: RunConfig,
    allocation: Allocation,
    on_event: events.EventSink,
    *,
    overwrite: bool = False,
    rescan: bool = False,
    extend: bool = False,
    check: bool = True,
    command: Sequence[str] = (),
    go_on: str = "prep svs",
) -> events.RunSummary | events.PartEnded:
    """One task's share of a run; task 0 returns the summary of the whole.

    Raises PrepError; Stopped if task 0 finds that others left something undone.
    """
    setup = set_up(config, choose_devices(config, allocation.share))  # what is wrong, is so before anyone waits
    paths, part, ready = setup.paths, allocation.part, setup.paths.ready(allocation.run)
    if part.number > 1:
        wait_until_ready(paths, allocation)
        return run_part(config, part, on_event, share=allocation.share)
    try:
        prepare(config, on_event, overwrite=overwrite, rescan=rescan, extend=extend, check=check)
    except PrepError as error:
        if paths.work.exists():
            atomic_write(ready, _FAILED + error.what)
        raise
    atomic_write(ready, "ready")
    run_part(config, part, on_event, share=allocation.share)
    on_event(events.Notice("info", f"part {part} is done; waiting for the others"))
    wait_for_others(paths, part)
    return finalize_parts(config, on_event, check=check, command=command, go_on=go_on)


def wait_until_ready(
    paths: OutputPaths,
    allocation: Allocation,
    *,
    wait: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Return when task 0 has prepared the folder. Raises OutputError if it failed, or isn't seen at work for long."""
    watch, seen = LockWatch(now=now), now()
    while (said := _read(paths, allocation)) is None:
        if watch.look(paths.lock()).state in (LockState.LIVING, LockState.UNKNOWN):
            seen = now()
        if now() - seen > START_S:
            raise OutputError(
                f"the first task of {allocation.run} has not planned in {paths.root}: nothing seen for {START_S:.0f} s",
                why="it makes the plan for all tasks",
                fix="see what became of it; then give the same command again",
            )
        wait(POLL_S)
    if said.startswith(_FAILED):
        raise OutputError(f"the first task could not plan: {said.removeprefix(_FAILED)}", fix="see its own message")


def _read(paths: OutputPaths, allocation: Allocation) -> str | None:
    try:
        return paths.ready(allocation.run).read_text(encoding="utf-8")
    except OSError:
        return None


def wait_for_others(
    paths: OutputPaths,
    mine: Part,
    *,
    wait: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Return when the other parts are done, or when nothing more is to be expected of them."""
    plan, began = Plans.open(paths), now()
    others = [Part(number, mine.count) for number in range(1, mine.count + 1) if number != mine.number]
    watch = _OthersWatch(paths, others, now)
    hopeless_since: float | None = None
    while True:
        undone, working = _undone(paths, plan, others), watch.look()
        if not undone and not working:
            return
        late = undone - watch.seen if now() - began < START_S else set()
        if working or late:
            hopeless_since = None
        else:
            hopeless_since = now() if hopeless_since is None else hopeless_since
            if now() - hopeless_since >= VISIBLE_S:
                return
        wait(POLL_S)


def _undone(paths: OutputPaths, plan: Plans, parts: Iterable[Part]) -> set[Part]:
    committed = read_journals(paths, plan.fingerprints).committed_chunks
    return {part for part in parts if not committed.issuperset(chunks_of(part, plan.live))}


class _OthersWatch:
    """The locks of the other parts, seen again and again."""

    def __init__(self, paths: OutputPaths, parts: Sequence[Part], now: Callable[[], float]) -> None:
        self._paths, self._parts, self._watch = paths, parts, LockWatch(now=now)
        self.seen: set[Part] = set()
        """Parts that have been at work since we look."""

    def look(self) -> set[Part]:
        """The parts that are at work now."""
        states = {part: self._watch.look(self._paths.lock(part)).state for part in self._parts}
        working = {part for part, state in states.items() if state in (LockState.LIVING, LockState.UNKNOWN)}
        self.seen |= working
        return working
