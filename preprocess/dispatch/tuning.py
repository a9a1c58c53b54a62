"""How many decode threads, and how many chunks ahead: ``step(state, window, bounds) -> state``, pure.

Careful hill climbing. Only while the encoder waits for audio there is something to win; then one change is tried for a
window, and kept if the rate rose by ``GAIN``, else taken back. Each setting is tried once, so that a constant rate settles after
at most as many trials as there are settings, and never moves again. Only a rate that has changed by ``CHANGE`` since
(another disk, a neighbour's job) allows new trials, and after each such time twice as many windows must pass:
a rate that never rests costs a logarithm of trials. What a needless trial costs is one window at a worse setting.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

GAIN = 0.05
"""Windows of ten seconds differ by 1 to 3 % with nothing changed."""
IDLE = 0.05
"""An encoder that waits for less has nothing to win."""
BUSY = 0.7
"""Threads that are busy for less are not what is short."""
HELD = 0.1
"""Reading ahead is held up by chunks in hand for at least this share."""
CHANGE = 0.3
FIRST_REST = 6
"""Windows after settling before a changed rate is believed: a minute."""


@dataclass(frozen=True, slots=True)
class Setting:
    threads: int
    ahead: int
    """Chunks begun and not yet encoded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """What was seen for some seconds with one setting."""

    rate: float
    """Decoded audio in time; any unit."""
    idle: float
    """Share of the time in which the encoder waited for audio."""
    busy: float
    """Share of the threads' time."""
    held: float
    """Share of the time in which reading ahead was held up by chunks in hand."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Where the search stands."""

    setting: Setting
    before: Setting | None = None
    """During a trial: what to go back to."""
    rate: float = 0.0
    """Of the window before the trial; once settled, of the first window after."""
    tried: frozenset[Setting] = field(default_factory=frozenset)
    settled: int = 0
    """Windows since nothing was left to try; 0: not settled."""
    rest: int = FIRST_REST


def step(state: Tuning, window: Window, bounds: Setting) -> Tuning:
    """The next state after a window with ``state.setting``; ``bounds`` are the most of each."""
    if window.rate <= 0:
        return state
    if state.before is not None:
        if window.rate < (1 + GAIN) * state.rate:
            return replace(state, setting=state.before, before=None)
        state = replace(state, before=None)
    if window.idle < IDLE:
        return state
    return _try_next(_woken(state, window.rate), window, bounds)


def _try_next(state: Tuning, window: Window, bounds: Setting) -> Tuning:
    for setting in _neighbours(state.setting, window, bounds):
        if setting != state.setting and setting not in state.tried:
            tried = state.tried | {state.setting, setting}
            return replace(state, setting=setting, before=state.setting, rate=window.rate, tried=tried, settled=0)
    rate = state.rate if state.settled else window.rate
    return replace(state, rate=rate, settled=state.settled + 1)


def _neighbours(now: Setting, window: Window, bounds: Setting) -> Iterator[Setting]:
    """What may be better, the likeliest first."""
    if window.busy >= BUSY:
        yield replace(now, threads=min(bounds.threads, now.threads + max(1, now.threads // 2)))
    elif window.held >= HELD:
        yield replace(now, ahead=min(bounds.ahead, now.ahead + 1))
    if window.busy >= BUSY:
        yield replace(now, threads=max(1, now.threads - max(1, now.threads // 4)))


def _woken(state: Tuning, rate: float) -> Tuning:
    """Begin anew if the rate has changed for good since all was tried."""
    if state.settled < state.rest or abs(rate - state.rate) <= CHANGE * state.rate:
        return state
    return Tuning(state.setting, rest=2 * state.rest)
