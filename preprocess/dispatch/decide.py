"""All rules of supervision as one pure function: ``decide(state, event) -> (state, actions)``.

No process, no clock, no file: tests drive it with plain values. The rules:

- A rank has at most ``QUEUE_DEPTH`` tasks that it has not begun; it gets the next one whenever it begins one. Near the end,
  when fewer than ``END`` for every rank are left, it gets one only when it has less than ``CHUNKS_AT_END`` in all: what a
  slow rank holds is work that the others wait for. Simulated on 64 cards, 5 % of them at half speed, 35 chunks a card:
  2.3 % over the ideal time instead of 8.0 % (benchmarks/bench_scaling.py).
- A rank that dies gives its chunks back to the front of the line. The clips that it was decoding become suspects: their
  chunk is retried with the suspects decoded one at a time, so that a second death names one clip, which is then excluded
  (``poison``, or ``decode_timeout`` if its decoder hung). No bisecting; the batches stay as planned, minus that clip.
- A SIGKILL comes from outside (a person, a scheduler, the kernel short of memory), not from a decoder: a clip is excluded
  only after three of them found it alone in flight, so that an unlucky good clip keeps its row.
- A rank that dies before it was ready is started once more, then left out; if no rank is left, the run ends with the text.
- A rank that leaves as it was asked to (exit code 0, or dismissed before it had a chunk) gives back what it has not done.
- ``MAX_DEATHS`` deaths in a row (more with more ranks) without a committed chunk or a newly excluded clip end the run:
  something else is wrong.
- Draining: nothing new is handed out; a rank that dies while draining, or when all chunks are committed, is not started
  again (what its shard lacks to be finished, salvage does).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...core.errors import FaultCode
from .messages import Excluded, Task
from .moves import (
    Action,
    Assign,
    ClipKey,
    Drain,
    DrainAsked,
    Exclude,
    FleetEvent,
    GiveUp,
    LeaveOut,
    RankDied,
    RankLeft,
    RankReady,
    Respawn,
    TaskCommitted,
    TaskHandedBack,
    TaskTaken,
)

QUEUE_DEPTH = 2
"""Tasks that lie ready for a worker: one to begin while the next is on its way."""
END = 12
"""Chunks a rank that nobody has yet, below which a run is near its end: the quarter-size ones and as many before."""
CHUNKS_AT_END = 2
"""What a rank may hold then: one chunk on the encoder, one being decoded behind it."""
MAX_START_FAILURES = 2
"""Starts of a rank that may fail: a busy GPU or a slow file system deserves a second try, a broken driver no third."""
MAX_DEATHS = 6
"""Deaths in a row without progress, of a single rank."""
DEATHS_PER_RANK = 2
"""As many more for each further rank: one shortage of memory may kill all of them at once, and once more."""

STRIKES_OUT = 3
"""Strikes on a suspect that exclude it: one crash or hang while it was decoded alone (3), or three SIGKILLs (1 each)."""


@dataclass(frozen=True, slots=True)
class RankState:
    ready: bool = False
    waiting: tuple[int, ...] = ()
    """Chunks in its inbox."""
    begun: tuple[int, ...] = ()
    """Chunks that it has begun and not committed."""
    start_failures: int = 0
    out: bool = False

    @property
    def chunks(self) -> tuple[int, ...]:
        return self.begun + self.waiting


@dataclass(frozen=True, slots=True)
class FleetState:
    """``todo[next:]`` and ``retries`` are what nobody has; everything else is with a rank or committed."""

    todo: tuple[int, ...]
    ranks: Mapping[int, RankState]
    next: int = 0
    retries: tuple[int, ...] = ()
    committed: int = 0
    suspects: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Chunk id -> rows to decode singly."""
    strikes: Mapping[ClipKey, int] = field(default_factory=dict)
    excluded: Mapping[int, tuple[Excluded, ...]] = field(default_factory=dict)
    deaths: int = 0
    """In a row, without progress."""
    draining: bool = False

    @property
    def remaining(self) -> int:
        return len(self.todo) - self.committed

    @property
    def open(self) -> tuple[int, ...]:
        """Chunks that are not committed."""
        with_ranks = tuple(chunk for rank in self.ranks.values() for chunk in rank.chunks)
        return with_ranks + self.retries + self.todo[self.next :]

    @property
    def unassigned(self) -> int:
        """Chunks that nobody has."""
        return len(self.retries) + len(self.todo) - self.next

    @property
    def over(self) -> bool:
        """Nobody is started any more."""
        return self.draining or self.remaining == 0


def start(todo: tuple[int, ...], ranks: tuple[int, ...]) -> FleetState:
    """The state before any worker is ready."""
    return FleetState(todo, {rank: RankState() for rank in ranks})


def decide(state: FleetState, event: FleetEvent) -> tuple[FleetState, list[Action]]:
    """The next state and what to do about ``event``."""
    match event:
        case RankReady(rank):
            return _fill(_with_rank(state, rank, ready=True, start_failures=0), rank)
        case TaskTaken(rank, chunk_id):
            return _fill(_taken(state, rank, chunk_id), rank)
        case TaskCommitted(rank, chunk_id):
            return _fill(_committed(state, rank, chunk_id), rank)
        case TaskHandedBack(rank, chunk_id):
            if chunk_id not in state.ranks[rank].chunks:
                return state, []
            return replace(_without(state, rank, chunk_id), retries=(chunk_id, *state.retries)), []
        case RankDied():
            return _died(state, event)
        case RankLeft(rank):
            return _left(state, rank), []
        case DrainAsked():
            return replace(state, draining=True), [] if state.draining else [Drain()]


def _with_rank(state: FleetState, rank: int, **changes: object) -> FleetState:
    return replace(state, ranks={**state.ranks, rank: replace(state.ranks[rank], **changes)})


def _taken(state: FleetState, rank: int, chunk_id: int) -> FleetState:
    old = state.ranks[rank]
    waiting = tuple(chunk for chunk in old.waiting if chunk != chunk_id)
    return _with_rank(state, rank, waiting=waiting, begun=(*old.begun, chunk_id))


def _without(state: FleetState, rank: int, chunk_id: int) -> FleetState:
    old = state.ranks[rank]
    waiting = tuple(chunk for chunk in old.waiting if chunk != chunk_id)
    begun = tuple(chunk for chunk in old.begun if chunk != chunk_id)
    return _with_rank(state, rank, waiting=waiting, begun=begun)


def _committed(state: FleetState, rank: int, chunk_id: int) -> FleetState:
    if chunk_id not in state.ranks[rank].chunks:
        return state
    return replace(_without(state, rank, chunk_id), committed=state.committed + 1, deaths=0)


def _next_task(state: FleetState) -> tuple[FleetState, Task | None]:
    if state.retries:
        chunk_id, state = state.retries[0], replace(state, retries=state.retries[1:])
    elif state.next < len(state.todo):
        chunk_id, state = state.todo[state.next], replace(state, next=state.next + 1)
    else:
        return state, None
    return state, Task(chunk_id, state.suspects.get(chunk_id, ()), state.excluded.get(chunk_id, ()))


def _fill(state: FleetState, rank: int) -> tuple[FleetState, list[Action]]:
    actions: list[Action] = []
    while not state.draining and _has_room(state, state.ranks[rank]):
        state, task = _next_task(state)
        if task is None:
            break
        state = _with_rank(state, rank, waiting=(*state.ranks[rank].waiting, task.chunk_id))
        actions.append(Assign(rank, task))
    return state, actions


def _has_room(state: FleetState, rank: RankState) -> bool:
    if not rank.ready or len(rank.waiting) >= QUEUE_DEPTH:
        return False
    near_the_end = state.unassigned < END * len(state.ranks)
    return not near_the_end or len(rank.chunks) < CHUNKS_AT_END


def _fill_all(state: FleetState) -> tuple[FleetState, list[Action]]:
    """Hand chunks that came back to ranks that have nothing to wait for."""
    actions: list[Action] = []
    for rank in state.ranks:
        state, more = _fill(state, rank)
        actions += more
    return state, actions


def _died(state: FleetState, event: RankDied) -> tuple[FleetState, list[Action]]:
    old = state.ranks[event.rank]
    if not old.ready:
        return _failed_to_start(state, event)
    state = _given_back(state, event.rank)
    state, actions = _strike(replace(state, deaths=state.deaths + 1), event)
    if state.over:
        return _with_rank(state, event.rank, out=True), actions
    if state.deaths >= MAX_DEATHS + DEATHS_PER_RANK * (len(state.ranks) - 1):
        what = f"{state.deaths} workers died in a row without a finished chunk"
        return state, [*actions, GiveUp(f"{what}; the last one, rank {event.rank}: {event.cause}")]
    state, more = _fill_all(state)
    return state, [*actions, Respawn(event.rank), *more]


def _left(state: FleetState, rank: int) -> FleetState:
    return _with_rank(_given_back(state, rank), rank, out=True)


def _given_back(state: FleetState, rank: int) -> FleetState:
    """Its chunks are the first in line."""
    chunks = state.ranks[rank].chunks
    state = _with_rank(state, rank, ready=False, waiting=(), begun=())
    return replace(state, retries=chunks + state.retries)


def _failed_to_start(state: FleetState, event: RankDied) -> tuple[FleetState, list[Action]]:
    failures = state.ranks[event.rank].start_failures + 1
    state = _with_rank(state, event.rank, start_failures=failures)
    if state.over:
        return _left(state, event.rank), []
    if failures < MAX_START_FAILURES:
        return state, [Respawn(event.rank)]
    state = _with_rank(state, event.rank, out=True)
    if all(rank.out for rank in state.ranks.values()):
        return state, [GiveUp(f"no worker could start; rank {event.rank}: {event.cause}")]
    return state, [LeaveOut(event.rank, event.cause)]


def _strike(state: FleetState, event: RankDied) -> tuple[FleetState, list[Action]]:
    """Clips in flight become suspects; a suspect that struck out is excluded."""
    actions: list[Action] = []
    for clip in [event.hung] if event.hung else event.suspects:
        chunk_id, row = clip
        known = state.suspects.get(chunk_id, ())
        if row not in known:
            state = replace(state, suspects={**state.suspects, chunk_id: (*known, row)})
            continue
        strikes = state.strikes.get(clip, 0) + (1 if event.external and not event.hung else STRIKES_OUT)
        state = replace(state, strikes={**state.strikes, clip: strikes})
        if strikes >= STRIKES_OUT:
            code = FaultCode.DECODE_TIMEOUT if event.hung else FaultCode.POISON
            state = _exclude(state, clip, code, event.cause)
            actions.append(Exclude(clip, code))
    return state, actions


def _exclude(state: FleetState, clip: ClipKey, code: FaultCode, cause: str) -> FleetState:
    chunk_id, row = clip
    rest = tuple(other for other in state.suspects[chunk_id] if other != row)
    excluded = (*state.excluded.get(chunk_id, ()), Excluded(row, code, cause[:200]))
    return replace(
        state,
        suspects={**state.suspects, chunk_id: rest},
        excluded={**state.excluded, chunk_id: excluded},
        deaths=0,
    )
