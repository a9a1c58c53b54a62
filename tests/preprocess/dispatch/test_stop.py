"""Requests to stop: what the first one does, what a second one does, and when."""

import os
import signal

import pytest

from latentprep.core.errors import Stopped
from latentprep.preprocess.dispatch.stop import DRAIN_SIGNALS, StopRequests


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_before_the_workers_start_the_first_request_stops_at_once():
    """There is nothing to drain, and planning may take minutes."""
    with StopRequests(), pytest.raises(Stopped, match="SIGUSR1 received"):
        signal.raise_signal(signal.SIGUSR1)


@pytest.mark.parametrize("number", DRAIN_SIGNALS)
def test_a_real_signal_is_noted_while_workers_run(number: signal.Signals):
    """Schedulers use any of the four."""
    with StopRequests() as stop, stop.polled():
        os.kill(os.getpid(), number)

        assert (True, False, number.name) == (stop.asked, stop.immediately, stop.name)


def test_a_double_within_milliseconds_counts_once_and_a_later_one_means_now():
    """Schedulers signal the group and the process; a person who is impatient waits longer."""
    clock = Clock()
    with StopRequests(clock) as stop, stop.polled():
        stop.ask("SIGTERM")
        clock.now = 1.9
        stop.ask("SIGTERM")
        soon = stop.immediately
        clock.now = 2.0
        stop.ask("SIGTERM")

        assert (False, True) == (soon, stop.immediately)


def test_when_all_is_committed_only_a_second_request_raises():
    """Some seconds make the run complete."""
    clock = Clock()
    with StopRequests(clock) as stop, stop.finishing():
        stop.ask("SIGTERM")
        clock.now = 3.0
        with pytest.raises(Stopped, match="second time"):
            stop.ask("SIGTERM")


def test_a_request_before_the_workers_start_is_not_forgotten():
    """An exception in a signal handler gets lost when it hits a finalizer: it is raised again before workers start."""
    with StopRequests() as stop:
        with pytest.raises(Stopped):
            stop.ask("SIGTERM")
        with pytest.raises(Stopped), stop.polled():
            pytest.fail("workers must not be started")


def test_the_handlers_before_are_back_afterwards():
    """A program that calls ``run`` keeps its own."""
    before = [signal.getsignal(number) for number in (*DRAIN_SIGNALS, signal.SIGHUP)]
    with StopRequests():
        assert signal.SIG_IGN is signal.getsignal(signal.SIGHUP)

    assert before == [signal.getsignal(number) for number in (*DRAIN_SIGNALS, signal.SIGHUP)]
