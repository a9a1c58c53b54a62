"""Progress of a run on stderr: one tqdm bar on a terminal, a plain line every 30 s elsewhere (log files of a cluster).

Both are sinks of the same typed events and write the same text (cli/tally.py); they differ only in how it reaches the
stream.
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol, Self, TextIO

from tqdm import tqdm

from ..preprocess.events import (
    Checking,
    CorpusRead,
    Event,
    Notice,
    PlanReady,
    Reading,
    Scanning,
    WorkerLost,
    WorkerReady,
)
from .quantities import count, duration
from .tally import Tally

LINE_INTERVAL_S = 30.0
"""Often enough to see that a run lives, seldom enough for a log of a week (20,000 lines)."""

REDRAW_INTERVAL_S = 0.1
"""Small chunks commit hundreds of times a second; a redraw of 16 worker lines takes about a millisecond."""

MAX_WORKER_LINES = 16
"""Lines below the bar: a terminal of 24 lines must not scroll with every redraw."""

# tqdm's watch thread redraws bars that nobody updates, and its default lock is a semaphore between processes. This
# process starts workers and takes signals, and its events come from one thread: it needs neither.
tqdm.monitor_interval = 0
tqdm.set_lock(threading.RLock())


class Progress(Protocol):
    """A sink of events that is closed when the run has ended, however it ended."""

    def __call__(self, event: Event) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc_info: object) -> None: ...


def progress(stream: TextIO | None = None) -> Progress:
    """The sink that suits ``stream`` (stderr by default)."""
    target = sys.stderr if stream is None else stream
    return BarProgress(target) if target.isatty() else LineProgress(target)


def announcement(event: Event) -> str | None:
    """Text of the events that deserve a line of their own; None for the others."""
    match event:
        case CorpusRead(dataset_name=name, num_clips=clips, num_refused=refused):
            return f"read {name}: {count(clips, 'clip')}, {refused:,} refused"
        case PlanReady():
            return _plan_line(event)
        case WorkerReady(rank=rank, device=device, load_seconds=seconds):
            return f"worker {rank} ready on {device} after {duration(seconds)}"
        case WorkerLost(rank=rank, cause=cause, clips=clips):
            return f"worker {rank} lost: {cause}" + (f"; it was decoding {', '.join(clips)}" if clips else "")
        case Notice(level=level, text=text):
            return text if level == "info" else f"{level}: {text}"
    return None


def _plan_line(plan: PlanReady) -> str:
    text = (
        f"plan {plan.fingerprint[:12]}: {count(plan.num_clips, 'clip')} in {count(plan.num_chunks, 'chunk')}, "
        f"{duration(plan.audio_seconds)} of audio, {plan.num_refused:,} refused"
    )
    return text + (f"; {_resumed(plan)}" if plan.resumed else "")


def _checked(event: Checking) -> str:
    return f"checked {event.done / 1e9:,.1f} of {event.total / 1e9:,.1f} GB of the finished dataset"


def _resumed(plan: PlanReady) -> str:
    if not plan.done_chunks:
        return "planned before, nothing encoded yet"
    if plan.done_chunks == plan.num_chunks:
        return "all of it done before"
    return f"goes on after {count(plan.done_chunks, 'chunk')} ({duration(plan.done_audio_seconds)})"


class LineProgress:
    """Plain lines: one for each announcement at once, and the tally every 30 s."""

    def __init__(self, stream: TextIO, *, now: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._now = stream, now
        self._tally = Tally(now)
        self._planned = False
        self._last = now()
        self._written_seconds = 0.0
        """What had been encoded when the tally was last written: it isn't written twice of one state."""

    def __call__(self, event: Event) -> None:
        self._tally.add(event)
        if isinstance(event, PlanReady):
            self._planned, self._last = True, self._now()
        if text := announcement(event):
            self._write(text)
        elif self._now() - self._last >= LINE_INTERVAL_S:
            self._write_state(event)

    def _write_state(self, event: Event) -> None:
        if isinstance(event, Scanning):
            self._write(f"scanned {event.done:,} of {event.total:,} audio files")
        elif isinstance(event, Checking):
            self._write(_checked(event))
        elif self._planned:
            self._write_tally()
        else:
            return
        self._last = self._now()

    def _write_tally(self) -> None:
        self._written_seconds = self._tally.encoded_seconds
        self._write(self._tally.line())

    def _write(self, text: str) -> None:
        self._stream.write(f"prep: {text}\n")
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._tally.encoded_seconds > self._written_seconds:
            self._write_tally()


class BarProgress:
    """One bar in audio seconds, a short line a worker below it; announcements scroll above."""

    def __init__(self, stream: TextIO, *, now: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._now = stream, now
        self._tally = Tally(now)
        self._last_redraw = -REDRAW_INTERVAL_S
        self._bar = self._text_line(0)
        self._worker_lines: dict[int, tqdm] = {}

    def __call__(self, event: Event) -> None:
        self._tally.add(event)
        if text := announcement(event):
            tqdm.write(text, file=self._stream)
        match event:
            case Reading(dataset_name=name):
                self._bar.set_description_str(f"reading {name}")
            case Scanning(done=done, total=total):
                self._bar.set_description_str(f"scanned {done:,} of {total:,} audio files")
            case Checking():
                self._bar.set_description_str(_checked(event))
            case PlanReady():
                self._start_bar(event)
            case _ if self._now() - self._last_redraw >= REDRAW_INTERVAL_S:
                self._redraw()

    def _text_line(self, position: int) -> tqdm:
        return tqdm(
            file=self._stream, position=position, bar_format="{desc}", leave=False, dynamic_ncols=True, mininterval=0
        )

    def _start_bar(self, plan: PlanReady) -> None:
        self._bar.close()
        self._bar = tqdm(
            total=plan.audio_seconds,
            initial=plan.done_audio_seconds,
            bar_format="{percentage:3.0f} %|{bar}| {desc}",
            file=self._stream,
            dynamic_ncols=True,
            mininterval=0,
        )
        self._redraw()

    def _redraw(self) -> None:
        if self._bar.total is None:
            return
        self._last_redraw = self._now()
        for rank in sorted(self._tally.workers)[:MAX_WORKER_LINES]:
            if rank not in self._worker_lines:
                self._worker_lines[rank] = self._text_line(1 + len(self._worker_lines))
            self._worker_lines[rank].set_description_str(self._tally.worker_line(rank))
        self._bar.n = min(self._tally.done_seconds, self._bar.total)
        self._bar.set_description_str(self._tally.line())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._redraw()
        for line in self._worker_lines.values():
            line.close()
        self._bar.close()
