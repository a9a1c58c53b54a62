"""``Fleet``: starts the workers, hands out chunks, listens, and does what ``decide`` says.

One loop on the parent's main thread: wait for messages, process ends, signals or a second; turn each into an event;
act. All waiting is on pipes and sentinels, never on something that a dead process should fill.
"""

import contextlib
import multiprocessing
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType

from ...core.errors import DiskError, Stopped, WorkerError
from ...writers.journal import committed_chunks
from .. import events
from . import decide as rules
from .handle import WorkerHandle
from .messages import Closed, Committed, Failed, Finished, FromWorker, HandedBack, Measured, Ready, Remark, Taken
from .orders import FleetOrders, worker_orders
from .stop import StopRequests
from .watchdog import Verdict, Watchdog

TICK_S = 1.0
"""How often the boards are looked at when nothing else happens."""
STAGES_EVERY_S = 5.0
FLOAT16_ROUNDING = 5e-4
"""Largest relative error of the cast that follows: what a precision's own error is to be seen against."""
STACKS_S = 0.2
"""Between asking a stuck worker for its stacks and killing it: the dump is written by a signal handler there."""


class Fleet:
    """The workers of one run. Use as a context manager: leaving it ends and reaps every process."""

    def __init__(
        self, orders: FleetOrders, on_event: events.EventSink, describe_clip: Callable[[int, int], str]
    ) -> None:
        self._orders = orders
        self._on_event = on_event
        self._describe_clip = describe_clip
        self._context = multiprocessing.get_context("spawn")
        self._boards = Path(tempfile.mkdtemp(prefix="prep-boards-"))
        self._workers: dict[int, WorkerHandle] = {}
        self._finished: set[int] = set()
        self._dismissed: set[int] = set()
        """Not needed any more: their end is no loss."""
        self._last_words: dict[int, Failed] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._told: set[str] = set()
        self._watchdog = Watchdog(orders.config.supervision)
        self._past_stages: dict[int, events.StageSeconds] = {}
        self._state = rules.start((), ())
        self._give_up: Exception | None = None
        self._chunk_seconds: Callable[[int], float] = lambda chunk_id: 0.0
        self.ready_at: float | None = None
        """Monotonic time of the first worker's readiness."""
        self.precision_error: float | None = None
        """The largest that a worker measured; None if none did."""

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers.values():
            worker.close()
        shutil.rmtree(self._boards, ignore_errors=True)

    # ---- the run

    def run(self, todo: tuple[int, ...], chunk_seconds: Callable[[int], float]) -> None:
        """Do all chunks of ``todo``. Returns when every one is committed and every worker has ended.

        Raises Stopped after a signal, DiskError if the output can't be written, WorkerError if it gives up.
        """
        self._chunk_seconds = chunk_seconds
        ranks = tuple(range(min(self._orders.devices.num_ranks, len(todo))))
        self._state = rules.start(todo, ranks)
        with StopRequests() as stop:
            for rank in ranks:
                self._spawn(rank)
            self._until(lambda: self._state.remaining == 0, stop)
            self._end(stop)
        self._report_stages()

    def _end(self, stop: StopRequests) -> None:
        """All is committed: every worker closes its shard and ends. One that still loads has nothing to close, and one
        that does not end is killed: what its shard lacks to be finished, salvage does."""
        patience = self._orders.config.supervision.stall_s
        deadline = time.monotonic() + patience
        for rank in self._alive():
            if self._workers[rank].board.loading:
                self._dismissed.add(rank)
                self._workers[rank].kill()
            else:
                self._workers[rank].finish()
        self._until(lambda: not self._alive() or time.monotonic() > deadline, stop)
        for rank in self._alive():
            self._verdicts[rank] = Verdict(f"it did not end within {patience:.0f} s of the last chunk")
            self._workers[rank].kill()
        self._until(lambda: not self._alive(), stop)

    def stage_seconds(self) -> tuple[events.StageSeconds, ...]:
        """Busy seconds per rank, over all incarnations."""
        return tuple(self._stages(rank) for rank in sorted(self._workers))

    def _alive(self) -> list[int]:
        return [
            rank for rank, worker in self._workers.items() if worker.exit_code is None and rank not in self._finished
        ]

    def _until(self, done: Callable[[], bool], stop: StopRequests) -> None:
        next_stages = time.monotonic() + STAGES_EVERY_S
        while not done():
            self._step(stop)
            self._raise_if_over(stop)
            if time.monotonic() >= next_stages:
                self._report_stages()
                next_stages = time.monotonic() + STAGES_EVERY_S

    def _step(self, stop: StopRequests) -> None:
        by_pipe = {w.outbox: rank for rank, w in self._workers.items() if rank not in self._finished}
        by_sentinel = {w.sentinel: rank for rank, w in self._workers.items() if rank not in self._finished}
        ready = wait([*by_pipe, *by_sentinel, stop.fileno()], timeout=TICK_S)
        for rank in {by_pipe[item] for item in ready if item in by_pipe}:  # type: ignore[index]
            self._listen(rank)
        for rank in {by_sentinel[item] for item in ready if item in by_sentinel}:  # type: ignore[index]
            self._ended(rank)
        if stop.asked:
            stop.clear()
        self._watch_boards()

    def _raise_if_over(self, stop: StopRequests) -> None:
        if stop.immediately:
            raise Stopped(f"stopped at once by a second {stop.name}", fix="run the same command to go on")
        if self._give_up is None and stop.asked and not self._state.draining:
            self._drain(f"{stop.name} received", stop)
        if self._give_up is not None:
            self._drain_and_raise(stop)

    # ---- messages and ends

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
                self._committed(rank, chunk_id, num_rows, num_skipped)
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

    def _committed(self, rank: int, chunk_id: int, num_rows: int, num_skipped: int) -> None:
        if chunk_id not in self._state.ranks[rank].chunks:
            return
        self._decide(rules.TaskCommitted(rank, chunk_id))
        seconds = self._chunk_seconds(chunk_id)
        self._on_event(
            events.ChunkDone(
                rank=rank, chunk_id=chunk_id, num_rows=num_rows, num_skipped=num_skipped, audio_seconds=seconds
            )
        )

    def _ended(self, rank: int) -> None:
        """A process is gone: hear its last messages, believe its journal, then decide."""
        self._listen(rank)
        worker = self._workers[rank]
        worker.reap()
        self._past_stages[rank] = self._stages(rank)
        self._finished.add(rank)
        for block in committed_chunks(self._orders.paths.journal(rank, worker.run_id)):
            self._committed(rank, block.chunk_id, block.num_rows, block.num_skipped)
        if rank in self._dismissed or (worker.exit_code == 0 and not self._state.ranks[rank].chunks):
            return
        last_words = self._last_words.pop(rank, None)
        if last_words is not None and last_words.kind == "disk":
            self._give_up = self._give_up or DiskError(
                last_words.text, fix="free space, then run the same command to go on"
            )
        self._lost(rank, worker, last_words)

    def _lost(self, rank: int, worker: WorkerHandle, last_words: Failed | None) -> None:
        suspects = tuple((clip.chunk_id, clip.row) for clip in worker.board.in_flight())
        verdict = self._verdicts.pop(rank, None)
        hung = verdict.hung if verdict else None
        cause = verdict.cause if verdict else worker.describe_end(last_words)
        external = worker.exit_code == -signal.SIGKILL
        if worker.board.loading or last_words is not None or (verdict and not hung):
            suspects = ()  # a Python error, or a stall outside the decoders: no clip in flight is to blame
        names = tuple(self._describe_clip(*clip) for clip in ([hung] if hung else suspects))
        self._on_event(events.WorkerLost(rank, cause, names))
        self._decide(rules.RankDied(rank, cause, external=external, suspects=suspects, hung=hung))

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
                self._on_event(events.Notice("warning", f"{self._describe_clip(*clip)} is skipped: {code}"))
            case rules.Drain():
                for rank in self._alive():
                    self._workers[rank].drain()
            case rules.GiveUp(reason):
                self._give_up = self._give_up or WorkerError(
                    reason,
                    why=f"{self._state.remaining} chunks are not done; what is committed is kept",
                    fix="mend the cause, then run the same command to go on",
                )

    def _spawn(self, rank: int) -> None:
        run_id = uuid.uuid4().hex[:12]
        if rank in self._workers:
            self._workers[rank].close()
        self._finished.discard(rank)
        self._watchdog.forget(rank)
        orders = worker_orders(self._orders, rank, run_id, self._boards)
        self._workers[rank] = WorkerHandle(self._context, orders, self._orders.devices.environments[rank])

    # ---- watching

    def _watch_boards(self) -> None:
        for rank in self._alive():
            worker = self._workers[rank]
            idle = worker.board.loading or not self._state.ranks[rank].chunks
            if rank in self._verdicts or (idle and not worker.is_stopped()):
                self._watchdog.forget(rank)
            elif (verdict := self._watchdog.look(rank, worker)) is not None:
                self._verdicts[rank] = verdict
                worker.dump_stacks()
                time.sleep(STACKS_S)
                worker.kill()

    def _stages(self, rank: int) -> events.StageSeconds:
        past = self._past_stages.get(rank, events.StageSeconds(rank=rank))
        if rank in self._finished:
            return past
        now = self._workers[rank].board.counters()
        names = ("decode", "encode", "rows", "write", "wait")
        return replace(past, **{name: getattr(past, name) + now[name] for name in names})

    def _report_stages(self) -> None:
        for stages in self.stage_seconds():
            self._on_event(stages)

    # ---- stopping

    def _drain(self, why: str, stop: StopRequests) -> None:
        chunks = sum(len(rank.begun) for rank in self._state.ranks.values())
        text = f"{why}: stopping; waiting up to {self._orders.config.supervision.stop_s:.0f} s for {chunks} chunks in flight"
        self._on_event(events.Notice("warning", text))
        self._decide(rules.DrainAsked(why))
        deadline = time.monotonic() + self._orders.config.supervision.stop_s
        while self._alive() and time.monotonic() < deadline and not stop.immediately:
            self._step(stop)
        raise self._give_up or Stopped(
            f"{why}: stopped with {self._state.remaining} of {len(self._state.todo)} chunks to do",
            fix="run the same command to go on",
        )

    def _drain_and_raise(self, stop: StopRequests) -> None:
        with contextlib.suppress(Stopped):
            self._drain("giving up", stop)
        assert self._give_up is not None
        raise self._give_up
