"""A lock on one part of the plan in an output folder: one run at a time, and no lock outlives its run for long.

The parts of one division (part 3 of 8) work side by side; a part excludes the same part, and every part of another
division, whose chunks are other ones. A whole run is part 1 of 1. Each takes its own lock first and looks at all others
then, so of two that come at once at least one sees the other, and gives up; both may.

Created O_EXCL, a lock holds who works here (lock_holder.py) and a heartbeat that changes every ``BEAT_S``, by which others
see whether it is stale (lock_watch.py).

A run that stood still so long that another one took its lock over must not write metadata: ``Lock.check`` tells it.
"""

import contextlib
import errno
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ..core.errors import OutputError
from ..core.paths import WHOLE, OutputPaths, Part, parse_lock_name
from ..writers.atomic import disk_errors
from .lock_holder import Holder, myself, read_lock
from .lock_watch import BEAT_S, STALE_S, LockState, LockWatch

_log = logging.getLogger(__name__)

_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP}
"""What FAT and some FUSE file systems answer."""
_LOOKS = 12
"""At another machine's lock, within ``STALE_S``."""


class Lock:
    """A lock that is held."""

    def __init__(self, path: Path, me: Holder) -> None:
        self._path, self._me = path, me

    def check(self) -> None:
        """Raise OutputError if another run has taken it over; one that somebody deleted is made again."""
        if (held := read_lock(self._path)) is None:
            with contextlib.suppress(OSError):
                _create(self._path, self._me)
            held = read_lock(self._path)
        if held is not None and held.token != self._me.token:
            raise _taken_over(self._path, held)


@contextlib.contextmanager
def part_lock(
    paths: OutputPaths,
    part: Part = WHOLE,
    *,
    wait: Callable[[float], None] = time.sleep,
    stale_s: float = STALE_S,
) -> Iterator[Lock]:
    """Hold the lock of one part. Raises OutputError if a living run holds it, or one of another division of the plan."""
    path = paths.lock(part)
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    me = myself()
    _take(path, me, wait, stale_s)
    stop = threading.Event()
    beats = threading.Thread(target=_beat, args=(path, me, stop), name="lock", daemon=True)
    beats.start()
    try:
        _refuse_rivals(paths, part, wait, stale_s)
        yield Lock(path, me)
    finally:
        stop.set()
        beats.join()
        _drop(path, me)


def _take(path: Path, me: Holder, wait: Callable[[float], None], stale_s: float) -> None:
    while not _create(path, me):
        if (living := _first_living([path], wait, stale_s)) is not None:
            raise _held(*living)


def _refuse_rivals(paths: OutputPaths, part: Part, wait: Callable[[float], None], stale_s: float) -> None:
    """Called with the own lock in place: of two runs that come at once at least one sees the other."""
    rivals = [paths.lock(other) for other in locked_parts(paths) if other.count != part.count]
    if (living := _first_living(rivals, wait, stale_s)) is not None:
        raise _held(*living)


def locked_parts(paths: OutputPaths) -> list[Part]:
    """The parts that have a lock, be its holder alive or not."""
    with contextlib.suppress(FileNotFoundError):
        names = (parse_lock_name(name) for name in os.listdir(paths.work))
        return sorted(part for part in names if part is not None)
    return []


def _first_living(paths: Sequence[Path], wait: Callable[[float], None], stale_s: float) -> tuple[Path, Holder] | None:
    """One of these locks whose holder lives; None if there is none, and then the stale ones are removed.

    Locks of other machines are watched all at once, so a hundred dead nodes cost no more time than one.
    """
    elapsed = 0.0
    watch = LockWatch(stale_s, now=lambda: elapsed)
    while True:
        looks = [watch.look(path) for path in paths]
        for look in looks:
            if look.state is LockState.LIVING:
                return look.path, look.holder
        if all(look.state is not LockState.UNKNOWN for look in looks):
            break
        if not elapsed:
            _log.warning("locks of other machines are watched for up to %.0f s: do their holders live?", stale_s)
        wait(stale_s / _LOOKS)
        elapsed += stale_s / _LOOKS
    for look in looks:
        if look.state is LockState.STALE:
            _remove_stale(look.path, look.holder)
    return None


def _create(path: Path, me: Holder) -> bool:
    """Create the lock whole: written beside, then linked, so that nobody reads half of it."""
    temporary = path.with_name(f"{path.name}.{me.token}.new")
    with disk_errors(path):
        try:
            _write(temporary, me)
            _link(temporary, path, me)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
    return True


def _link(temporary: Path, path: Path, me: Holder) -> None:
    """Raises FileExistsError if ``path`` is there. Where there are no hard links, somebody may read half of it: he waits."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write(path, me, mode="xb")


def _write(path: Path, holder: Holder, mode: Literal["wb", "xb"] = "wb") -> None:
    """On disk when this returns: a power cut must not leave an empty lock, whose holder nobody can look up."""
    with path.open(mode) as file:
        file.write(msgspec.json.encode(holder))
        file.flush()
        os.fsync(file.fileno())


def _remove_stale(path: Path, holder: Holder) -> None:
    """Move it away under a name of its own, and put it back if it was somebody else's new one after all."""
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}.stale")
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, aside)
        found = read_lock(aside)
        if found is not None and found.token != holder.token:
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
        aside.unlink()


def _beat(path: Path, me: Holder, stop: threading.Event) -> None:
    beat = 0
    while not stop.wait(BEAT_S):
        beat += 1
        temporary = path.with_name(f"{path.name}.{me.token}.beat")
        with contextlib.suppress(OSError):  # a full disk must not end the run from here; the next beat tries again
            if (held := read_lock(path)) is None:
                _create(path, me)
                continue
            if held.token != me.token:
                continue
            _write(temporary, msgspec.structs.replace(me, beat=beat))
            os.replace(temporary, path)


def _drop(path: Path, me: Holder) -> None:
    with contextlib.suppress(OSError):
        if (held := read_lock(path)) is not None and held.token == me.token:
            path.unlink()


def _held(path: Path, holder: Holder) -> OutputError:
    job = f", job {holder.job}" if holder.job else ""
    part = parse_lock_name(path.name) or WHOLE
    which = "another run" if part == WHOLE else f"a run of part {part}"
    return OutputError(
        f"{which} is working in {path.parent.parent}: process {holder.pid} on {holder.host}{job}",
        why="two runs on one part of an output folder would write the same rows twice",
        fix="wait for it or stop it; if it is dead, run again: a dead run's lock is noticed within two minutes",
    )


def _taken_over(path: Path, holder: Holder) -> OutputError:
    return OutputError(
        f"process {holder.pid} on {holder.host} has taken {path.parent.parent} over",
        why=f"this run stood still for more than {STALE_S:.0f} s and was taken for dead",
        fix="let the other run finish; what this one committed is kept",
    )
