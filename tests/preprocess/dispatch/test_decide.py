"""The rules of supervision, without a process."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import FaultCode
from latentprep.preprocess.dispatch import decide as rules
from latentprep.preprocess.dispatch.decide import FleetState, decide
from latentprep.preprocess.dispatch.messages import Excluded, Task
from latentprep.preprocess.dispatch.moves import (
    Action,
    Assign,
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


def run_through(state: FleetState, *events: FleetEvent) -> tuple[FleetState, list[Action]]:
    """The state after all events, and the actions of the last one."""
    actions: list[Action] = []
    for event in events:
        state, actions = decide(state, event)
    return state, actions


def test_a_ready_worker_gets_two_tasks_and_one_more_for_each_it_begins():
    """One to work on and one on its way; more would be more to do again after a crash."""
    state = rules.start(tuple(range(7, 40)), (0,))

    state, first = decide(state, RankReady(0))
    state, second = decide(state, TaskTaken(0, 7))

    assert [Assign(0, Task(7)), Assign(0, Task(8))] == first
    assert [Assign(0, Task(9))] == second


def test_chunks_go_out_in_plan_order_to_whoever_asks():
    """A fast card does more chunks than a slow one."""
    state, _ = run_through(rules.start(tuple(range(60)), (0, 1)), RankReady(1), TaskTaken(1, 0), TaskTaken(1, 1))

    assert (0, 1) == state.ranks[1].begun
    assert (2, 3) == state.ranks[1].waiting
    assert [Assign(0, Task(4)), Assign(0, Task(5))] == decide(state, RankReady(0))[1]


def test_near_the_end_a_worker_holds_two_chunks_and_gets_the_next_when_one_is_committed():
    """What a slow card holds is work that all others wait for."""
    state, first = decide(rules.start((0, 1, 2, 3), (0, 1)), RankReady(0))
    state, taken = run_through(state, TaskTaken(0, 0), TaskTaken(0, 1))
    state, committed = decide(state, TaskCommitted(0, 0))

    assert [Assign(0, Task(0)), Assign(0, Task(1))] == first
    assert [] == taken
    assert [Assign(0, Task(2))] == committed


@given(chunks=st.integers(1, 100), ranks=st.integers(1, 4))
def test_a_worker_never_waits_for_work_while_some_is_left(chunks: int, ranks: int):
    """Holding back must not starve: whoever has room for a chunk on its encoder has one, as long as there is one."""
    state = rules.start(tuple(range(chunks)), tuple(range(ranks)))
    for rank in range(ranks):
        state, _ = decide(state, RankReady(rank))
    while state.remaining:
        for rank in range(ranks):
            assert state.ranks[rank].chunks or not state.unassigned
            for chunk in state.ranks[rank].waiting[: 2 - len(state.ranks[rank].begun)]:
                state, _ = decide(state, TaskTaken(rank, chunk))
            if state.ranks[rank].begun:
                state, _ = decide(state, TaskCommitted(rank, state.ranks[rank].begun[0]))

    assert 0 == state.unassigned


def test_a_dead_worker_is_started_again_and_its_chunks_go_first():
    """Its chunks are the oldest: they come before what nobody has had."""
    state, _ = run_through(rules.start((0, 1, 2, 3), (0,)), RankReady(0), TaskTaken(0, 0))

    state, died = decide(state, RankDied(0, "killed by SIGSEGV"))
    state, ready = decide(state, RankReady(0))

    assert [Respawn(0)] == died
    assert [Assign(0, Task(0)), Assign(0, Task(1))] == ready


def test_chunks_of_a_dead_worker_go_to_one_that_waits_for_work():
    """At the end of a run the others would otherwise idle while one worker starts."""
    state, _ = run_through(rules.start((0, 1), (0, 1)), RankReady(0), TaskTaken(0, 0), RankReady(1))

    _, actions = decide(state, RankDied(0, "killed"))

    assert [Respawn(0), Assign(1, Task(0)), Assign(1, Task(1))] == actions


def test_clips_in_flight_are_retried_singly_and_excluded_after_a_second_crash():
    """A crash names a handful of suspects, the next one names the culprit."""
    state, _ = run_through(rules.start((0,), (0,)), RankReady(0), TaskTaken(0, 0))
    state, _ = decide(state, RankDied(0, "killed by SIGSEGV", suspects=((0, 3), (0, 4))))
    state, retry = decide(state, RankReady(0))
    state, _ = decide(state, TaskTaken(0, 0))
    state, crash = decide(state, RankDied(0, "killed by SIGSEGV", suspects=((0, 4),)))
    state, third = decide(state, RankReady(0))

    assert [Assign(0, Task(0, singly=(3, 4)))] == retry
    assert [Exclude((0, 4), FaultCode.POISON), Respawn(0)] == crash
    assert [Assign(0, Task(0, singly=(3,), excluded=(Excluded(4, "poison", "killed by SIGSEGV"),)))] == third


def test_a_hang_names_its_clip_and_a_second_one_excludes_it_as_a_timeout():
    """The other clips in flight are not suspects: their decoders returned or would have."""
    state, _ = run_through(rules.start((0,), (0,)), RankReady(0), TaskTaken(0, 0))
    hang = RankDied(0, "did not return", external=True, suspects=((0, 1), (0, 2)), hung=(0, 2))

    state, _ = decide(state, hang)
    state, retry = decide(state, RankReady(0))
    state, _ = decide(state, TaskTaken(0, 0))
    state, again = decide(state, hang)

    assert [Assign(0, Task(0, singly=(2,)))] == retry
    assert Exclude((0, 2), FaultCode.DECODE_TIMEOUT) in again


def test_a_clip_survives_two_kills_from_outside():
    """SIGKILL comes from people, schedulers and the kernel; an unlucky good clip must keep its row."""
    state = rules.start((0,), (0,))
    kill = RankDied(0, "killed by SIGKILL", external=True, suspects=((0, 5),))
    outcomes = []
    for _ in range(4):
        state, _ = run_through(state, RankReady(0), TaskTaken(0, 0))
        state, actions = decide(state, kill)
        outcomes.append(Exclude((0, 5), FaultCode.POISON) in actions)

    assert [False, False, False, True] == outcomes


def test_deaths_without_progress_end_the_run():
    """Something is wrong that restarts do not mend, and a run that restarts for ever looks alive."""
    state = rules.start((0, 1), (0,))
    actions: list[Action] = []
    for _ in range(rules.MAX_DEATHS):
        state, actions = run_through(state, RankReady(0), TaskTaken(0, 0), RankDied(0, "driver error"))

    assert isinstance(actions[0], GiveUp)
    assert "driver error" in actions[0].reason


def test_a_committed_chunk_resets_the_count_of_deaths():
    """One death an hour over a week is not a reason to stop."""
    state = rules.start(tuple(range(50)), (0,))
    for chunk in range(rules.MAX_DEATHS + 3):
        state, _ = run_through(state, RankReady(0), TaskTaken(0, chunk), TaskCommitted(0, chunk))
        state, actions = decide(state, RankDied(0, "killed"))
        assert Respawn(0) in actions

    assert 1 == state.deaths


def test_a_rank_that_cannot_start_is_left_out_and_the_others_go_on():
    """One card with no free memory must not cost the run."""
    state, _ = run_through(rules.start((0, 1), (0, 1)), RankReady(0))

    state, first = decide(state, RankDied(1, "no memory"))
    state, second = decide(state, RankDied(1, "no memory"))

    assert [Respawn(1)] == first
    assert [LeaveOut(1, "no memory")] == second


def test_the_run_ends_when_no_rank_can_start():
    """With the text of the failure, not after a time-out."""
    _, actions = run_through(rules.start((0,), (0,)), RankDied(0, "bad driver"), RankDied(0, "bad driver"))

    assert [GiveUp("no worker could start; rank 0: bad driver")] == actions


def test_draining_hands_out_nothing_and_restarts_nobody():
    """The time left belongs to the chunks in flight."""
    state, _ = run_through(rules.start((0, 1, 2, 3), (0,)), RankReady(0))
    state, drain = decide(state, DrainAsked())
    state, taken = decide(state, TaskTaken(0, 0))
    state, died = decide(state, RankDied(0, "killed"))

    assert [Drain()] == drain
    assert [] == taken
    assert [] == died
    assert [] == decide(state, DrainAsked())[1]


def test_a_chunk_handed_back_twice_is_in_line_once():
    """The worker's feeder and its main thread may both give the same chunk back."""
    state, _ = run_through(rules.start((0, 1), (0,)), RankReady(0), TaskTaken(0, 0))

    state, _ = run_through(state, TaskHandedBack(0, 0), TaskHandedBack(0, 0))

    assert (0,) == state.retries


def test_a_rank_that_dies_while_it_loads_when_all_is_committed_is_not_started_again():
    """Nobody would tell the new one to end."""
    state, _ = run_through(rules.start((0,), (0, 1)), RankReady(0), TaskTaken(0, 0), TaskCommitted(0, 0))

    state, actions = decide(state, RankDied(1, "killed", external=True))

    assert ([], True) == (actions, state.ranks[1].out)


def test_a_rank_that_dies_when_all_is_committed_is_not_started_again():
    """Nobody would ever tell the new one to finish."""
    state, _ = run_through(rules.start((0,), (0,)), RankReady(0), TaskTaken(0, 0), TaskCommitted(0, 0))

    assert [] == decide(state, RankDied(0, "killed"))[1]


def test_simultaneous_deaths_of_all_ranks_do_not_end_the_run():
    """One shortage of memory on the node kills every worker at once; it may do so twice."""
    state = rules.start(tuple(range(100)), tuple(range(16)))
    actions: list[Action] = []
    for _ in range(2):
        for rank in range(16):
            state, _ = decide(state, RankReady(rank))
        for rank in range(16):
            state, actions = decide(state, RankDied(rank, "killed by SIGKILL", external=True))
            assert Respawn(rank) in actions


def test_a_rank_that_leaves_gives_back_what_it_was_silent_about():
    """Chunks that lay unread in its inbox when it was asked to drain; nobody died, and nobody is blamed."""
    state, _ = run_through(rules.start((0, 1, 2), (0,)), RankReady(0), TaskTaken(0, 0), DrainAsked())

    state, actions = decide(state, RankLeft(0))

    assert ([], 0) == (actions, state.deaths)
    assert (0, 1, 2) == state.open
    assert state.ranks[0].out


def test_a_rank_that_fails_to_start_while_draining_is_not_complained_about():
    """It was not needed any more."""
    state, _ = run_through(rules.start((0, 1), (0, 1)), RankReady(0), DrainAsked())

    assert [] == decide(state, RankDied(1, "no memory"))[1]


def holders(state: FleetState) -> Counter[int]:
    """How many places each open chunk is in: with a rank, in the retry line, or not yet handed out."""
    places = [*state.todo[state.next :], *state.retries]
    for rank in state.ranks.values():
        places += rank.chunks
    return Counter(places)


@given(st.data())
def test_no_chunk_is_lost_or_in_two_places(data: st.DataObject):
    """Conservation: every chunk is committed, or in exactly one place, after any course of events."""
    num_ranks = data.draw(st.integers(1, 3))
    state = rules.start(tuple(range(data.draw(st.integers(1, 12)))), tuple(range(num_ranks)))
    committed: set[int] = set()
    for _ in range(data.draw(st.integers(0, 60))):
        rank = data.draw(st.integers(0, num_ranks - 1))
        begun, waiting = state.ranks[rank].begun, state.ranks[rank].waiting
        choices: list[FleetEvent] = [RankReady(rank), RankDied(rank, "x", suspects=tuple((c, 0) for c in begun))]
        choices += [TaskTaken(rank, chunk) for chunk in waiting[:1]]
        choices += [TaskCommitted(rank, chunk) for chunk in begun[:1]]
        choices += [TaskHandedBack(rank, chunk) for chunk in begun]
        choices += [RankLeft(rank), DrainAsked()]
        event = data.draw(st.sampled_from(choices))
        state, _ = decide(state, event)
        if isinstance(event, TaskCommitted):
            committed.add(event.chunk_id)

    assert Counter(set(state.todo) - committed) == holders(state) == Counter(state.open)
    assert len(committed) == state.committed
