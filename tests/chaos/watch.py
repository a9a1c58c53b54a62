"""``Watch``: waits for the moments at which faults are injected.

A fault at a time drawn from a clock mostly hits a worker that decodes. The moments that matter last some milliseconds: a
block on its way to the disk, a shard that gets its name, the last chunk. So half of the faults wait for a sign of one in
the output folder, and then some random milliseconds more.
"""

import json
import os
import random
import time
from enum import StrEnum
from pathlib import Path

from .command import Command

POLL_S = 0.002
PATIENCE_S = 15.0
"""A moment that does not come is not waited for any longer."""


class Moment(StrEnum):
    """When a fault is injected."""

    START = "while the parent starts"
    LOADING = "while workers load"
    ANY = "at any time"
    COMMIT = "at a commit"
    ROTATION = "at a shard's end or begin"
    END = "after the last chunk"


SPREAD_S = {
    Moment.START: 4.0,
    Moment.LOADING: 3.0,
    Moment.ANY: 2.5,
    Moment.COMMIT: 0.02,
    Moment.ROTATION: 0.02,
    Moment.END: 0.6,
}
"""A fault comes up to so many seconds after the sign of its moment."""


class Watch:
    """Looks at one run and its output folder."""

    def __init__(self, command: Command, rng: random.Random) -> None:
        self._command, self._rng = command, rng
        self._work = command.output_dir / ".prep"
        self._progress = Progress(self._work / "events.jsonl")

    def wait(self, moment: Moment) -> bool:
        """Wait for a moment, and a little longer. False if the run has ended before."""
        deadline = time.monotonic() + PATIENCE_S
        before = self._sign(moment)
        while self._command.running and self._sign(moment) == before and time.monotonic() < deadline:
            if moment in (Moment.START, Moment.ANY):
                break
            time.sleep(POLL_S)
        return self.pause(self._rng.uniform(0, SPREAD_S[moment]))

    def pause(self, seconds: float) -> bool:
        """Let time pass. False if the run has ended."""
        deadline = time.monotonic() + seconds
        while self._command.running and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
        return self._command.running

    def _sign(self, moment: Moment) -> object:
        """What changes when the moment comes."""
        match moment:
            case Moment.COMMIT:
                return sum(_sizes(self._work / "journal"))
            case Moment.ROTATION:
                return _names(self._work / "open")
            case Moment.LOADING:
                return self._command.workers()
            case Moment.END:
                return self._progress.all_done()
            case _:
                return None


class Progress:
    """Follows events.jsonl: whether the last run in it has all its chunks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = path.stat().st_size if path.exists() else 0
        self._chunks = 0
        self._planned: int | None = None

    def all_done(self) -> bool:
        for line in self._new_lines():
            event = json.loads(line)
            if event["event"] == "PlanReady":
                self._planned, self._chunks = event["num_chunks"], event["done_chunks"]
            self._chunks += event["event"] == "ChunkDone"
        return self._planned is not None and self._chunks >= self._planned

    def _new_lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._position += len(whole)
        return whole.splitlines()


def _names(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))
    except OSError:
        return ()


def _sizes(folder: Path) -> list[int]:
    try:
        return [entry.stat().st_size for entry in os.scandir(folder)]
    except OSError:
        return []
