"""A lock on one part of the plan in an output folder: one run at a time, and no lock outlives its run for long.

Created O_EXCL, it holds who works here and a heartbeat that changes every ``BEAT_S``. A lock of this machine is stale
when its process is gone (another start time, another boot, or no such pid). A lock of another machine is stale when its
*content* has not changed for ``STALE_S`` of the observer's own clock: clocks of two machines are never compared.
"""

import contextlib
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ..core.errors import OutputError
from ..core.paths import OutputPaths
from ..writers.atomic import disk_errors

_log = logging.getLogger(__name__)

BEAT_S = 20.0
STALE_S = 120.0
"""Six missed beats: a node that is that late has lost its file system or its life."""


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


def myself() -> Holder:
    """This process as a holder."""
    return Holder(
        host=socket.gethostname(),
        boot_id=boot_id(),
        pid=os.getpid(),
        started=process_start(os.getpid()) or 0,
        job=os.environ.get("SLURM_JOB_ID", ""),
        token=uuid.uuid4().hex,
    )


@contextlib.contextmanager
def part_lock(
    paths: OutputPaths, part: int = 1, *, wait: Callable[[float], None] = time.sleep, stale_s: float = STALE_S
) -> Iterator[None]:
    """Hold the lock of one part. Raises OutputError if a living run holds it."""
    path = paths.lock(part)
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    me = myself()
    _take(path, me, wait, stale_s)
    stop = threading.Event()
    beats = threading.Thread(target=_beat, args=(path, me, stop), name="lock", daemon=True)
    beats.start()
    try:
        yield
    finally:
        stop.set()
        beats.join()
        _drop(path, me)


def _take(path: Path, me: Holder, wait: Callable[[float], None], stale_s: float) -> None:
    while not _create(path, me):
        holder = _read(path)
        if holder is None:
            continue  # gone in between, or being written
        if not _is_stale(path, holder, wait, stale_s):
            raise _held(path, holder)
        _remove_stale(path, holder)


def _create(path: Path, me: Holder) -> bool:
    """Create the lock whole: written beside, then linked, so that nobody reads half of it."""
    temporary = path.with_name(f"{path.name}.{me.token}.new")
    with disk_errors(path):
        try:
            _write(temporary, me)
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
    return True


def _write(path: Path, holder: Holder) -> None:
    """On disk when this returns: a power cut must not leave an empty lock, whose holder nobody can look up."""
    with path.open("wb") as file:
        file.write(msgspec.json.encode(holder))
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> Holder | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:
        return Holder(host="?", boot_id="?", pid=0, started=0, job="", token="")  # damaged: judged by its silence


def _is_stale(path: Path, holder: Holder, wait: Callable[[float], None], stale_s: float) -> bool:
    if holder.host == socket.gethostname() and holder.boot_id == boot_id():
        return process_start(holder.pid) != holder.started
    if holder.host == socket.gethostname() and holder.boot_id:
        return True  # this machine, before its last boot
    _log.warning(
        "watching the lock of process %d on %s for up to %.0f s: does it live?", holder.pid, holder.host, stale_s
    )
    content = path.read_bytes() if path.exists() else b""
    for _ in range(12):
        wait(stale_s / 12)
        if not path.exists() or path.read_bytes() != content:
            return False
    return True


def _remove_stale(path: Path, holder: Holder) -> None:
    """Move it away under a name of its own, and put it back if it was somebody else's new one after all."""
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}.stale")
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, aside)
        found = _read(aside)
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
            if (held := _read(path)) is None or held.token != me.token:
                continue
            _write(temporary, msgspec.structs.replace(me, beat=beat))
            os.replace(temporary, path)


def _drop(path: Path, me: Holder) -> None:
    with contextlib.suppress(OSError):
        if (held := _read(path)) is not None and held.token == me.token:
            path.unlink()


def _held(path: Path, holder: Holder) -> OutputError:
    job = f", job {holder.job}" if holder.job else ""
    return OutputError(
        f"another run is working in {path.parent.parent}: process {holder.pid} on {holder.host}{job}",
        why="two runs on one part of an output folder would write the same rows twice",
        fix="wait for it or stop it; if it is dead, run again: a dead run's lock is noticed within two minutes",
    )
