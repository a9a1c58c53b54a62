"""``Crew``: the worker processes of a run, one living incarnation a rank, and the folder of their boards."""

import multiprocessing
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from multiprocessing import resource_tracker
from pathlib import Path
from types import TracebackType

from ...writers.atomic import disk_errors
from ..events import StageSeconds
from .handle import WorkerHandle, signals_blocked
from .orders import FleetOrders, worker_orders
from .stages import StageTotals
from .trouble import cannot_start


class Crew:
    """Use as a context manager: leaving it ends and reaps every process."""

    def __init__(self, orders: FleetOrders) -> None:
        self._orders = orders
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, WorkerHandle] = {}
        self._buried: set[int] = set()
        self._stages = StageTotals()

    def __enter__(self) -> "Crew":
        try:
            with disk_errors(Path(tempfile.gettempdir())):
                self._boards = Path(tempfile.mkdtemp(prefix="prep-boards-"))
            with signals_blocked():  # a signal to the whole group must not end the tracker
                resource_tracker.ensure_running()
        except OSError as error:
            raise cannot_start(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.living.values():
            worker.kill()
        for worker in self._workers.values():
            worker.close()
        shutil.rmtree(self._boards, ignore_errors=True)

    def spawn(self, rank: int) -> None:
        """Start a rank's first or next incarnation.

        Raises DiskError or WorkerError if the machine has no room for it.
        """
        if rank in self._workers:
            self._workers[rank].close()
        orders = worker_orders(self._orders, rank, uuid.uuid4().hex[:12], self._boards)
        try:
            with disk_errors(self._boards):
                self._boards.mkdir(mode=0o700, exist_ok=True)  # a cleaner of temporary folders may have been here
                self._workers[rank] = WorkerHandle(self._context, orders, self._environment(rank))
        except OSError as error:
            raise cannot_start(error) from error
        self._buried.discard(rank)

    def _environment(self, rank: int) -> Mapping[str, str]:
        return self._orders.devices.environments[self._orders.device_of(rank)]

    def bury(self, rank: int) -> WorkerHandle:
        """Note that a process has ended; returns what is left of it."""
        worker = self._workers[rank]
        worker.reap()
        self._stages.keep(rank, worker.board)
        self._buried.add(rank)
        return worker

    def __getitem__(self, rank: int) -> WorkerHandle:
        return self._workers[rank]

    @property
    def living(self) -> dict[int, WorkerHandle]:
        """Workers whose end has not been dealt with, by rank."""
        return {rank: worker for rank, worker in self._workers.items() if rank not in self._buried}

    def stage_seconds(self) -> tuple[StageSeconds, ...]:
        """Busy seconds per rank, over all incarnations."""
        boards = {rank: worker.board for rank, worker in self.living.items()}
        return tuple(self._stages.with_board(rank, boards.get(rank)) for rank in sorted(self._workers))
