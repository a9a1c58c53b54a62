"""``ThreadShare``: how many decode threads each worker of a machine begins with, and how many it may come to.

The usable cores are shared out among the workers, and so is a configured number, which is an upper bound. A GPU worker
begins with all of its share: its encoder needs next to no core. A worker on a CPU begins with two, since its encoder needs a
core to itself, and FLAC is decoded a hundred times faster than it encodes.
"""

from dataclasses import dataclass

from ..encode.protocol import DeviceKind
from .cores import Cores

CPU_WORKER_THREADS = 2


@dataclass(frozen=True, slots=True)
class ThreadShare:
    """Of one worker."""

    start: int
    most: int
    cores: Cores
    """Of all workers together."""
    configured: bool = False
    """``decode_threads`` is the bound, not the cores."""

    @property
    def text(self) -> str:
        """What people are told at the start."""
        number = f"{self.start}" if self.start == self.most else f"{self.start}, up to {self.most}"
        by = "decode_threads" if self.configured else self.cores.limit
        return f"decode threads of each: {number} ({self.cores.count} usable cores, limit: {by})"


def share_threads(configured: int | None, workers: int, kind: DeviceKind, cores: Cores) -> ThreadShare:
    """The share of each of ``workers`` workers on this machine."""
    if configured is not None and configured < cores.count:
        most = max(1, configured // workers)
        return ThreadShare(most, most, cores, configured=True)
    most = max(1 if configured is not None else 2, cores.count // workers)
    start = min(most, CPU_WORKER_THREADS) if kind == "cpu" and configured is None else most
    return ThreadShare(start, most, cores)
