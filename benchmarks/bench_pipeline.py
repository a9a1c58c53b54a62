"""What does the pipeline around an encoder that costs nothing add to bare decoding and resampling?

Method: a real ``Worker`` (two decode threads, encode, write thread, shards and journal on disk) with the dummy encoder,
beside a bare loop of ``soundfile.read`` and torchaudio's resampling with kept kernels, on the same FLAC files of about 8 s at
44.1 and 48 kHz, with the same two threads and the same settings of the allocator. Each round runs both, each in a
process of its own; counted is the CPU time of the whole process, all threads. Start-up is left out on both sides: Python,
torch, the tokenizer and the kernels are loaded before the clock starts (the worker's starts with its ``Ready`` message
and stops with ``Finished``, when all is on disk).
Command: ``python benchmarks/bench_pipeline.py``. Result: benchmarks/results/pipeline_2core_202612.md.
"""

import argparse
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from side_by_side import machine

from latentprep.core.paths import OutputPaths
from latentprep.preprocess.audio.resample import resample
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.dispatch.board import Board
from latentprep.preprocess.dispatch.messages import Task
from latentprep.preprocess.dispatch.orders import WorkerOrders
from latentprep.preprocess.dispatch.worker import Worker
from latentprep.preprocess.encode.cpu_tuning import tune_cpu
from latentprep.preprocess.encode.registry import describe
from latentprep.preprocess.plan.plans import Plans
from latentprep.preprocess.run import plan_only
from latentprep.preprocess.synth.corpus import write_bulk_corpus

if TYPE_CHECKING:
    from torchaudio.transforms import Resample

THREADS = 2
SECONDS = (6.0, 10.0)
RATES = (44_100, 48_000)
RATE = 16_000


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        if options.side == "worker":
            _print(worker(folder))
            return
        if options.side == "bare":
            _print(bare(folder))
            return
        if not (folder / "corpus").exists():
            write_bulk_corpus(folder / "corpus", num_clips=options.clips, seconds=SECONDS, sample_rates=RATES)
        plan_only(config(folder))
        rounds = [(_measured("worker", folder), _measured("bare", folder)) for _ in range(options.rounds)]
    ratios = [ours["rows_per_cpu_s"] / floor["rows_per_cpu_s"] for ours, floor in rounds]
    rates = [[side["rows_per_cpu_s"] for side in sides] for sides in zip(*rounds, strict=True)]
    _print(
        {
            "benchmark": "pipeline",
            "ratio": {"min": min(ratios), "median": statistics.median(ratios), "max": max(ratios)},
            "worker_rows_per_cpu_s": statistics.median(rates[0]),
            "bare_rows_per_cpu_s": statistics.median(rates[1]),
            "rounds": len(rounds),
            **machine(),
        }
    )


def config(folder: Path) -> RunConfig:
    """The run; its output folder lies beside the corpus."""
    corpus = {
        "name": "bulk",
        "type": "json_file",
        "json_path": folder / "corpus/annotations.json",
        "audio_root": folder / "corpus/audio",
        "song_id_indices": [0, 1],
    }
    settings = {"datasets": [corpus], "encoder": {"name": "dummy"}, "output_dir": folder / "out", "device": "cpu"}
    return RunConfig.model_validate(settings)


class Clock:
    """Stands for a worker's outbox: notes when it is ready and when it has finished."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def send_bytes(self, message: bytes) -> None:
        if msgspec.msgpack.decode(message)["type"] in ("Ready", "Finished", "Failed"):
            self.cpu.append(time.process_time())
            self.wall.append(time.perf_counter())


def worker(folder: Path) -> dict[str, float]:
    """One worker over the whole plan."""
    settings, paths = config(folder), OutputPaths(folder / "out")
    plan, inbox = Plans.open(paths), queue.Queue()
    for chunk in plan.live:
        inbox.put(msgspec.msgpack.encode(Task(chunk)))
    inbox.put(None)
    board = folder / "board"
    Board.create(board, THREADS)
    orders = WorkerOrders(
        rank=0,
        run_id=f"bench{time.time_ns()}",
        config=settings,
        info=describe(settings.encoder, "cpu"),
        device_kind="cpu",
        device_name="cpu",
        output_dir=str(paths.root),
        board_path=str(board),
        decode_threads=THREADS,
    )
    _load_kernels()
    clock = Clock()
    assert Worker(orders, paths, inbox, clock).run() == 0  # type: ignore[arg-type]
    counters = Board(board, THREADS).counters()
    for shard in paths.root.glob("data-*.arrow"):
        shard.unlink()
    rows = plan.num_clips
    return counters | _figures(rows, clock.cpu[1] - clock.cpu[0], clock.wall[1] - clock.wall[0])


def bare(folder: Path) -> dict[str, float]:
    """Decoding and resampling alone."""
    import soundfile
    import torch

    kernels = _load_kernels()

    def one(path: Path) -> int:
        wave, rate = soundfile.read(path, dtype="float32")
        with torch.inference_mode():
            return len(kernels[rate](torch.from_numpy(wave)).numpy())

    paths = sorted((folder / "corpus/audio").glob("*/*.flac"))
    cpu, wall = time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(one, paths))
    return _figures(len(paths), time.process_time() - cpu, time.perf_counter() - wall)


def _load_kernels() -> "dict[int, Resample]":
    """What is loaded once per process: torch, kernels, and pandas, which pyarrow imports at its first array."""
    tune_cpu()
    import pyarrow as pa
    import torch
    from torchaudio.transforms import Resample

    pa.array([0])
    torch.set_num_threads(1)
    kernels = {rate: Resample(rate, RATE, dtype=torch.float32) for rate in RATES}
    for rate, kernel in kernels.items():
        kernel(torch.zeros(rate))
        resample(np.zeros(rate, np.float32), rate, RATE)
    return kernels


def _figures(rows: int, cpu: float, wall: float) -> dict[str, float]:
    return {"rows": rows, "cpu_s": cpu, "wall_s": wall, "rows_per_cpu_s": rows / cpu}


def _measured(side: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, side, "--folder", str(folder)]
    figures = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    print(side, figures, file=sys.stderr)
    return figures


def _print(figures: dict) -> None:
    json.dump(figures, sys.stdout)
    print()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("side", nargs="?", choices=("worker", "bare"), help="one side, in this process")
    parser.add_argument("--folder", type=Path, help="keep corpus and plan here")
    parser.add_argument("--clips", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
