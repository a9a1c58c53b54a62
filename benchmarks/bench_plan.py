"""What does planning cost in the parent process, from 10 thousand to 10 million clips?

Method: synthetic clips of 15 notes with log-normal lengths stream into ``make_plan`` with an audio header made up on
the spot, so neither annotation files nor audio are touched; everything else (checks of text, prompt lengths, spilling,
cutting, dealing, writing the plan) is the real code. Then the plan is opened again, as a resume does. Each size runs in a
process of its own that reports its peak memory. Command: ``python benchmarks/bench_plan.py [N ...]``.
Result: benchmarks/results/plan_2core_202612.md.
"""

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from side_by_side import machine

from latentprep.preprocess.audio.header import AudioHeader
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.corpora.clip import Clip
from latentprep.preprocess.encode.registry import describe, tokenizer_folder
from latentprep.preprocess.plan.make import make_plan
from latentprep.preprocess.plan.plan import Plan
from latentprep.preprocess.score.tokenizer import SvsTokenizer

WORDS = ("我", "们", "在", "夜", "里", "唱", "一", "首", "歌", "SP", "la", "love")
NOTES = ("<NOTE_8>", "<NOTE_4>", "<NOTE_DOT_8>")


def clips(count: int) -> Iterator[Clip]:
    """Clips of 12 words and 15 notes; names like those of a real corpus."""
    pitch2word = (0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 11)
    pitch = tuple(55 + index % 20 for index in range(15))
    note = tuple(NOTES[index % 3] for index in range(15))
    for number in range(count):
        song = number // 10
        yield Clip(
            dataset_name=f"corpus{number * 4 // count}",
            item_name=f"Singer-{song % 97}#song {song}#{number % 10:04d}",
            song_name=f"Singer-{song % 97}#song {song}",
            song_folder=f"Singer-{song % 97}#song {song}",
            audio_path=f"data/audio/Singer-{song % 97}#song {song}/{number % 10:04d}.flac",
            audio_root="data/audio",
            word=WORDS,
            pitch=pitch,
            note=note,
            pitch2word=pitch2word,
            bpm=60 + number % 120,
            has_score=True,
        )


def measure(count: int, results: "multiprocessing.SimpleQueue[dict[str, float]]") -> None:
    """Plan ``count`` clips and open the plan again."""
    dataset = {"name": "x", "type": "json_file", "json_path": "x.json", "audio_root": "x"}
    config = RunConfig.model_validate(
        {"datasets": [dataset], "encoder": {"name": "tiny"}, "output_dir": "x", "device": "cpu"}
    )
    lengths = np.random.default_rng(0).lognormal(1.9, 0.5, 1 << 16)
    headers = [
        AudioHeader(file_size=700_000, mtime_ns=0, num_frames=int(44100 * s), sample_rate=44100, channels=1)
        for s in lengths
    ]
    info = describe(config.encoder, "cpu")
    tokenizer = SvsTokenizer.load(tokenizer_folder(config.encoder))
    serial = iter(range(count))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        plan = make_plan(
            config,
            info,
            tokenizer,
            clips(count),
            probe=lambda clip: headers[next(serial) & 0xFFFF],
            work_dir=Path(folder),
            on_event=lambda event: None,
        )
        planned = time.perf_counter()
        path = plan.path
        del plan
        again = Plan.open(path)
        again.chunk(0)
        opened = time.perf_counter()
        results.put(
            {
                "clips": count,
                "seconds": round(planned - began, 2),
                "microseconds_per_clip": round((planned - began) / count * 1e6, 1),
                "open_seconds": round(opened - planned, 3),
                "plan_mb": round(path.stat().st_size / 1e6, 1),
                "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
                "chunks": again.num_chunks,
            }
        )


def main() -> None:
    counts = [int(argument) for argument in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    context = multiprocessing.get_context("spawn")
    for count in counts:
        results: multiprocessing.SimpleQueue[dict[str, float]] = context.SimpleQueue()
        process = context.Process(target=measure, args=(count, results))
        process.start()
        process.join()
        print(json.dumps({"benchmark": "plan", **results.get(), **machine()}), flush=True)


if __name__ == "__main__":
    main()
