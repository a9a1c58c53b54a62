"""One incarnation of a worker as its parent sees it: the process and the three things between them.

Everything here is used once: a dead worker's queue is discarded, never handed to its successor.
"""

import contextlib
import multiprocessing.process
import os
import queue
import signal
import time
from collections.abc import Iterator, Mapping
from multiprocessing.context import SpawnContext
from pathlib import Path

import msgspec

from ...core.paths import OutputPaths
from .board import Board
from .decide import QUEUE_DEPTH
from .guard import DRAIN, PARENT_SIGNALS, STACKS_SIGNAL, remove_if_empty
from .messages import FromWorker, Task, receive
from .orders import WorkerOrders
from .worker import worker_main

JOIN_S = 5.0
"""How long a process that was killed may take to be gone: longer means that it hangs in the kernel (a dead mount)."""
STACKS_S = 1.0
"""How long a stuck worker may take to write its stacks; a signal handler does it, in milliseconds."""


class WorkerHandle:
    """A started worker process. ``close`` must be called in the end, dead or alive."""

    def __init__(self, context: SpawnContext, orders: WorkerOrders, environment: Mapping[str, str]) -> None:
        self.rank = orders.rank
        self.run_id = orders.run_id
        paths = OutputPaths(Path(orders.output_dir))
        self.journal = paths.journal(orders.rank, orders.run_id)
        self._stacks = paths.worker_stacks(orders.rank, orders.run_id)
        self._log = paths.worker_log(orders.rank, orders.run_id)
        self._killed_at: float | None = None
        self.board = Board.create(Path(orders.board_path), orders.threads.most)
        self._inbox = context.Queue(maxsize=QUEUE_DEPTH + 1)  # + 1: the None that ends it
        self._inbox.cancel_join_thread()
        lifeline_read, self._lifeline = context.Pipe(duplex=False)
        self.outbox, outbox_write = context.Pipe(duplex=False)
        self._process = context.Process(
            target=worker_main,
            args=(orders, self._inbox, outbox_write, lifeline_read, os.getpid()),
            name=f"prep-rank{orders.rank}",
        )
        with _environment(environment), signals_blocked():
            self._process.start()
        lifeline_read.close()  # the parent's copies: an end of file must be seen when the worker is gone
        outbox_write.close()

    @property
    def sentinel(self) -> int:
        """Ready when the process has ended."""
        return self._process.sentinel

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it lives; negative: the signal that killed it. Needs no sentinel, which a grandchild may hold."""
        return self._process.exitcode

    @property
    def is_unkillable(self) -> bool:
        """SIGKILL does not end it: it hangs in the kernel, as with a dead mount, and may do so for hours."""
        return self._killed_at is not None and self.exit_code is None and time.monotonic() - self._killed_at > JOIN_S

    def send(self, task: Task) -> None:
        """Put a task into the inbox. Never blocks: ``decide`` keeps at most ``QUEUE_DEPTH`` there."""
        self._inbox.put_nowait(msgspec.msgpack.encode(task))

    def finish(self) -> None:
        """No more tasks will come."""
        with contextlib.suppress(queue.Full):
            self._inbox.put_nowait(None)

    def drain(self) -> None:
        """Ask it to stop after the chunk on the encoder."""
        with contextlib.suppress(OSError):
            self._lifeline.send_bytes(DRAIN)

    def messages(self) -> Iterator[FromWorker]:
        """What lies in the outbox now; ends at an empty pipe or a dead worker's last word."""
        with contextlib.suppress(EOFError, OSError):
            while self.outbox.poll():
                yield receive(self.outbox)

    def dump_stacks(self) -> None:
        """Have it write the stacks of its threads into its stacks file, and wait for them."""
        self._signal(STACKS_SIGNAL)
        deadline, before, now = time.monotonic() + STACKS_S, 0, 0
        while time.monotonic() < deadline and not (now and now == before):
            time.sleep(0.05)
            before, now = now, _size(self._stacks)

    def evidence(self) -> tuple[Path, ...]:
        """Files that tell of its end: its stacks after a crash or a stall, and what it wrote to stderr."""
        return tuple(path for path in (self._stacks, self._log) if _size(path))

    def kill(self) -> None:
        """SIGKILL; its end shows at the sentinel."""
        self._killed_at = self._killed_at or time.monotonic()
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def reap(self) -> None:
        """Wait for the end that the sentinel announced: its pipe closes a moment before the exit code is there."""
        self._process.join(JOIN_S)

    def describe_end(self) -> str:
        """How it ended, for people."""
        code = self.exit_code
        if code is None or code >= 0:
            guard = (
                " (a script that calls run() needs `if __name__ == '__main__':` around it)"
                if self.board.loading
                else ""
            )
            return f"ended with exit code {code}{guard}"
        hint = " (often the kernel's out-of-memory killer: see dmesg)" if -code == signal.SIGKILL else ""
        return f"killed by {_signal_name(-code)}{hint}"

    def is_stopped(self) -> bool:
        """Whether somebody sent it SIGSTOP (state T): then it is not its decoder that hangs."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in "Tt"

    def close(self) -> None:
        """Kill it if it lives, reap it, and free everything, its empty logs included."""
        if self._process.is_alive():
            self.kill()
        self._process.join(JOIN_S)
        if self._process.is_alive():
            multiprocessing.process._children.discard(self._process)  # type: ignore[attr-defined]  # else we can't exit
        self._inbox.close()
        self._lifeline.close()
        self.outbox.close()
        with contextlib.suppress(OSError):
            self.board.remove()
        for path in (self._log, self._stacks):
            remove_if_empty(path)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _signal_name(number: int) -> str:
    """Real-time signals have no names in Python."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """A spawned process takes over the environment at its start, before any of our code runs in it."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """A child without handlers yet (and multiprocessing's resource tracker) must not be killed by a group's signal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PARENT_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
