"""A gate that widens and narrows."""

import threading

import pytest

from latentprep.preprocess.dispatch.gate import Gate


@pytest.mark.timeout(30)
def test_a_wider_gate_lets_in_who_waits_and_a_narrower_one_fewer_from_then_on():
    gate, entered = Gate(1), threading.Semaphore(0)

    def enter() -> None:
        gate.enter()
        entered.release()

    for _ in range(3):
        threading.Thread(target=enter, daemon=True).start()
    assert entered.acquire(timeout=10)
    assert not entered.acquire(timeout=0.05)

    gate.resize(2)
    assert entered.acquire(timeout=10)

    gate.resize(1)
    gate.leave()
    assert not entered.acquire(timeout=0.05), "one is still inside"
    gate.leave()
    assert entered.acquire(timeout=10)
