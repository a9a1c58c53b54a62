"""``find_bottleneck``: the stage that limits a worker or a run, in words with figures, and what to change about it.

A pure function of what the stages did over some time. It looks from the encoder outwards: an encoder that is never idle
is the limit, whatever else is busy; otherwise the largest cause of its idleness names the side to look at, and
the counters of that side name the reason. Decode threads off their cores wait for a disk if most of that time
lies in reading, else for a core, or for Python's lock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..events import Bottleneck, StageSeconds
from .stages import total
from .thread_share import ThreadShare

IDLE = 0.1
"""An encoder that is idle for less is the limit: what is left to win is less than a tenth."""
THREADS_BUSY = 0.7
"""Below this share of busy threads, more of them would not help."""
OFF_CORE = 0.3
"""Decode threads wait for something if they are off their cores for more of their busy time."""
READING = 0.3
"""And it is the disk, if reading takes this share of their busy time."""


def find_bottleneck(
    done: StageSeconds, share: ThreadShare, *, workers: int = 1, rank: int | None = None, work_left: bool = True
) -> Bottleneck | None:
    """The verdict on what ``workers`` workers did together; None while there is nothing to judge by.

    ``work_left``: there are chunks that no worker has.
    """
    if done.span <= 0 or not (done.encode or done.wait or done.no_work):
        return None
    causes = {"wait": done.wait, "blocked": done.blocked, "no_work": done.no_work}
    cause = max(causes, key=lambda name: causes[name])
    look = _Look(done, share, workers, work_left)
    if causes[cause] < IDLE * done.span:
        verdict = look.encoder()
    elif cause == "wait":
        verdict = look.audio()
    else:
        verdict = look.writing() if cause == "blocked" else look.work()
    limit, facts, advice = verdict
    return Bottleneck(rank=rank, limit=limit, facts=facts, advice=advice)


def judge(window: Sequence[StageSeconds], share: ThreadShare, *, work_left: bool) -> Iterator[Bottleneck]:
    """The verdict on each rank, then on all of them together."""
    verdicts = [find_bottleneck(one, share, rank=one.rank, work_left=work_left) for one in window]
    verdicts.append(find_bottleneck(total(window), share, workers=len(window), work_left=work_left))
    yield from (verdict for verdict in verdicts if verdict is not None)


_Verdict = tuple[str, str, str]
"""limit, facts, advice."""


@dataclass(frozen=True, slots=True)
class _Look:
    done: StageSeconds
    share: ThreadShare
    workers: int
    work_left: bool

    def encoder(self) -> _Verdict:
        return "encode", f"encoder busy {self._of_span(self.done.encode)}", "nothing: the encoder is the limit"

    def audio(self) -> _Verdict:
        """The encoder waits for audio: too few threads, a slow disk, too few cores, or too little read ahead."""
        done, idle = self.done, f"encoder idle {self._of_span(self.done.wait)}"
        facts = f"{self._threads()}, {idle}"
        with_clips = done.thread_seconds * (1 - min(1.0, done.no_task / done.span))
        if done.decode < THREADS_BUSY * with_clips:
            return "prefetch", facts, self._depth()
        if done.decode_cpu < (1 - OFF_CORE) * done.decode:
            share = f"{1 - done.decode_cpu / done.decode:.0%}".replace("%", " %")
            if done.read >= READING * done.decode:
                advice = "faster disk for the audio" + (", or more decode_threads" if self.share.configured else "")
                return "disk", f"{facts}, threads wait for reads {share} of it", advice
            return (
                "cores",
                f"{facts}, threads wait for a core or each other {share} of it",
                self._cores() + ", or fewer workers or decode_threads",
            )
        more = f"more decode_threads: {self.share.cores.count} cores are usable"
        return "decode", facts, more if self.share.configured else self._cores()

    def writing(self) -> _Verdict:
        done = self.done
        facts = f"encoder held up {self._of_span(done.blocked)}, writing takes {self._of_span(done.write)}"
        if done.write >= done.rows:
            return "write", facts, "faster disk for output_dir"
        return "rows", f"{facts}, making rows {self._of_span(done.rows)}", self._cores()

    def work(self) -> _Verdict:
        facts = f"workers without a chunk {self._of_span(self.done.no_work)}"
        if self.work_left:
            return "parent", facts, "larger chunks: limits.max_chunk_rows, limits.max_chunk_bytes of a new plan"
        return "end", facts, "nothing: too little work is left for all workers"

    def _threads(self) -> str:
        wall = self.done.span / self.workers
        return f"{self.done.decode / wall:.0f} of {self.done.thread_seconds / wall:.0f} threads busy"

    def _depth(self) -> str:
        if self.done.held_bytes > IDLE * self.done.span and self.done.held_bytes > self.done.held_chunks:
            return "more prefetch_bytes"
        return "nothing: batches wait for their longest clip"

    def _cores(self) -> str:
        return {
            "SLURM_CPUS_PER_TASK": "give more cores: --cpus-per-task",
            "cgroup": "give more cores: the cgroup's CPU quota",
        }.get(self.share.cores.limit, f"give more cores: {self.share.cores.count} are usable")

    def _of_span(self, seconds: float) -> str:
        return f"{min(1.0, seconds / self.done.span):.0%}".replace("%", " %")
