"""``DecodeThreads``: a pool whose number of active threads can change while it runs.

Unlike a ``ThreadPoolExecutor`` behind a gate, a thread that is not active takes no job, so that jobs begin in the order
in which they came: the encoder waits for the oldest. A thread that becomes inactive finishes the job it waits for.
The threads are daemons: a decoder that hangs must not keep the process.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")
_Job = Callable[[int], None]


class DecodeThreads:
    """Runs jobs, each of which is told the number of its thread, from 0 to ``most`` - 1."""

    def __init__(self, most: int, active: int) -> None:
        self.most = most
        self._active = active
        self._changed = threading.Condition()
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        for number in range(most):
            threading.Thread(target=self._run, args=(number,), name=f"decode_{number}", daemon=True).start()

    @property
    def active(self) -> int:
        return self._active

    def resize(self, active: int) -> None:
        """Have this many threads take jobs: 1 to ``most``."""
        assert 1 <= active <= self.most
        with self._changed:
            self._active = active
            self._changed.notify_all()

    def submit(self, job: Callable[[int], Result]) -> "Future[Result]":
        """Have a thread call ``job`` with its number."""
        future: Future[Result] = Future()

        def run(number: int) -> None:
            try:
                result = job(number)
            except BaseException as error:  # it is the waiter's
                future.set_exception(error)
            else:
                future.set_result(result)

        self._jobs.put(run)
        return future

    def _run(self, number: int) -> None:
        while True:
            if number >= self._active:
                with self._changed:
                    self._changed.wait_for(lambda: number < self._active)
            self._jobs.get()(number)
