"""``Fleet``: starts the workers, hands out chunks, listens, and does what ``decide`` says.

One loop on the parent's main thread: wait for messages, process ends, signals or a second; turn each into an event;
act. All waiting is on pipes and sentinels, never on something that a dead process should fill.
"""

import time
from collections.abc import Callable
from multiprocessing.connection import wait
from types import TracebackType

from ...core.errors import DiskError, PrepError, Stopped, WorkerError
from ...writers.atomic import disk_errors
from ...writers.journal import CommittedChunk, committed_chunks
from .. import events
from ..plan.plans import Plans
from . import decide as rules
from . import moves
from .bottleneck import find_bottleneck, judge
from .crew import Crew
from .death import examine
from .handle import WorkerHandle
from .messages import Committed, Failed, FromWorker, HandedBack, Ready, Taken
from .orders import FleetOrders
from .report import FleetReport
from .stages import StageHistory, total
from .stop import StopRequests
from .trouble import disk_error, output_trouble
from .watchdog import Verdict, Watchdog

TICK_S = 1.0
"""How often the boards are looked at when nothing else happens."""
WATCH_EVERY_S = 0.5
"""How often they are looked at when much happens: small chunks commit hundreds of times a second."""
STAGES_EVERY_S = 5.0


class Fleet:
    """The workers of one run. Use as a context manager: leaving it ends and reaps every process."""

    def __init__(self, orders: FleetOrders, plan: Plans, on_event: events.EventSink, stop: StopRequests) -> None:
        self._orders, self._plan, self._stop = orders, plan, stop
        self.report = FleetReport(plan, orders.config.encoder.precision, on_event)
        self._crew = Crew(orders)
        self._state = rules.start((), ())
        self._error: PrepError | None = None
        self._last_words: dict[int, Failed] = {}
        self._dismissed: set[int] = set()
        self._verdicts: dict[int, Verdict] = {}
        self._history = StageHistory()
        self._watchdog = Watchdog(orders.config.supervision)
        self._next_watch = self._next_stages = 0.0

    def __enter__(self) -> "Fleet":
        self._crew.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._crew.__exit__(kind, error, trace)

    # ---- the run

    def run(self, todo: tuple[int, ...]) -> None:
        """Do all chunks of ``todo``. Returns when every one is committed and every worker has ended.

        Raises Stopped after a signal, DiskError if the output can't be written, WorkerError if it gives up.
        """
        ranks = tuple(self._orders.ranks[: len(todo)])
        self._state = rules.start(todo, ranks)
        for rank in ranks:
            self._crew.spawn(rank)
        self._until(lambda: self._state.remaining == 0)
        self._end_all(WorkerHandle.finish)
        self._until(lambda: not self._crew.living)
        self._report_stages()

    def stage_seconds(self) -> tuple[events.StageSeconds, ...]:
        """What each rank's stages did, over all incarnations."""
        return self._crew.stage_seconds()

    def bottleneck(self) -> events.Bottleneck | None:
        """What limited the run as a whole."""
        stages = self.stage_seconds()
        return find_bottleneck(total(stages), self._orders.threads, workers=len(stages), work_left=False)

    def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._step()
            if self._error is not None:
                self._drain(self._error.what.partition("\n")[0])
            if self._stop.immediately or (self._stop.asked and self._state.remaining):
                self._drain(f"{self._stop.name} received")

    def _step(self) -> None:
        living = self._crew.living
        pipes = [item for worker in living.values() for item in (worker.outbox, worker.sentinel)]
        ready = set(wait([*pipes, self._stop.fileno()], timeout=TICK_S))
        for rank, worker in living.items():
            if worker.outbox in ready:
                self._listen(rank, worker)
        for rank, worker in living.items():
            if worker.sentinel in ready or worker.exit_code is not None or worker.is_unkillable:
                self._ended(rank)
        self._stop.clear()
        self._look_around(time.monotonic())

    def _look_around(self, now: float) -> None:
        if now >= self._next_watch:
            self._next_watch = now + WATCH_EVERY_S
            self._watch()
        if now >= self._next_stages:
            self._next_stages = now + STAGES_EVERY_S
            self._report_stages()

    def _report_stages(self) -> None:
        stages = self.stage_seconds()
        for one in stages:
            self.report.tell(one)
        window = self._history.window(time.monotonic(), stages)
        for verdict in judge(window, self._orders.threads, work_left=self._state.unassigned > 0):
            self.report.tell(verdict)

    # ---- messages

    def _listen(self, rank: int, worker: WorkerHandle) -> None:
        for message in worker.messages():
            self._heard(rank, message)

    def _heard(self, rank: int, message: FromWorker) -> None:
        self.report.heard(rank, message)
        match message:
            case Ready():
                self._decide(moves.RankReady(rank))
            case Taken(chunk_id):
                self._decide(moves.TaskTaken(rank, chunk_id))
            case Committed(chunk_id, num_rows, num_skipped):
                self._committed(rank, CommittedChunk(chunk_id, num_rows, num_skipped))
            case HandedBack(chunk_id):
                self._decide(moves.TaskHandedBack(rank, chunk_id))
            case Failed():
                self._last_words[rank] = message
            case _:
                pass  # for people, or Finished: its end follows

    def _committed(self, rank: int, chunk: CommittedChunk) -> None:
        """Told by a message, or by the journal of a dead worker; the second time it is not news."""
        if chunk.chunk_id in self._state.ranks[rank].chunks:
            self._decide(moves.TaskCommitted(rank, chunk.chunk_id))
            self.report.committed(rank, chunk)

    # ---- ends

    def _ended(self, rank: int) -> None:
        """A process is gone: hear its last messages, believe its journal, then decide."""
        worker = self._crew.bury(rank)
        self._listen(rank, worker)
        self._believe_journal(rank, worker)
        last_words = self._last_words.pop(rank, None)
        if trouble := disk_error(last_words) or output_trouble(self._orders.paths):
            self._fail(trouble)
        as_told = rank in self._dismissed or (worker.exit_code == 0 and self._state.over)
        if as_told or (last_words is not None and last_words.kind == "disk"):
            self._decide(moves.RankLeft(rank))
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
        self.report.lost(rank, death)
        died = moves.RankDied(rank, death.cause, external=death.external, suspects=death.suspects, hung=death.hung)
        self._decide(died)

    # ---- decisions

    def _decide(self, event: moves.FleetEvent) -> None:
        self._state, actions = rules.decide(self._state, event)
        for action in actions:
            self._act(action)

    def _act(self, action: moves.Action) -> None:
        match action:
            case moves.Assign(rank, task):
                self._crew[rank].send(task)
            case moves.Respawn(rank):
                self._respawn(rank)
            case moves.LeaveOut():
                self.report.left_out(action)
            case moves.Exclude():
                self.report.excluded(action)
            case moves.Drain():
                self._end_all(WorkerHandle.drain)
            case moves.GiveUp(reason):
                why = f"{self._state.remaining} chunks are not done; what is committed is kept"
                fix = "mend the cause, then run the same command to go on"
                self._error = self._error or WorkerError(reason, why=why, fix=fix)

    def _respawn(self, rank: int) -> None:
        self._watchdog.forget(rank)
        try:
            self._crew.spawn(rank)
        except PrepError as error:  # the others finish what is on their encoders
            self._fail(error)

    def _end_all(self, ask: Callable[[WorkerHandle], None]) -> None:
        """Have every worker end: by asking it, or at once if it is still loading, since it has nothing to lose."""
        for rank, worker in self._crew.living.items():
            if worker.board.loading:
                self._dismissed.add(rank)
                worker.kill()
            else:
                ask(worker)

    def _watch(self) -> None:
        self._watchdog.tick()
        for rank, worker in self._crew.living.items():
            busy = worker.board.loading or self._state.ranks[rank].chunks or self._state.over
            if not busy or rank in self._verdicts or rank in self._dismissed:
                self._watchdog.forget(rank)
            elif (verdict := self._watchdog.look(rank, worker)) is not None:
                self._verdicts[rank] = verdict
                worker.dump_stacks()
                worker.kill()

    # ---- stopping

    def _fail(self, error: PrepError) -> None:
        """End the run with this error; nobody is started any more."""
        self._error = self._error or error
        self._decide(moves.DrainAsked())

    def _drain(self, why: str) -> None:
        """Let the workers finish what is on their encoders, for a limited time, then raise."""
        patience = self._orders.config.supervision.stop_s
        deadline = time.monotonic() + patience
        self._decide(moves.DrainAsked())
        chunks = sum(len(rank.begun) for rank in self._state.ranks.values())
        waits = f"waiting up to {patience:.0f} s for {chunks} chunks in flight on {len(self._crew.living)} workers"
        self.report.notice("warning", f"{why}: stopping; {waits}")
        while self._crew.living and time.monotonic() < deadline and not self._stop.immediately:
            self._step()
        if left := len(self._crew.living):
            text = f"{left} workers are ended at once; what they had not committed is done again next time"
            self.report.notice("warning", text)
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
