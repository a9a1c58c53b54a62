"""The worker process: one device, three overlapping stages.

    decode threads (prefetch.py)  ──►  encode, on the main thread  ──►  write thread (write_stage.py)

torch and the encoder are imported and loaded here, never in the parent. Ends with exit code 0 after all it was given is
committed and its shard closed; with 1 after a ``Failed`` message; at once when its parent is gone.

It leaves by ``os._exit``: all that counts is on disk by then, and an orderly exit would first decode every clip that is
still in line, wait for ever for a decoder that hangs, and give CUDA's teardown a chance to crash.
"""

import contextlib
import os
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import DiskError, PrepError
from ...core.paths import OutputPaths
from . import guard
from .board import Board
from .messages import Failed, FailureKind, Finished, FromWorker, HandedBack, Ready, clipped, encode
from .orders import WorkerOrders

if TYPE_CHECKING:
    from .encode_stage import EncodeStage
    from .prefetch import Prefetcher
    from .tuner import Tuner
    from .write_stage import WriteStage


def worker_main(orders: WorkerOrders, inbox: Any, outbox: Connection, lifeline: Connection, parent_pid: int) -> None:
    """Entry of the process. ``inbox`` is a spawn Queue of encoded ``Task``s, None at the end."""
    guard.die_with_parent(parent_pid)
    guard.obey_parent_only()
    paths = OutputPaths(Path(orders.output_dir))
    guard.log_stderr_into(paths.worker_log(orders.rank, orders.run_id))
    guard.dump_stacks_into(paths.worker_stacks(orders.rank, orders.run_id))
    worker = Worker(orders, paths, inbox, outbox)
    guard.watch_lifeline(lifeline, worker.drain)
    exit_code = worker.run()
    with contextlib.suppress(OSError):  # the log may lie on a full disk
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(exit_code)


class Worker:
    """The stages of one worker and the order in which they end."""

    def __init__(self, orders: WorkerOrders, paths: OutputPaths, inbox: Any, outbox: Connection) -> None:
        self._orders, self._paths, self._inbox, self._outbox = orders, paths, inbox, outbox
        self._board = Board(Path(orders.board_path), orders.threads.most)
        self._send_lock = threading.Lock()
        self._draining = threading.Event()
        self._prefetcher: Prefetcher | None = None

    def run(self) -> int:
        """The process' exit code."""
        kind: FailureKind = "start"
        try:
            stages = self._load()
            kind = "bug"
            self._work(*stages)
        except DiskError as error:
            self._send(Failed.of("disk", error))
        except PrepError as error:
            self._send(Failed.of(kind, error))
        except Exception:
            text = traceback.format_exc()
            self._send(Failed(kind, clipped(text)))
            with contextlib.suppress(OSError):
                sys.stderr.write(text)  # into the log, whole
        else:
            self._send(Finished())
            return 0
        return 1

    def drain(self) -> None:
        """Called on the lifeline's thread: stop after the chunk on the encoder."""
        self._draining.set()
        if self._prefetcher is not None:
            self._prefetcher.drain()

    def _send(self, message: FromWorker) -> None:
        with self._send_lock:
            self._outbox.send_bytes(encode(message))

    def _load(self) -> "tuple[Prefetcher, EncodeStage, WriteStage, Tuner]":
        began = time.monotonic()
        from .load import load_stages

        stages = load_stages(self._orders, self._paths, self._inbox, self._board, self._send)
        self._prefetcher = stages[0]
        if self._draining.is_set():  # the parent asked while there was no prefetcher to tell
            stages[0].drain()
        self._board.ready()
        self._send(Ready(self._orders.device_name, time.monotonic() - began))
        return stages

    def _work(
        self, prefetcher: "Prefetcher", encode_stage: "EncodeStage", write_stage: "WriteStage", tuner: "Tuner"
    ) -> None:
        prefetcher.start()
        on_encoder = False  # a chunk is partly encoded
        while on_encoder or not self._draining.is_set():
            batch = prefetcher.next()
            if batch is None:
                write_stage.check()
                if prefetcher.ended:
                    break
                continue
            if self._draining.is_set() and (
                not on_encoder or encode_stage.rest_seconds(batch) > self._orders.config.supervision.drain_s
            ):
                break
            encode_stage.run(batch)
            prefetcher.done(batch)
            tuner.tick()
            on_encoder = not batch.last
            if batch.last:
                write_stage.put(batch.chunk)
        for chunk_id in prefetcher.begun():
            self._send(HandedBack(chunk_id))
        write_stage.close()
