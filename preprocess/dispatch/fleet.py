"""``Fleet``: starts the workers, hands out chunks, listens, and does what ``decide`` says.

One loop on the parent's main thread: wait for messages, process ends, signals or a second; turn each into an event;
act. All waiting is on pipes and sentinels, never on something that a dead process should fill.
"""

import multiprocessing
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType

from ...core.errors import DiskError, PrepError, Stopped, WorkerError
from ...core.units import samples_to_seconds
from ...writers.atomic import disk_errors
from ...writers.journal import CommittedChunk, committed_chunks
from .. import events
from ..plan.plans import Plans
from . import decide as rules
from .board import Board
from .death import examine
from .handle import WorkerHandle, signals_blocked
from .messages import Closed, Committed, Failed, Finished, FromWorker, HandedBack, Measured, Ready, Remark, Taken
from .orders import FleetOrders, worker_orders
from .stages import StageTotals
from .stop import StopRequests
from .trouble import cannot_start, disk_error, output_trouble
from .watchdog import Verdict, Watchdog

TICK_S = 1.0
"""How often the boards are looked at when nothing else happens."""
WATCH_EVERY_S = 0.5
"""How often they are looked at when much happens: small chunks commit hundreds of times a second."""
STAGES_EVERY_S = 5.0
FLOAT16_ROUNDING = 5e-4
"""Largest relative error of the cast that follows: what a precision's own error is to be seen against."""


class Fleet:
    """The workers of one run. Use as a context manager: leaving it ends and reaps every process."""

    def __init__(self, orders: FleetOrders, plan: Plans, on_event: events.EventSink, stop: StopRequests) -> None:
        self._orders, self._plan, self._on_event, self._stop = orders, plan, on_event, stop
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, WorkerHandle] = {}
        self._ended: set[int] = set()
        self._dismissed: set[int] = set()
        self._last_words: dict[int, Failed] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._told: set[str] = set()
        self._watchdog = Watchdog(orders.config.supervision)
        self._stages = StageTotals()
        self._state = rules.start((), ())
        self._error: PrepError | None = None
        self._next_watch = self._next_stages = 0.0
        self.ready_at: float | None = None
        """Monotonic time of the first worker's readiness."""
        self.precision_error: float | None = None
        """The largest that a worker measured; None if none did."""

    def __enter__(self) -> "Fleet":
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
        for rank in self._alive():
            self._workers[rank].kill()
        for worker in self._workers.values():
            worker.close()
        shutil.rmtree(self._boards, ignore_errors=True)

    # ---- the run

    def run(self, todo: tuple[int, ...]) -> None:
        """Do all chunks of ``todo``. Returns when every one is committed and every worker has ended.

        Raises Stopped after a signal, DiskError if the output can't be written, WorkerError if it gives up.
        """
        ranks = tuple(range(min(self._orders.devices.num_ranks, len(todo))))
        self._state = rules.start(todo, ranks)
        for rank in ranks:
            self._spawn(rank)
        self._until(lambda: self._state.remaining == 0)
        for rank in self._alive():
            self._end(rank, WorkerHandle.finish)
        self._until(lambda: not self._alive())
        self._report_stages()

    def stage_seconds(self) -> tuple[events.StageSeconds, ...]:
        """Busy seconds per rank, over all incarnations."""
        return tuple(self._stages.with_board(rank, self._board(rank)) for rank in sorted(self._workers))

    def _board(self, rank: int) -> Board | None:
        return None if rank in self._ended else self._workers[rank].board

    def _alive(self) -> list[int]:
        """Ranks whose end has not been dealt with."""
        return [rank for rank in self._workers if rank not in self._ended]

    def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._step()
            if self._error is not None:
                self._drain(self._error.what.partition("\n")[0])
            if self._stop.immediately or (self._stop.asked and self._state.remaining):
                self._drain(f"{self._stop.name} received")

    def _step(self) -> None:
        by_pipe = {self._workers[rank].outbox: rank for rank in self._alive()}
        by_sentinel = {self._workers[rank].sentinel: rank for rank in self._alive()}
        ready = set(wait([*by_pipe, *by_sentinel, self._stop.fileno()], timeout=TICK_S))
        for rank in [rank for pipe, rank in by_pipe.items() if pipe in ready]:
            self._listen(rank)
        for rank in [rank for sentinel, rank in by_sentinel.items() if sentinel in ready or self._is_gone(rank)]:
            self._bury(rank)
        self._stop.clear()
        now = time.monotonic()
        if now >= self._next_watch:
            self._next_watch = now + WATCH_EVERY_S
            self._watch()
        if now >= self._next_stages:
            self._next_stages = now + STAGES_EVERY_S
            self._report_stages()

    def _is_gone(self, rank: int) -> bool:
        """Its sentinel may be silent: a grandchild holds it, or the process hangs in the kernel."""
        worker = self._workers[rank]
        return worker.exit_code is not None or worker.is_unkillable

    # ---- messages

    def _listen(self, rank: int) -> None:
        for message in self._workers[rank].messages():
            self._heard(rank, message)

    def _heard(self, rank: int, message: FromWorker) -> None:
        match message:
            case Ready(device, seconds):
                self.ready_at = self.ready_at or time.monotonic()
                self._on_event(events.WorkerReady(rank, device, seconds))
                self._decide(rules.RankReady(rank))
            case Measured(error):
                self._measured(rank, error)
            case Taken(chunk_id):
                self._decide(rules.TaskTaken(rank, chunk_id))
            case Committed(chunk_id, num_rows, num_skipped):
                self._committed(rank, CommittedChunk(chunk_id, num_rows, num_skipped))
            case HandedBack(chunk_id):
                self._decide(rules.TaskHandedBack(rank, chunk_id))
            case Closed(name, num_rows, num_bytes):
                self._on_event(events.ShardClosed(rank, name, num_rows, num_bytes))
            case Failed():
                self._last_words[rank] = message
            case Finished():
                pass  # its end follows
            case Remark(text, topic):
                if not topic or topic not in self._told:
                    self._on_event(events.Notice("warning", f"rank {rank}: {text}"))
                self._told.add(topic)

    def _measured(self, rank: int, error: float) -> None:
        precision = self._orders.config.encoder.precision
        text = f"rank {rank}: {precision} latents differ from strict float32 by {error:.1e} relative"
        self._on_event(events.Notice("info", f"{text} (rounding to float16: {FLOAT16_ROUNDING:.0e})"))
        self.precision_error = max(self.precision_error or 0.0, error)

    def _committed(self, rank: int, chunk: CommittedChunk) -> None:
        if chunk.chunk_id not in self._state.ranks[rank].chunks:
            return
        self._decide(rules.TaskCommitted(rank, chunk.chunk_id))
        self._on_event(
            events.ChunkDone(
                rank=rank,
                chunk_id=chunk.chunk_id,
                num_rows=chunk.num_rows,
                num_skipped=chunk.num_skipped,
                audio_seconds=samples_to_seconds(
                    int(self._plan.chunk_samples[chunk.chunk_id]), self._plan.spec.sample_rate
                ),
            )
        )

    # ---- ends

    def _bury(self, rank: int) -> None:
        """A process is gone: hear its last messages, believe its journal, then decide."""
        worker = self._workers[rank]
        worker.reap()
        self._listen(rank)
        self._stages.keep(rank, worker.board)
        self._ended.add(rank)
        self._believe_journal(rank, worker)
        last_words = self._last_words.pop(rank, None)
        if trouble := disk_error(last_words) or output_trouble(self._orders.paths):
            self._fail(trouble)
        as_told = rank in self._dismissed or (worker.exit_code == 0 and self._state.over)
        if as_told or (last_words is not None and last_words.kind == "disk"):
            self._decide(rules.RankLeft(rank))
        else:
            self._lost(rank, worker, last_words)

    def _believe_journal(self, rank: int, worker: WorkerHandle) -> None:
        try:
            with disk_errors(worker.journal):
                for chunk in committed_chunks(worker.journal):
                    self._committed(rank, chunk)
        except DiskError as error:
            self._fail(error)

    def _lost(self, rank: int, worker: WorkerHandle, last_words: Failed | None) -> None:
        death = examine(worker, last_words, self._verdicts.pop(rank, None))
        self._on_event(events.WorkerLost(rank, death.cause, tuple(self._name(*clip) for clip in death.clips)))
        died = rules.RankDied(rank, death.cause, external=death.external, suspects=death.suspects, hung=death.hung)
        self._decide(died)

    def _name(self, chunk_id: int, row: int) -> str:
        clip = self._plan.chunk(chunk_id).slice(row, 1).to_pylist()[0]
        return f"{clip['dataset_name']}/{clip['item_name']} ({clip['audio_path']})"

    # ---- decisions

    def _decide(self, event: rules.FleetEvent) -> None:
        self._state, actions = rules.decide(self._state, event)
        for action in actions:
            self._act(action)

    def _act(self, action: rules.Action) -> None:
        match action:
            case rules.Assign(rank, task):
                self._workers[rank].send(task)
            case rules.Respawn(rank):
                self._spawn(rank)
            case rules.LeaveOut(rank, cause):
                self._on_event(events.Notice("error", f"rank {rank} is left out, it can't start: {cause}"))
            case rules.Exclude(clip, code):
                self._on_event(events.Notice("warning", f"{self._name(*clip)} is skipped: {code}"))
            case rules.Drain():
                for rank in self._alive():
                    self._end(rank, WorkerHandle.drain)
            case rules.GiveUp(reason):
                why = f"{self._state.remaining} chunks are not done; what is committed is kept"
                fix = "mend the cause, then run the same command to go on"
                self._error = self._error or WorkerError(reason, why=why, fix=fix)

    def _spawn(self, rank: int) -> None:
        if rank in self._workers:
            self._workers[rank].close()
        self._watchdog.forget(rank)
        orders = worker_orders(self._orders, rank, uuid.uuid4().hex[:12], self._boards)
        try:
            with disk_errors(self._boards):
                self._workers[rank] = WorkerHandle(self._context, orders, self._orders.devices.environments[rank])
        except OSError as error:
            raise cannot_start(error) from error
        self._ended.discard(rank)

    def _end(self, rank: int, ask: Callable[[WorkerHandle], None]) -> None:
        """Have a worker end: by asking it, or at once if it is still loading, since it has nothing to lose."""
        if self._workers[rank].board.loading:
            self._dismissed.add(rank)
            self._workers[rank].kill()
        else:
            ask(self._workers[rank])

    # ---- watching

    def _watch(self) -> None:
        self._watchdog.tick()
        for rank in self._alive():
            worker = self._workers[rank]
            busy = worker.board.loading or self._state.ranks[rank].chunks or self._state.over
            if not busy or rank in self._verdicts or rank in self._dismissed:
                self._watchdog.forget(rank)
            elif (verdict := self._watchdog.look(rank, worker)) is not None:
                self._verdicts[rank] = verdict
                worker.dump_stacks()
                worker.kill()

    def _report_stages(self) -> None:
        for stages in self.stage_seconds():
            self._on_event(stages)

    # ---- stopping

    def _fail(self, error: PrepError) -> None:
        """End the run with this error; nobody is started any more."""
        self._error = self._error or error
        self._decide(rules.DrainAsked())

    def _drain(self, why: str) -> None:
        """Let the workers finish what is on their encoders, for a limited time, then raise."""
        patience = self._orders.config.supervision.stop_s
        deadline = time.monotonic() + patience
        self._decide(rules.DrainAsked())
        chunks = sum(len(rank.begun) for rank in self._state.ranks.values())
        waits = f"waiting up to {patience:.0f} s for {chunks} chunks in flight on {len(self._alive())} workers"
        self._on_event(events.Notice("warning", f"{why}: stopping; {waits}"))
        while self._alive() and time.monotonic() < deadline and not self._stop.immediately:
            self._step()
        if left := self._alive():
            text = f"{len(left)} workers are ended at once; what they had not committed is done again next time"
            self._on_event(events.Notice("warning", text))
        self._raise(why)

    def _raise(self, why: str) -> None:
        open_chunks = list(self._state.open)
        if isinstance(self._error, DiskError):
            need = int(self._plan.chunks.row_bytes[open_chunks].sum())
            reason = f"{self._error.why}; the {len(open_chunks)} chunks left need about {need:,} bytes"
            raise DiskError(self._error.what, why=reason, fix=self._error.fix)
        raise self._error or Stopped(
            f"{why}: stopped with {len(open_chunks)} of {len(self._state.todo)} chunks to do",
            why="what is committed is kept",
            fix="run the same command to go on",
        )
