"""``PartStory``: who did a dataset's chunks, and how long it took, by the events of all parts.

For provenance.json and the summary alone: what is done is the journals' business. A file of events that is damaged or
gone costs its part of the story.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import OutputError
from ..core.paths import OutputPaths
from ..writers.provenance import read_provenance
from .dispatched import Dispatched
from .events import StageSeconds
from .plan.plans import Plans

_STAGES = ("decode", "encode", "rows", "write", "wait")


@dataclass(frozen=True, kw_only=True, slots=True)
class PartStory:
    """Of all parts together."""

    devices: tuple[str, ...]
    """For people, by rank."""
    work: Dispatched

    @classmethod
    def read(cls, paths: OutputPaths, plan: Plans) -> "PartStory":
        """Read all files of events. Of a dataset that was finalized before nothing is told: it has its story."""
        told = _Told()
        for path in sorted(paths.work.glob("events*.jsonl")):
            for event in read_events(path):
                told.hear(event)
        first, last = told.first or 0.0, told.last or 0.0
        return cls(
            devices=tuple(told.devices[rank] for rank in sorted(told.devices)),
            work=Dispatched(
                started=datetime.fromtimestamp(first, UTC),
                todo=() if _is_finalized(paths, plan) else plan.live,
                wall_seconds=max(0.0, last - first),
                stages=tuple(told.stages[rank] for rank in sorted(told.stages)),
                precision_error=told.precision_error,
            ),
        )


def _is_finalized(paths: OutputPaths, plan: Plans) -> bool:
    try:
        return read_provenance(paths.provenance).fingerprint == plan.fingerprint
    except (OSError, OutputError):
        return False


def read_events(path: Path) -> Iterator[Mapping[str, Any]]:
    """The events of a file, as JSON objects; lines that can't be read are passed over."""
    lines = []
    with contextlib.suppress(OSError):
        lines = path.read_bytes().split(b"\n")
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError, KeyError):
            event = msgspec.json.decode(line)
            if isinstance(event, dict) and event["event"] and isinstance(event["time"], int | float):
                yield event


class _Told:
    def __init__(self) -> None:
        self.first: float | None = None
        """Unix time of the first worker's readiness."""
        self.last: float | None = None
        """Unix time of the last chunk's commit."""
        self.devices: dict[int, str] = {}
        self.stages: dict[int, StageSeconds] = {}
        self.precision_error: float | None = None
        self._ended_runs: dict[int, StageSeconds] = {}

    def hear(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"event": "WorkerReady", "rank": int(rank), "device": str(device), "time": when}:
                self.devices[rank] = device
                self.first = when if self.first is None else min(self.first, when)
            case {"event": "ChunkDone", "time": when}:
                self.last = when if self.last is None else max(self.last, when)
            case {"event": "StageSeconds", "rank": int(rank)}:
                self._stages(rank, event)
            case {"event": "PlanReady"}:
                self._ended_runs = dict(self.stages)
            case {"event": "PartEnded", "precision_error": float(error)}:
                self.precision_error = max(self.precision_error or 0.0, error)

    def _stages(self, rank: int, event: Mapping[str, Any]) -> None:
        """Seconds since the beginning of a run: the last such event of each run counts, and runs add up."""
        before = self._ended_runs.get(rank, StageSeconds(rank=rank))
        with contextlib.suppress(KeyError, TypeError):
            self.stages[rank] = replace(before, **{name: getattr(before, name) + event[name] for name in _STAGES})
