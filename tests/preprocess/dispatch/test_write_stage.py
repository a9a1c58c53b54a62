"""The write thread's errors reach the worker's main thread, wherever that waits."""

import threading
from pathlib import Path

import pytest

from latentprep.core.errors import Fault, FaultCode, OutputError, Stage
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.dispatch.board import Board
from latentprep.preprocess.dispatch.messages import Committed, FromWorker, Task
from latentprep.preprocess.dispatch.work import ChunkWork
from latentprep.preprocess.dispatch.write_stage import WriteStage
from latentprep.preprocess.encode.dummy import describe_dummy
from latentprep.preprocess.encode.registry import tokenizer_folder
from latentprep.preprocess.plan.plans import Plans
from latentprep.preprocess.run import plan_only
from latentprep.preprocess.score.tokenizer import SvsTokenizer
from latentprep.writers.shard import ShardLimits, ShardWriter

from ..runs import bulk_config


class Bench:
    """A write stage, and what it told."""

    def __init__(self, folder: Path) -> None:
        config = bulk_config(folder, 6, seconds=(0.5, 1.0))
        plan_only(config)
        self.paths = OutputPaths(config.output_dir)
        self.plans = Plans.open(self.paths)
        limits = ShardLimits(max_rows=100, max_bytes=1 << 20)
        self.writer = ShardWriter(self.paths, 0, "run", self.plans.fingerprints, limits)
        self.sent: list[FromWorker] = []
        self.woken = threading.Event()
        self.stage = WriteStage(
            writer=self.writer,
            tokenizer=SvsTokenizer.load(tokenizer_folder(config.encoder)),
            info=describe_dummy(),
            rank=0,
            device="cpu",
            fingerprint_of=self.plans.fingerprint_of,
            board=Board.create(folder / "board", 1),
            send=self.sent.append,
            wake=self.woken.set,
        )

    def chunk(self) -> ChunkWork:
        """One whose every clip was refused."""
        chunk = ChunkWork(Task(0), self.plans.chunk(0))
        for outcome in chunk.outcomes:
            outcome.fault = Fault(Stage.DECODE, FaultCode.SILENT, "a test")
        return chunk


@pytest.mark.timeout(60)
def test_an_error_wakes_the_main_thread_which_then_raises_it(tmp_path: Path):
    """It may be waiting for audio, or for a task that never comes: the disk is full and nobody would tell the parent."""
    bench = Bench(tmp_path)
    bench.writer.abandon()
    bench.stage.check()

    bench.stage.put(bench.chunk())

    assert bench.woken.wait(10)
    with pytest.raises((OutputError, OSError)):
        bench.stage.check()
    with pytest.raises((OutputError, OSError)):
        bench.stage.put(bench.chunk())
    with pytest.raises((OutputError, OSError)):
        bench.stage.close()
    assert [] == bench.sent


@pytest.mark.timeout(60)
def test_closing_waits_until_all_is_committed(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.stage.put(bench.chunk())
    bench.stage.close()

    assert [Committed(0, 0, bench.plans.chunk(0).num_rows)] == bench.sent
    assert not bench.woken.is_set()
