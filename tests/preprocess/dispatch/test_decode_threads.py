"""A pool that is resized while it works."""

import threading

import pytest

from latentprep.preprocess.dispatch.decode_threads import DecodeThreads


class Crowd:
    """Jobs that stay until they are let go, and who is inside."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.inside: list[int] = []
        self.numbers: set[int] = set()
        self._open = 0

    def job(self, name: int, number: int) -> int:
        with self._changed:
            self.inside.append(name)
            self.numbers.add(number)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._open > name, timeout=20)
        return name

    def wait_for(self, *names: int) -> None:
        """Until exactly these have begun."""
        with self._changed:
            assert self._changed.wait_for(lambda: tuple(self.inside) == names, timeout=20), self.inside

    def let_go(self, below: int) -> None:
        with self._changed:
            self._open = below
            self._changed.notify_all()


@pytest.mark.timeout(60)
def test_only_active_threads_take_jobs_and_in_order():
    """The encoder waits for the oldest clip: no job may overtake."""
    crowd, threads = Crowd(), DecodeThreads(4, 1)
    futures = [threads.submit(lambda number, name=name: crowd.job(name, number)) for name in range(6)]
    crowd.wait_for(0)
    crowd.let_go(1)
    crowd.wait_for(0, 1)

    assert {0} == crowd.numbers
    threads.resize(3)
    crowd.let_go(6)

    assert list(range(6)) == [future.result(20) for future in futures]
    assert sorted(crowd.inside) == list(range(6))
    assert crowd.numbers <= {0, 1, 2}


@pytest.mark.timeout(60)
def test_fewer_threads_still_do_all_jobs():
    """Those that wait for a job when they are sent away do one more each, and no job is lost."""
    threads = DecodeThreads(4, 4)
    threads.submit(lambda number: number).result(20)
    threads.resize(1)

    assert list(range(50)) == [threads.submit(lambda _, n=n: n).result(20) for n in range(50)]
    assert 1 == threads.active


@pytest.mark.timeout(60)
def test_what_a_job_raises_is_its_waiters():
    """And the thread lives on."""
    threads = DecodeThreads(1, 1)

    def fail(number: int) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        threads.submit(fail).result(20)
    assert 0 == threads.submit(lambda number: number).result(20)
