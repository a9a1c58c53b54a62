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
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType

from ...core.errors import DiskError, Stopped, WorkerError
from ...core.paths import OutputPaths
from ...writers.journal import committed_chunks
from .. import events
from ..config import RunConfig
from ..encode.protocol import EncoderInfo
from . import decide as rules
from .devices import Devices
from .handle import WorkerHandle
from .messages import Closed, Committed, Failed, Finished, FromWorker, HandedBack, Ready, Remark, Taken
from .stop import StopRequests
from .worker import WorkerOrders

TICK_S = 1.0
"""How often the boards are looked at when nothing else happens."""
STAGES_EVERY_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """Time-outs in seconds, each with the failure that it ends."""

    decode_timeout_s: float = 120.0
    """A decoder that does not return: a lying header, a loop on a truncated file, a dead mount."""
    stall_s: float = 300.0
    """A worker none of whose counters move: a hung driver, a collective dead lock."""
    drain_s: float = 30.0
    """Rest of the chunk on the encoder that a draining worker still finishes."""
    stop_s: float = 55.0
    """A draining worker is killed after this; schedulers give 30 to 120 s of warning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetOrders:
    """What every worker of a run needs to know."""

    config: RunConfig
    info: EncoderInfo
    devices: Devices
    paths: OutputPaths
    fingerprint: str
    decode_threads: int
    """Per worker."""
    patience: Patience = Patience()


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
        self._last_words: dict[int, Failed] = {}
        self._hung: dict[int, rules.ClipKey] = {}
        self._killed_for: dict[int, str] = {}
        self._pulses: dict[int, tuple[bytes, float]] = {}
        self._past_stages: dict[int, events.StageSeconds] = {}
        self._state = rules.start((), ())
        self._give_up: Exception | None = None
        self._chunk_seconds: Callable[[int], float] = lambda chunk_id: 0.0
        self.ready_at: float | None = None
        """Monotonic time of the first worker's readiness."""

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
            for rank in self._alive():
                self._workers[rank].finish()
            self._until(lambda: not self._alive(), stop)
        self._report_stages()

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
            case Remark(text):
                self._on_event(events.Notice("warning", f"rank {rank}: {text}"))

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
        if worker.exit_code == 0 and not self._state.ranks[rank].chunks:
            return
        last_words = self._last_words.pop(rank, None)
        if last_words is not None and last_words.kind == "disk":
            self._give_up = self._give_up or DiskError(
                last_words.text, fix="free space, then run the same command to go on"
            )
        self._lost(rank, worker, last_words)

    def _lost(self, rank: int, worker: WorkerHandle, last_words: Failed | None) -> None:
        suspects = tuple((clip.chunk_id, clip.row) for clip in worker.board.in_flight())
        hung = self._hung.pop(rank, None)
        killed_for = self._killed_for.pop(rank, None)
        cause = killed_for or _cause(worker.exit_code, last_words)
        external = worker.exit_code == -signal.SIGKILL
        if worker.board.loading:
            suspects = ()
        elif last_words is not None or (killed_for and hung is None):
            suspects = ()  # a Python error, or a stall outside the decoder: no clip in flight is to blame
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
        self._pulses.pop(rank, None)
        orders = WorkerOrders(
            rank=rank,
            run_id=run_id,
            config=self._orders.config,
            info=self._orders.info,
            device_kind=self._orders.devices.kind,
            device_name=self._orders.devices.names[rank],
            output_dir=str(self._orders.paths.root),
            fingerprint=self._orders.fingerprint,
            board_path=str(self._boards / f"r{rank}-{run_id}"),
            decode_threads=self._orders.decode_threads,
            drain_s=self._orders.patience.drain_s,
        )
        self._workers[rank] = WorkerHandle(self._context, orders, self._orders.devices.environments[rank])

    # ---- watching

    def _watch_boards(self) -> None:
        for rank in self._alive():
            worker = self._workers[rank]
            if rank in self._killed_for or worker.board.loading or not self._state.ranks[rank].chunks:
                self._pulses.pop(rank, None)
                continue
            self._watch(rank, worker)

    def _watch(self, rank: int, worker: WorkerHandle) -> None:
        patience = self._orders.patience
        pulse, now = worker.board.pulse(), time.monotonic()
        known, since = self._pulses.get(rank, (b"", now))
        if pulse != known:
            self._pulses[rank] = (pulse, now)
            since = now
        clips = worker.board.in_flight()
        if clips and clips[0].seconds > patience.decode_timeout_s and not worker.is_stopped():
            clip = clips[0].chunk_id, clips[0].row
            self._hung[rank] = clip
            self._replace(rank, f"decoding {self._describe_clip(*clip)} did not return in {clips[0].seconds:.0f} s")
        elif now - since > patience.stall_s:
            self._replace(rank, f"no stage moved for {now - since:.0f} s")

    def _replace(self, rank: int, cause: str) -> None:
        worker = self._workers[rank]
        self._killed_for[rank] = cause
        worker.dump_stacks()
        time.sleep(0.2)  # the dump is written by a signal handler of the worker
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
        text = f"{why}: stopping; waiting up to {self._orders.patience.stop_s:.0f} s for {chunks} chunks in flight"
        self._on_event(events.Notice("warning", text))
        self._decide(rules.DrainAsked(why))
        deadline = time.monotonic() + self._orders.patience.stop_s
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


def _cause(exit_code: int | None, last_words: Failed | None) -> str:
    if last_words is not None:
        return last_words.text
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name
        hint = " (often the kernel's out-of-memory killer: see dmesg)" if -exit_code == signal.SIGKILL else ""
        return f"killed by {name}{hint}"
    return f"ended with exit code {exit_code}"
