"""The kinds of faults, and what each does to a run or to what a run left behind.

Three groups. Faults of a *living* run that it has to get over by itself; faults that *end* a run; damage to *files*
between two runs. Every function says whether there was something to damage: only then the fault counts.
"""

import os
import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from .command import Command
from .disk import Disk
from .processes import send, state
from .watch import Watch


class Fault(StrEnum):
    """What is done."""

    WORKER_KILL = "worker: kill -9"
    WORKER_STOP_CONT = "worker: SIGSTOP, then SIGCONT"
    WORKER_STOP_KILL = "worker: SIGSTOP, then kill -9"
    WORKER_STOP = "worker: SIGSTOP, left so"
    TRACKER_KILL = "resource tracker: kill -9"
    PARENT_STOP_CONT = "parent: SIGSTOP, then SIGCONT"
    LIVE_PART_DELETED = "open shard deleted under a run"
    LIVE_PART_GARBAGE = "garbage to an open shard under a run"
    LIVE_JOURNAL_GARBAGE = "garbage to a journal under a run"

    PARENT_KILL = "parent: kill -9"
    PARENT_STOP_KILL = "parent: SIGSTOP, then kill -9"
    TERM = "parent: SIGTERM"
    TERM_GROUP = "process group: SIGTERM"
    TERM_TWICE = "parent: SIGTERM twice"
    DISK_FULL = "disk full"

    PART_DELETED = "open shard deleted"
    PART_CUT = "open shard cut"
    PART_GARBAGE = "garbage to an open shard"
    JOURNAL_CUT = "journal cut in mid line"
    JOURNAL_GARBAGE = "garbage to a journal"
    SHARD_DELETED = "finished shard deleted"
    SHARD_CUT = "finished shard cut"


SURVIVED = {
    Fault.WORKER_KILL: 6.0,
    Fault.WORKER_STOP_CONT: 2.0,
    Fault.WORKER_STOP_KILL: 2.0,
    Fault.WORKER_STOP: 1.0,
    Fault.TRACKER_KILL: 0.5,
    Fault.PARENT_STOP_CONT: 0.7,
    Fault.LIVE_PART_DELETED: 0.4,
    Fault.LIVE_PART_GARBAGE: 0.4,
    Fault.LIVE_JOURNAL_GARBAGE: 0.4,
}
"""Faults of a living run, with how often they are drawn."""
ENDING = {
    Fault.PARENT_KILL: 4.0,
    Fault.PARENT_STOP_KILL: 1.0,
    Fault.TERM: 2.0,
    Fault.TERM_GROUP: 1.5,
    Fault.TERM_TWICE: 0.5,
    Fault.DISK_FULL: 2.5,
}
"""Faults that a run ends by."""
DAMAGE = {
    Fault.PART_DELETED: 2.0,
    Fault.PART_CUT: 2.0,
    Fault.PART_GARBAGE: 2.0,
    Fault.JOURNAL_CUT: 2.0,
    Fault.JOURNAL_GARBAGE: 2.0,
    Fault.SHARD_DELETED: 0.7,
    Fault.SHARD_CUT: 0.7,
}
"""Damage to files between two runs."""
LIVE_DAMAGE = frozenset({Fault.LIVE_PART_DELETED, Fault.LIVE_PART_GARBAGE, Fault.LIVE_JOURNAL_GARBAGE})
SIGNALS = frozenset({Fault.TERM, Fault.TERM_GROUP, Fault.TERM_TWICE})
PARENT_KILLS = frozenset({Fault.PARENT_KILL, Fault.PARENT_STOP_KILL})

STOPPED_S = 1.5
"""A process stays stopped up to so long before it is continued or killed."""
AGAIN_S = 2.5
"""A second SIGTERM counts as "now" only two seconds after the first."""


@dataclass(frozen=True, slots=True)
class Injector:
    """Injects faults into one run."""

    command: Command
    watch: Watch
    disk: Disk
    rng: random.Random

    def inject(self, fault: Fault) -> bool:
        """Do it; False if there was nothing to do it to."""
        match fault:
            case Fault.WORKER_KILL | Fault.WORKER_STOP_CONT | Fault.WORKER_STOP_KILL | Fault.WORKER_STOP:
                return self._to_process(fault, self._pick(self.command.workers()))
            case Fault.TRACKER_KILL:
                return self._to_process(Fault.WORKER_KILL, self._pick(self.command.trackers()))
            case Fault.PARENT_KILL | Fault.PARENT_STOP_CONT | Fault.PARENT_STOP_KILL:
                return self._to_process(fault, self.command.pid)
            case Fault.TERM | Fault.TERM_GROUP | Fault.TERM_TWICE:
                return self._terminate(fault)
            case Fault.DISK_FULL:
                self.disk.fill(self.rng, self.command.everyone(), self.command.output_dir)
                return self.command.running
            case _:
                return damage(fault, self.command.output_dir, self.rng)

    def _pick(self, pids: Sequence[int]) -> int | None:
        return self.rng.choice(pids) if pids else None

    def _to_process(self, fault: Fault, pid: int | None) -> bool:
        if pid is None:
            return False
        if fault in (Fault.WORKER_KILL, Fault.PARENT_KILL):
            return send(pid, signal.SIGKILL)
        if not send(pid, signal.SIGSTOP):
            return False
        if fault is Fault.WORKER_STOP:
            return True
        self.watch.pause(self.rng.uniform(0, STOPPED_S))
        last = signal.SIGCONT if fault in (Fault.WORKER_STOP_CONT, Fault.PARENT_STOP_CONT) else signal.SIGKILL
        return send(pid, last)

    def _terminate(self, fault: Fault) -> bool:
        if state(self.command.pid) is None:
            return False
        if fault is Fault.TERM_GROUP:
            self.command.signal_group(signal.SIGTERM)
            return True
        send(self.command.pid, signal.SIGTERM)
        if fault is Fault.TERM_TWICE:
            self.watch.pause(AGAIN_S)
            send(self.command.pid, signal.SIGTERM)
        return True


def damage(fault: Fault, output_dir: Path, rng: random.Random) -> bool:
    """Damage a random file of an output folder; False if there is none of that kind."""
    pattern, action = _DAMAGE[fault]
    targets = sorted(output_dir.glob(pattern))
    if not targets:
        return False
    try:
        return action(rng.choice(targets), rng)
    except FileNotFoundError:  # a run was quicker
        return False


def _delete(path: Path, rng: random.Random) -> bool:
    path.unlink()
    return True


def _cut(path: Path, rng: random.Random) -> bool:
    size = path.stat().st_size
    if not size:
        return False
    os.truncate(path, rng.randrange(size))
    return True


def _cut_in_mid_line(path: Path, rng: random.Random) -> bool:
    """Cut within a random line, so that all lines after it are gone, too."""
    lines = path.read_bytes().splitlines(keepends=True)
    if not lines:
        return False
    number = rng.randrange(len(lines))
    os.truncate(path, sum(map(len, lines[:number])) + rng.randrange(1, len(lines[number])))
    return True


def _append_garbage(path: Path, rng: random.Random) -> bool:
    """Random bytes, zeros (what a file system leaves after a power cut), or a half of the file once more."""
    size = rng.randrange(1, 5000)
    content = rng.choice((rng.randbytes(size), bytes(size), path.read_bytes()[: size or None]))
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
    return bool(content)


_DAMAGE: dict[Fault, tuple[str, Callable[[Path, random.Random], bool]]] = {
    Fault.LIVE_PART_DELETED: (".prep/open/*.part", _delete),
    Fault.LIVE_PART_GARBAGE: (".prep/open/*.part", _append_garbage),
    Fault.LIVE_JOURNAL_GARBAGE: (".prep/journal/*.jsonl", _append_garbage),
    Fault.PART_DELETED: (".prep/open/*.part", _delete),
    Fault.PART_CUT: (".prep/open/*.part", _cut),
    Fault.PART_GARBAGE: (".prep/open/*.part", _append_garbage),
    Fault.JOURNAL_CUT: (".prep/journal/*.jsonl", _cut_in_mid_line),
    Fault.JOURNAL_GARBAGE: (".prep/journal/*.jsonl", _append_garbage),
    Fault.SHARD_DELETED: ("data-*.arrow", _delete),
    Fault.SHARD_CUT: ("data-*.arrow", _cut),
}
