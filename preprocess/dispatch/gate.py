"""``Gate``: a semaphore whose limit can change while somebody waits at it."""

import threading


class Gate:
    """At most ``limit`` inside; a lower limit sends nobody out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inside = 0
        self._changed = threading.Condition()

    def enter(self) -> None:
        """Wait until there is room."""
        with self._changed:
            self._changed.wait_for(lambda: self._inside < self._limit)
            self._inside += 1

    def leave(self) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def resize(self, limit: int) -> None:
        """Let in more, or fewer from now on."""
        with self._changed:
            self._limit = limit
            self._changed.notify_all()
