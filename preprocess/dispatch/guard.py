"""What ties a worker to its parent: it never outlives it, and obeys nobody else.

Ctrl-C and scancel reach whole process groups, so a worker ignores the signals that the parent takes as *drain*. A worker
that waits in ``Queue.get()`` would never see its parent die (it holds a write end of that pipe itself): the kernel kills it
(PR_SET_PDEATHSIG), and where that doesn't reach (the parent thread that started it is gone) the lifeline's end does.
"""

import contextlib
import ctypes
import faulthandler
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

PARENT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Blocked in the parent around a start, ignored by workers."""
STACKS_SIGNAL = signal.SIGRTMIN + 3
"""Makes a worker write the stacks of all its threads into its stacks file."""
DRAIN = b"d"
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent's starting thread ends; exit now if that has happened."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def obey_parent_only() -> None:
    """Ignore what reaches the whole process group, then unblock what the parent blocked around the start."""
    for number in PARENT_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PARENT_SIGNALS)


def dump_stacks_into(path: Path) -> None:
    """Write all stacks into ``path`` on a crash (SIGSEGV, SIGABRT, ...) and on ``STACKS_SIGNAL``.

    Where the disk refuses the file there are none: what matters will meet the disk soon enough.
    """
    try:
        file = path.open("w")  # stays open: faulthandler writes to its descriptor from a signal handler
    except OSError:
        signal.signal(STACKS_SIGNAL, signal.SIG_IGN)
        return
    faulthandler.enable(file, all_threads=True)
    faulthandler.register(STACKS_SIGNAL, file, all_threads=True)


def log_stderr_into(path: Path) -> None:
    """Send file descriptor 2 into ``path``: mpg123, cuDNN and others write there past Python, into the progress bar."""
    with contextlib.suppress(OSError):  # a disk that refuses it will be told of by who must write
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.dup2(file, 2)
        os.close(file)


def remove_if_empty(path: Path) -> None:
    """Delete a log that nothing was written to."""
    with contextlib.suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()


def watch_lifeline(lifeline: Connection, on_drain: Callable[[], None]) -> None:
    """A daemon thread: ``on_drain`` when the parent asks for it, the end of this process when the parent is gone."""

    def watch() -> None:
        while True:
            try:
                if lifeline.recv_bytes() == DRAIN:
                    on_drain()
            except (EOFError, OSError):
                os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
