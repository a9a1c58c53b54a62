"""A lock on one part of the plan in an output folder: one run at a time, and no lock outlives its run for long.

The parts of one division (part 3 of 8) work side by side; a part excludes the same part, and every part of another
division, whose chunks are other ones. A whole run is part 1 of 1. Each takes its own lock first and looks at all others
then, so of two that come at once at least one sees the other, and gives up; both may.

Created O_EXCL, a lock holds who works here and a heartbeat that changes every ``BEAT_S``. A lock of this machine is stale
when its process is gone (another start time, another boot, or no such pid). A lock of another machine, or of another container on
this one, is stale when its *content* has not changed for ``STALE_S`` of the observer's own clock: clocks of two machines are never compared.

A run that stood still so long that another one took its lock over must not write metadata: ``Lock.check`` tells it.
"""

import contextlib
import errno
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

import msgspec

from ..core.errors import OutputError
from ..core.paths import WHOLE, OutputPaths, Part, parse_lock_name
from ..writers.atomic import disk_errors

_log = logging.getLogger(__name__)

_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP}
"""What FAT and some FUSE file systems answer."""
BEAT_S = 20.0
STALE_S = 120.0
"""Six missed beats: a node that is that late has lost its file system or its life."""
_LOOKS = 12
"""At another machine's lock, within ``STALE_S``."""
_ROUNDING_S = 1e-6


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock."""

    host: str
    boot_id: str
    pid: int
    started: int
    """Start time of the process in clock ticks since boot: tells a new process with an old pid."""
    job: str
    """SLURM job id, or empty."""
    token: str
    """Unique to one holding of the lock."""
    beat: int = 0
    namespace: str = ""
    """Of process numbers: containers of one machine have different ones."""


_NOBODY = Holder(host="", boot_id="", pid=0, started=0, job="", token="")


def boot_id() -> str:
    """Changes with every boot of the machine (and differs between containers' hosts)."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def process_start(pid: int) -> int | None:
    """Start time of a living process in clock ticks since boot; None if there is none (a zombie counts as none)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def job_name(environ: Mapping[str, str]) -> str:
    """The SLURM job of this process as SLURM's commands take it ("17", or "17_3" in an array), or empty."""
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else environ.get("SLURM_JOB_ID", "")


def pid_namespace() -> str:
    """What process numbers seen from here are counted in."""
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def myself() -> Holder:
    """This process as a holder."""
    return Holder(
        host=socket.gethostname(),
        boot_id=boot_id(),
        pid=os.getpid(),
        started=process_start(os.getpid()) or 0,
        job=job_name(os.environ),
        token=uuid.uuid4().hex,
        namespace=pid_namespace(),
    )


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


class LockState(Enum):
    """What is known about the holder of a lock."""

    FREE = "free"
    """there is no such lock"""
    LIVING = "living"
    """it works, as far as can be seen"""
    UNKNOWN = "unknown"
    """another machine's, not watched for long enough"""
    STALE = "stale"
    """its holder is dead"""


@dataclass(frozen=True, kw_only=True, slots=True)
class LockLook:
    """One look at a lock."""

    path: Path
    state: LockState
    holder: Holder


class LockWatch:
    """Looks at locks again and again, without waiting and without changing them."""

    def __init__(self, stale_s: float = STALE_S, now: Callable[[], float] = time.monotonic) -> None:
        self._stale_s, self._now = stale_s, now
        self._first_seen: dict[Path, tuple[Holder, float]] = {}
        self._moved: dict[Path, tuple[str, float]] = {}
        """Holding token and time of the last change of content."""

    def look(self, path: Path) -> LockLook:
        """What is known about a lock now."""
        holder = read_lock(path)
        if holder is None:
            self._first_seen.pop(path, None)
            return LockLook(path=path, state=LockState.FREE, holder=_NOBODY)
        return LockLook(path=path, state=self._state(path, holder), holder=holder)

    def _state(self, path: Path, holder: Holder) -> LockState:
        if (alive := _lives_here(holder)) is not None:
            return LockState.LIVING if alive else LockState.STALE
        now = self._now()
        before, since = self._first_seen.setdefault(path, (holder, now))
        if before != holder:
            self._first_seen[path] = (holder, now)
            if before.token == holder.token:
                self._moved[path] = (holder.token, now)
        if holder == before and now - since >= self._stale_s - _ROUNDING_S:
            return LockState.STALE
        return LockState.LIVING if self._moved.get(path, ("",))[0] == holder.token else LockState.UNKNOWN


def _lives_here(holder: Holder) -> bool | None:
    """Whether a holder of this machine lives; None if it is another machine's."""
    me = myself()
    if holder.host != me.host or not holder.boot_id:
        return None
    if holder.boot_id != me.boot_id:
        return False  # this machine, before its last boot
    if holder.namespace != me.namespace:
        return None  # another container: its process numbers mean nothing here
    return process_start(holder.pid) == holder.started


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


def read_lock(path: Path) -> Holder | None:
    """Who holds a lock; None if nobody does."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ESTALE:  # replaced by its next beat while it was read over NFS
            raise
        return None
    except msgspec.DecodeError:
        return Holder(host="?", boot_id="?", pid=0, started=0, job="", token="")  # damaged: judged by its silence


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
