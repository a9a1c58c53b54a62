"""A byte budget for decoded audio: reserve before decoding, release after encoding."""

import threading


class ByteBudget:
    """At most ``limit`` bytes reserved at a time; a single larger piece is let in alone, since it can't be split."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._peak = 0
        self._freed = threading.Condition()

    def reserve(self, num_bytes: int) -> None:
        """Wait until ``num_bytes`` fit (or nothing else is held), then take them."""
        with self._freed:
            self._freed.wait_for(lambda: self._used == 0 or self._used + num_bytes <= self._limit)
            self._used += num_bytes
            self._peak = max(self._peak, self._used)

    def release(self, num_bytes: int) -> None:
        """Give bytes back."""
        with self._freed:
            self._used -= num_bytes
            self._freed.notify_all()

    @property
    def used(self) -> int:
        return self._used

    @property
    def peak(self) -> int:
        """Most bytes ever held at once."""
        return self._peak
