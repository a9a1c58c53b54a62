"""``Holder``: who holds a lock, as a lock file says it, and whether such a one lives, where that can be known at once.

A process is named by machine, boot, container, number and start time: a number alone comes back with the next process.
"""

import contextlib
import errno
import os
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path

import msgspec


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


def lives_here(holder: Holder) -> bool | None:
    """Whether a holder of this machine lives; None if it is another machine's."""
    me = myself()
    if holder.host != me.host or not holder.boot_id:
        return None
    if holder.boot_id != me.boot_id:
        return False  # this machine, before its last boot
    if holder.namespace != me.namespace:
        return None  # another container: its process numbers mean nothing here
    return process_start(holder.pid) == holder.started


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
