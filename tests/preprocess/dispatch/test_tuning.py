"""The laws of the controller of decode threads: within bounds, settles, never worse than where it began."""

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.dispatch.tuning import FIRST_REST, Setting, Tuning, Window, step

BOUNDS = st.builds(Setting, st.integers(1, 24), st.integers(2, 4))
RATES = st.lists(st.floats(0.1, 100.0), min_size=24 * 4, max_size=24 * 4)
SHARES = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))


def rate_of(rates: list[float]) -> Callable[[Setting], float]:
    """A rate for every setting, without any order."""
    return lambda setting: rates[(setting.threads - 1) * 4 + setting.ahead - 1]


def course(
    start: Setting, bounds: Setting, rate: Callable[[Setting], float], *, windows: int, busy: float = 1.0
) -> list[Setting]:
    """Settings over time where the encoder always waits and the rate is a function of the setting."""
    states = [Tuning(start)]
    for _ in range(windows):
        window = Window(rate=rate(states[-1].setting), idle=0.5, busy=busy, held=1.0 - busy)
        states.append(step(states[-1], window, bounds))
    return [state.setting for state in states]


@given(BOUNDS, RATES, st.sampled_from([0.0, 1.0]), st.data())
def test_a_constant_rate_settles_within_bounds_and_no_worse_than_it_began(
    bounds: Setting, rates: list[float], busy: float, data: st.DataObject
):
    start = Setting(data.draw(st.integers(1, bounds.threads)), 2)
    settings = course(start, bounds, rate_of(rates), windows=150, busy=busy)

    assert all(1 <= one.threads <= bounds.threads and 1 <= one.ahead <= bounds.ahead for one in settings)
    changes = sum(a != b for a, b in itertools.pairwise(settings))
    assert changes <= 2 * bounds.threads * bounds.ahead
    assert 1 == len(set(settings[-50:]))
    assert rate_of(rates)(settings[-1]) >= rate_of(rates)(start)


@given(BOUNDS, st.lists(st.tuples(st.floats(0, 100.0), SHARES), max_size=400))
def test_whatever_is_seen_it_stays_within_bounds(bounds: Setting, seen: list[tuple[float, tuple[float, float, float]]]):
    state = Tuning(Setting(1, 2))
    for rate, (idle, busy, held) in seen:
        state = step(state, Window(rate=rate, idle=idle, busy=busy, held=held), bounds)

        assert 1 <= state.setting.threads <= bounds.threads
        assert 2 <= state.setting.ahead <= bounds.ahead


@given(st.integers(0, 1 << 32))
def test_a_rate_that_never_rests_is_tried_at_ever_rarer_times(seed: int):
    """Twice the rest after each time: 500 windows hold at most six of them."""
    state, bounds, begun, chance = Tuning(Setting(2, 2)), Setting(4, 2), 0, random.Random(seed)
    for rate in (chance.uniform(0.1, 100.0) for _ in range(500)):
        after = step(state, Window(rate=rate, idle=0.5, busy=1.0, held=0.0), bounds)
        begun += after.rest > state.rest
        state = after

    assert begun <= 6


@pytest.mark.parametrize(
    ("expected", "start", "best"), [(8, 2, 8), (16, 2, 16), (2, 2, 1.5), (12, 16, 12), (9, 16, 9.5), (1, 1, 1)]
)
def test_it_climbs_to_where_more_threads_no_longer_help(expected: int, start: int, best: float):
    """A rate that rises to ``best`` threads and falls behind it, up to its coarse steps."""
    rate = lambda one: min(one.threads, best) - 0.5 * max(0, one.threads - best)  # noqa: E731
    settings = course(Setting(start, 2), Setting(16, 2), rate, windows=60)

    assert abs(expected - settings[-1].threads) <= max(1, expected // 4)
    assert rate(settings[-1]) >= rate(Setting(start, 2))


@pytest.mark.parametrize(
    ("idle", "busy", "held", "expected"),
    [
        (0.01, 1.0, 0.0, Setting(4, 2)),
        (0.5, 0.9, 0.0, Setting(6, 2)),
        (0.5, 0.3, 0.5, Setting(4, 3)),
        (0.5, 0.3, 0.0, Setting(4, 2)),
    ],
)
def test_it_tries_what_is_short(idle: float, busy: float, held: float, expected: Setting):
    """Nothing while the encoder is fed; threads while they are busy; chunks while reading ahead is held up by them."""
    state = step(Tuning(Setting(4, 2)), Window(rate=1.0, idle=idle, busy=busy, held=held), Setting(8, 4))

    assert expected == state.setting


def test_after_a_lasting_change_it_tries_again():
    """A neighbour's job ended: what did not help before may help now."""
    state, bounds = Tuning(Setting(1, 2)), Setting(2, 2)
    for rate in [1.0] * (FIRST_REST + 10):
        state = step(state, Window(rate=rate, idle=0.5, busy=1.0, held=0.0), bounds)
    assert (Setting(1, 2), None) == (state.setting, state.before)

    state = step(state, Window(rate=2.0, idle=0.5, busy=1.0, held=0.0), bounds)

    assert (Setting(2, 2), Setting(1, 2)) == (state.setting, state.before)
