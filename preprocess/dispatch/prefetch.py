"""Decode threads that run ahead of the encoder, over chunk borders, within a byte budget.

A feeder thread takes tasks from the inbox, reserves bytes for one encode batch at a time and hands its clips to the
decode threads; batches come out in order, so the encoder waits for the oldest clip only. The budget counts a clip's
waveform at the encoder's rate plus what its decoding needs for a moment (the samples as stored).
"""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum

import msgspec

from ...core.errors import ClipFault, Fault, FaultCode, PrepError, Stage
from ..audio.decode import DecodedAudio
from ..plan.plans import Plans
from .board import Board
from .budget import ByteBudget
from .decode_threads import DecodeThreads
from .gate import Gate
from .messages import FromWorker, HandedBack, Taken, Task
from .work import BatchWork, ChunkWork, Decoded

CHUNKS_AHEAD = 2
"""Chunks begun and not yet encoded: the one on the encoder and the one being decoded behind it. At the start."""

Decode = Callable[[ChunkWork, int], Decoded]
"""Decodes one clip (row of the chunk). Raises ClipFault, or PrepError for what must end the worker."""


class _Mark(Enum):
    """What stands between the batches."""

    WAKE = "wake"
    END = "end"


class Prefetcher:
    """Decoded encode batches, in plan order. ``next`` is for one consumer, which calls ``done`` after each."""

    def __init__(
        self,
        *,
        plan: Plans,
        decode: Decode,
        inbox: "queue.Queue[bytes | None]",
        send: Callable[[FromWorker], None],
        board: Board,
        threads: DecodeThreads,
        budget: ByteBudget,
    ) -> None:
        self._plan, self._decode, self._inbox, self._send = plan, decode, inbox, send
        self._board, self._budget = board, budget
        self._threads = threads
        self._lock = threading.Lock()
        board.set_threads(threads.active)
        self._ahead = Gate(CHUNKS_AHEAD)
        self._encoded = threading.Condition()
        self._unencoded = 0
        self._ready: queue.Queue[BatchWork | _Mark] = queue.Queue()
        self._begun: dict[int, None] = {}
        self._error: BaseException | None = None
        self._hungry = True
        """The feeder has no task."""
        self.ended = False
        """The inbox gave its None, and ``next`` has given all batches."""
        self.draining = threading.Event()

    def start(self) -> None:
        """Begin to take tasks."""
        threading.Thread(target=self._feed, name="feeder", daemon=True).start()

    def next(self) -> BatchWork | None:
        """The next batch; None when woken, or when ``ended``. Raises what broke the feeder."""
        with self._board.timed("no_work" if self._hungry else "wait"):
            batch = self._ready.get()
        if isinstance(batch, BatchWork):
            return batch
        if batch is _Mark.END:
            self.ended = True
            if self._error is not None:
                raise self._error
        return None

    def done(self, batch: BatchWork) -> None:
        """The batch is encoded: its waveforms are no longer held."""
        self._budget.release(batch.reserved)
        with self._encoded:
            self._unencoded -= 1
            self._encoded.notify_all()
        if batch.last:
            del self._begun[batch.chunk.chunk_id]
            self._ahead.leave()

    @property
    def active_threads(self) -> int:
        return self._threads.active

    def resize(self, threads: int, chunks_ahead: int) -> None:
        """Decode with so many threads, and read so many chunks ahead, from now on."""
        self._threads.resize(threads)
        self._board.set_threads(threads)
        self._ahead.resize(chunks_ahead)

    def drain(self) -> None:
        """Take no more tasks, and wake the consumer."""
        self.draining.set()
        self.wake()

    def wake(self) -> None:
        """Let ``next`` return None once: there is something else for its caller to look at."""
        self._ready.put(_Mark.WAKE)

    def begun(self) -> tuple[int, ...]:
        """Chunks that were begun and not encoded to their end."""
        return tuple(self._begun)

    # ---- the feeder thread

    def _feed(self) -> None:
        try:
            while (raw := self._next_task()) is not None:
                self._begin(msgspec.msgpack.decode(raw, type=Task))
        except BaseException as error:  # the worker's main thread raises it again
            self._error = error
        self._ready.put(_Mark.END)

    def _next_task(self) -> bytes | None:
        self._hungry = True
        with self._board.timed("no_task"):
            raw = self._inbox.get()
        self._hungry = raw is None
        return raw

    def _begin(self, task: Task) -> None:
        with self._board.timed("held_chunks"):
            self._ahead.enter()
        if self.draining.is_set():
            self._send(HandedBack(task.chunk_id))
            self._ahead.leave()
            return
        self._begun[task.chunk_id] = None
        self._send(Taken(task.chunk_id))
        chunk = ChunkWork(task, self._plan.chunk(task.chunk_id))
        for excluded in task.excluded:
            fault = Fault(Stage.DECODE, FaultCode(excluded.code), excluded.message)
            chunk.outcomes[excluded.position].fault = fault
        early = self._decode_singly(chunk)
        batches = list(chunk.batches())
        sizes = self._plan.decoded_bytes(chunk.clips)
        for rows in batches:
            reserved = int(sizes[rows.start : rows.stop].sum())
            with self._board.timed("held_bytes"):
                self._budget.reserve(reserved)
            audio = [early.get(row) or self._submit(chunk, row) for row in rows]
            with self._encoded:
                self._unencoded += 1
            self._ready.put(BatchWork(chunk, rows, audio, reserved, last=rows is batches[-1]))

    def _decode_singly(self, chunk: ChunkWork) -> dict[int, Future[Decoded | Fault]]:
        """Suspects of a crash: one at a time and nothing beside, so that the next crash names one.

        All that was begun before is decoded *and encoded* first: an encoder that crashes must not blame a decoder.
        """
        if not chunk.task.singly:
            return {}
        with self._encoded:
            self._encoded.wait_for(lambda: self._unencoded == 0)
        early: dict[int, Future[Decoded | Fault]] = {}
        for row in chunk.task.singly:
            early[row] = self._submit(chunk, row)
            early[row].result()
        return early

    def _submit(self, chunk: ChunkWork, row: int) -> Future[Decoded | Fault]:
        fault = chunk.outcomes[row].fault
        if fault is not None:
            known: Future[Decoded | Fault] = Future()
            known.set_result(fault)
            return known
        return self._threads.submit(lambda slot: self._decode_one(chunk, row, slot))

    # ---- the decode threads

    def _decode_one(self, chunk: ChunkWork, row: int, slot: int) -> Decoded | Fault:
        self._board.begin(slot, chunk.chunk_id, row)
        began, cpu = time.perf_counter(), time.thread_time()
        decoded: Decoded | None = None
        try:
            decoded = self._decode(chunk, row)
            return decoded
        except ClipFault as error:
            return error.fault
        except PrepError:
            raise
        except Exception as error:  # one bad clip costs one row, whatever a decoder raises
            return Fault(Stage.DECODE, FaultCode.UNREADABLE, f"{type(error).__name__}: {error}")
        finally:
            self._count(decoded, time.perf_counter() - began, time.thread_time() - cpu)
            self._board.end(slot)

    def _count(self, decoded: Decoded | None, seconds: float, cpu_seconds: float) -> None:
        with self._lock:
            self._board.add("decode", seconds)
            self._board.add("decode_cpu", cpu_seconds)
            self._board.add("decoded_clips", 1)
            if isinstance(decoded, DecodedAudio):
                self._board.add("read", decoded.read_seconds)
                self._board.add("read_bytes", decoded.file_size)
                self._board.add("decoded_bytes", decoded.wave.nbytes)
