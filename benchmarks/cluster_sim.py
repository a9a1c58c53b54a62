"""Discrete-event simulation of a run on many cards: the real ``decide``, simulated workers and time.

What is real: who gets which chunk, and what a death costs, is decided by ``preprocess/dispatch/decide.py``. What is
simulated: a worker takes chunks from its inbox as the real one does (two begun, two waiting), and encodes them one after
another at its card's rate; a start takes ``startup_s``; a card's worker dies at exponential times; a node may be taken
away with all its cards. Not simulated: shared file systems, decode cores, networks.

Times are seconds, work is audio seconds, rates are times real time.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import numpy.typing as npt

from latentprep.preprocess.dispatch.decide import decide, start
from latentprep.preprocess.dispatch.moves import (
    Action,
    Assign,
    FleetEvent,
    GiveUp,
    LeaveOut,
    RankDied,
    RankReady,
    Respawn,
    TaskCommitted,
    TaskTaken,
)
from latentprep.preprocess.dispatch.prefetch import CHUNKS_AHEAD

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Cards and what befalls them."""

    rates: tuple[float, ...]
    """Times real time of each card."""
    startup_s: float = 30.0
    """From the start of a worker to its first chunk: imports, weights, plan."""
    chunk_s: float = 0.05
    """Fixed cost of a chunk."""
    failures_per_day: float = 0.0
    """Of each card's worker."""
    cards_per_node: int = 8
    preemptions_per_day: float = 0.0
    """Of each node; only where the plan is done in parts."""
    away_s: float = 120.0
    """A preempted node, or another one in its place, is back after so long."""
    seed: int = 0

    @property
    def num_nodes(self) -> int:
        return -(-len(self.rates) // self.cards_per_node)

    def ideal_s(self, work: float) -> float:
        """One start, then all cards at work until the same moment."""
        return self.startup_s + work / sum(self.rates)


@dataclass(kw_only=True, slots=True)
class Result:
    """What a simulated run came to."""

    makespan_s: float = 0.0
    commits: dict[int, int] = field(default_factory=dict)
    """How often each chunk was committed."""
    deaths: int = 0
    preemptions: int = 0
    incarnations: int = 0
    """Workers started: each has a journal and at least one shard."""


class Clock:
    """Calls functions at their time; ties in the order in which they were asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call in so many seconds."""
        heapq.heappush(self._calls, (self.now + seconds, next(self._numbers), call))

    def run(self, until: Callable[[], bool]) -> None:
        """Let time pass until a condition holds. Raises RuntimeError if nothing happens any more before that."""
        while not until():
            if not self._calls:
                raise RuntimeError(f"the run stands still at {self.now:.0f} s")
            self.now, _, call = heapq.heappop(self._calls)
            call()


class _Worker:
    """One incarnation: what it was given and has not committed."""

    def __init__(self) -> None:
        self.inbox: deque[int] = deque()
        self.begun: deque[int] = deque()
        self.encoding = False


class Fleet:
    """A parent with its workers, over chunks that are its own."""

    def __init__(
        self,
        chunks: Sequence[int],
        cards: Sequence[int],
        *,
        audio_s: Floats,
        cluster: Cluster,
        clock: Clock,
        result: Result,
        on_done: Callable[[], None],
    ) -> None:
        """``chunks`` index ``audio_s``; ``cards`` index ``cluster.rates`` and serve as rank numbers."""
        self._audio_s, self._cluster, self._clock, self._result = audio_s, cluster, clock, result
        self._on_done = on_done
        self._state = start(tuple(chunks), tuple(cards))
        self._workers: dict[int, _Worker] = {}
        self.ended = False
        for card in cards:
            self._spawn(card)

    def kill(self, card: int) -> None:
        """The card's worker dies, as by SIGKILL."""
        if self._workers.pop(card, None) is None:
            return  # it is just starting
        self._result.deaths += 1
        self._tell(RankDied(card, "killed", external=True))

    def abandon(self) -> list[int]:
        """The node is taken away: chunks that are not committed."""
        self.ended = True
        self._workers.clear()
        return list(self._state.open)

    def _spawn(self, card: int) -> None:
        self._result.incarnations += 1
        self._clock.after(self._cluster.startup_s, lambda: self._ready(card))

    def _ready(self, card: int) -> None:
        if not self.ended:
            self._workers[card] = _Worker()
            self._tell(RankReady(card))

    def _tell(self, event: FleetEvent) -> None:
        self._state, actions = decide(self._state, event)
        for action in actions:
            self._act(action)
        if not self.ended and self._state.remaining == 0:
            self.ended = True
            self._workers.clear()
            self._on_done()

    def _act(self, action: Action) -> None:
        match action:
            case Assign(rank, task):
                self._workers[rank].inbox.append(task.chunk_id)
                self._work(rank)
            case Respawn(rank):
                self._spawn(rank)
            case GiveUp(reason) | LeaveOut(_, reason):
                raise RuntimeError(reason)
            case _:
                pass

    def _work(self, card: int) -> None:
        """Begin what may be begun, and encode the oldest of it."""
        worker = self._workers[card]
        while worker.inbox and len(worker.begun) < CHUNKS_AHEAD:
            worker.begun.append(chunk := worker.inbox.popleft())
            self._tell(TaskTaken(card, chunk))
        if worker.begun and not worker.encoding:
            worker.encoding = True
            seconds = self._cluster.chunk_s + self._audio_s[worker.begun[0]] / self._cluster.rates[card]
            self._clock.after(float(seconds), lambda: self._commit(card, worker))

    def _commit(self, card: int, worker: _Worker) -> None:
        if self._workers.get(card) is not worker:
            return  # it died in between
        chunk = worker.begun.popleft()
        worker.encoding = False
        self._result.commits[chunk] = self._result.commits.get(chunk, 0) + 1
        self._tell(TaskCommitted(card, chunk))
        if self._workers.get(card) is worker:
            self._work(card)


def simulate_whole(audio_s: Floats, cluster: Cluster) -> Result:
    """One parent hands chunks to all cards on demand: a single node, or one engine over many (Ray)."""
    clock, result = Clock(), Result()
    cards = range(len(cluster.rates))
    done: list[bool] = []
    fleet = Fleet(
        range(len(audio_s)),
        cards,
        audio_s=audio_s,
        cluster=cluster,
        clock=clock,
        result=result,
        on_done=lambda: done.append(True),
    )
    _fail_at_random(cluster, clock, lambda card: fleet.kill(card))
    clock.run(lambda: bool(done))
    result.makespan_s = clock.now
    return result


def simulate_parts(audio_s: Floats, cluster: Cluster, parts: Sequence[Sequence[int]]) -> Result:
    """Each part of the plan is a task for one node, in a queue as SLURM's; a preempted task is queued again, first."""
    run = _Parts(audio_s, cluster, parts)
    run.clock.run(lambda: run.left == 0)
    run.result.makespan_s = run.clock.now
    return run.result


class _Parts:
    """Nodes that take tasks from a queue."""

    def __init__(self, audio_s: Floats, cluster: Cluster, parts: Sequence[Sequence[int]]) -> None:
        self.clock, self.result = Clock(), Result()
        self._audio_s, self._cluster = audio_s, cluster
        self._queue = deque(list(part) for part in parts if len(part))
        self.left = len(self._queue)
        self._fleets: dict[int, Fleet] = {}
        self._idle: set[int] = set()
        for node in range(cluster.num_nodes):
            self._take(node)
        _fail_at_random(cluster, self.clock, self._kill)
        if cluster.preemptions_per_day:
            self._preempt_at_random()

    def _cards(self, node: int) -> range:
        size = self._cluster.cards_per_node
        return range(node * size, min((node + 1) * size, len(self._cluster.rates)))

    def _take(self, node: int) -> None:
        """Give a free node the next task."""
        self._fleets.pop(node, None)
        self._idle.add(node)
        if self._queue:
            self._idle.remove(node)
            self._fleets[node] = Fleet(
                self._queue.popleft(),
                self._cards(node),
                audio_s=self._audio_s,
                cluster=self._cluster,
                clock=self.clock,
                result=self.result,
                on_done=lambda: self._done(node),
            )

    def _done(self, node: int) -> None:
        self.left -= 1
        self._take(node)

    def _kill(self, card: int) -> None:
        fleet = self._fleets.get(card // self._cluster.cards_per_node)
        if fleet is not None:
            fleet.kill(card)

    def _preempt_at_random(self) -> None:
        random = np.random.default_rng([self._cluster.seed, 1])
        mean_s = 86_400 / self._cluster.preemptions_per_day

        def later(node: int) -> None:
            self.clock.after(random.exponential(mean_s), lambda: preempt(node))

        def preempt(node: int) -> None:
            if (fleet := self._fleets.pop(node, None)) is not None:
                self.result.preemptions += 1
                self._queue.appendleft(fleet.abandon())
                self.clock.after(self._cluster.away_s, lambda: self._take(node))
                if self._idle:
                    self._take(min(self._idle))
            later(node)

        for node in range(self._cluster.num_nodes):
            later(node)


def _fail_at_random(cluster: Cluster, clock: Clock, kill: Callable[[int], None]) -> None:
    if not cluster.failures_per_day:
        return
    random = np.random.default_rng([cluster.seed, 0])
    mean_s = 86_400 / cluster.failures_per_day

    def later(card: int) -> None:
        clock.after(random.exponential(mean_s), lambda: fail(card))

    def fail(card: int) -> None:
        kill(card)
        later(card)

    for card in range(len(cluster.rates)):
        later(card)
