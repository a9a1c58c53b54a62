"""Processes as ``/proc`` shows them: whose child one is, whether it lives, and what is sent to it."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

_WORKER = b"spawn_main"
_TRACKER = b"resource_tracker"


def workers_of(parent: int) -> list[int]:
    """Worker processes that ``parent`` has started and that live, stopped ones included."""
    return [pid for pid in _children(parent) if _WORKER in _command_line(pid) and state(pid) is not None]


def trackers_of(parent: int) -> list[int]:
    """multiprocessing's own helper process, which notes semaphores that have to be removed."""
    return [pid for pid in _children(parent) if _TRACKER in _command_line(pid) and state(pid) is not None]


def state(pid: int) -> str | None:
    """R, S, D, T, ... of a living process; None of one that is gone or waits to be reaped."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None
    return None if letter in "ZX" else letter


def send(pid: int, number: int) -> bool:
    """Send a signal; False if the process is gone."""
    if state(pid) is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def marked(mark: str) -> list[int]:
    """Living processes that have ``mark`` in the environment they were started with."""
    return [pid for pid in _all() if state(pid) is not None and mark.encode() in _read(f"/proc/{pid}/environ")]


def wait_gone(mark: str, seconds: float) -> list[int]:
    """Wait until no process with the mark lives; returns those that still do after ``seconds``."""
    deadline = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def kill_all(pids: Iterable[int]) -> None:
    """SIGKILL, which also ends stopped processes."""
    for pid in pids:
        send(pid, signal.SIGKILL)


def _children(parent: int) -> list[int]:
    return [int(pid) for pid in _read(f"/proc/{parent}/task/{parent}/children").split()]


def _command_line(pid: int) -> bytes:
    return _read(f"/proc/{pid}/cmdline")


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
