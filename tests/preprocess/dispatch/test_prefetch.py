"""Decode threads ahead of the encoder: order, budget, suspects, and how it ends."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from latentprep.core.errors import DiskError, Fault, FaultCode
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.audio.decode import DecodedAudio
from latentprep.preprocess.dispatch.board import Board
from latentprep.preprocess.dispatch.budget import ByteBudget
from latentprep.preprocess.dispatch.decode_threads import DecodeThreads
from latentprep.preprocess.dispatch.messages import Excluded, FromWorker, HandedBack, Taken, Task
from latentprep.preprocess.dispatch.prefetch import Prefetcher
from latentprep.preprocess.dispatch.work import BatchWork, ChunkWork
from latentprep.preprocess.plan.plans import Plans
from latentprep.preprocess.run import plan_only

from ..runs import bulk_config

AUDIO = DecodedAudio(
    wave=np.zeros(16, np.float32),
    num_samples=16,
    file_size=1,
    audio_hash="",
    source_rate=16_000,
    channels=1,
    num_frames=16,
    peak=0.5,
    rms=0.1,
)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plans:
    """12 clips in chunks of at least 3, at most two to a batch."""
    config = bulk_config(
        tmp_path_factory.mktemp("plan"), 12, seconds=(0.5, 1.0), limits={"max_chunk_rows": 4, "max_batch_clips": 2}
    )
    plan_only(config)
    plan = Plans.open(OutputPaths(config.output_dir))
    assert plan.num_chunks >= 3
    assert plan.chunks.rows[:3].min() >= 3
    return plan


def all_rows(plan: Plans, chunk: int) -> list[int]:
    return list(range(int(plan.chunks.rows[chunk])))


class Bench:
    """A prefetcher with all that a worker would give it."""

    def __init__(self, plan: Plans, folder: Path, decode: Callable[[ChunkWork, int], DecodedAudio], limit: int) -> None:
        self.inbox: queue.Queue[bytes | None] = queue.Queue()
        self.sent: list[FromWorker] = []
        self.budget = ByteBudget(limit)
        self.prefetcher = Prefetcher(
            plan=plan,
            decode=decode,
            inbox=self.inbox,
            send=self.sent.append,
            board=Board.create(folder / "board", 2),
            threads=DecodeThreads(2, 2),
            budget=self.budget,
        )
        self.prefetcher.start()

    def put(self, *tasks: Task) -> None:
        for task in tasks:
            self.inbox.put(msgspec.msgpack.encode(task))

    def finish(self) -> None:
        self.inbox.put(None)

    def batches(self) -> Iterator[BatchWork]:
        """As the worker's main thread takes them, each done before the next."""
        while not self.prefetcher.ended:
            batch = self.prefetcher.next()
            if batch is not None:
                for future in batch.audio:
                    future.result()
                yield batch
                self.prefetcher.done(batch)


@pytest.fixture
def bench(plan: Plans, tmp_path: Path) -> Callable[..., Bench]:
    def make(decode: Callable[[ChunkWork, int], DecodedAudio] = lambda chunk, row: AUDIO, limit: int = 1 << 30):
        return Bench(plan, tmp_path, decode, limit)

    return make


@pytest.mark.timeout(30)
def test_a_budget_smaller_than_any_batch_is_no_dead_lock(bench: Callable[..., Bench], plan: Plans):
    """A batch can't be split: it is let in alone."""
    small = bench(limit=1)
    small.put(Task(0), Task(1), Task(2))
    small.finish()

    rows = [(batch.chunk.chunk_id, *batch.rows) for batch in small.batches()]

    assert [
        (chunk, *rows) for chunk in range(3) for rows in ChunkWork(Task(chunk), plan.chunk(chunk)).batches()
    ] == rows
    assert small.budget.peak == max(
        int(plan.decoded_bytes(plan.chunk(c))[list(rows)].sum())
        for c in range(3)
        for rows in ChunkWork(Task(c), plan.chunk(c)).batches()
    )


@pytest.mark.timeout(30)
def test_suspects_are_decoded_one_at_a_time_after_all_else(bench: Callable[..., Bench]):
    """A crash then names one clip; another clip or the encoder at work beside it would share the blame."""
    now, most, seen = set[tuple[int, int]](), dict[tuple[int, int], int](), threading.Lock()

    def decode(chunk: ChunkWork, row: int) -> DecodedAudio:
        with seen:
            now.add((chunk.chunk_id, row))
            for clip in now:
                most[clip] = max(most.get(clip, 0), len(now))
        time.sleep(0.02)
        with seen:
            now.discard((chunk.chunk_id, row))
        return AUDIO

    singly = bench(decode)
    singly.put(Task(0), Task(1, singly=(0, 2)))
    singly.finish()
    first_done: list[bool] = []
    for batch in singly.batches():
        time.sleep(0.05)  # the encoder
        if batch.chunk.chunk_id == 0:
            first_done.append((1, 0) not in most)

    assert [True] * len(first_done) == first_done
    assert (1, 1) == (most[1, 0], most[1, 2])
    assert 2 == max(most.values())


@pytest.mark.timeout(30)
def test_an_excluded_clip_is_not_touched(bench: Callable[..., Bench], plan: Plans):
    """It has killed two workers; the rest of its batch stays as planned."""
    touched: list[int] = []

    def decode(chunk: ChunkWork, row: int) -> DecodedAudio:
        touched.append(row)
        return AUDIO

    without = bench(decode)
    without.put(Task(0, singly=(2,), excluded=(Excluded(1, "poison", "killed by SIGSEGV"),)))
    without.finish()

    audio = [future.result() for batch in without.batches() for future in batch.audio]

    assert [row for row in all_rows(plan, 0) if row != 1] == sorted(touched)
    assert isinstance(audio[1], Fault)
    assert (FaultCode.POISON, "killed by SIGSEGV") == (audio[1].code, audio[1].message)


@pytest.mark.timeout(30)
def test_what_is_no_clips_fault_ends_the_worker(bench: Callable[..., Bench]):
    """A corpus whose mount is gone: thousands of skipped clips would be worse than a stop."""

    def decode(chunk: ChunkWork, row: int) -> DecodedAudio:
        raise DiskError("the audio folder is gone")

    gone = bench(decode)
    gone.put(Task(0))

    batch = gone.prefetcher.next()

    assert batch is not None
    with pytest.raises(DiskError):
        batch.audio[0].result()


@pytest.mark.timeout(30)
def test_what_breaks_the_feeder_reaches_the_consumer(bench: Callable[..., Bench]):
    """A plan that can't be read any more; the main thread waits in ``next`` for ever otherwise."""
    broken = bench()
    broken.put(Task(999))

    with pytest.raises(IndexError):
        broken.prefetcher.next()


@pytest.mark.timeout(30)
def test_waking_gives_the_consumer_a_look_and_loses_no_batch(bench: Callable[..., Bench], plan: Plans):
    """The write thread wakes it after a full disk; a wake-up is not the end, also when all has been fed already."""
    woken = bench()
    woken.prefetcher.wake()
    first = woken.prefetcher.next()
    woken.put(Task(0))
    woken.finish()
    time.sleep(0.1)
    woken.prefetcher.wake()

    assert first is None
    assert all_rows(plan, 0) == [row for batch in woken.batches() for row in batch.rows]


@pytest.mark.timeout(30)
def test_a_drain_takes_no_more_tasks_and_gives_the_chunk_under_way_to_its_end(bench: Callable[..., Bench], plan: Plans):
    """What is on the encoder may be finished; what has not been begun goes back."""
    draining = bench()
    draining.put(Task(0))
    batches = draining.batches()
    rows = [*next(batches).rows]
    draining.prefetcher.drain()
    draining.put(Task(1))
    draining.finish()

    rows += [row for batch in batches for row in batch.rows]

    assert all_rows(plan, 0) == rows
    assert [Taken(0), HandedBack(1)] == draining.sent
    assert () == draining.prefetcher.begun()
