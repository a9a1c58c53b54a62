"""Events and a clock that stands still until a test moves it."""

from dataclasses import dataclass
from typing import Any

from latentprep.preprocess.events import ChunkDone, PlanReady, RunSummary, StageSeconds


@dataclass
class Clock:
    time: float = 0.0

    def __call__(self) -> float:
        return self.time


def plan_ready(**changes: Any) -> PlanReady:
    values = {"num_clips": 1_000, "num_refused": 4, "num_chunks": 40, "audio_seconds": 3_600.0}
    return PlanReady(**{"fingerprint": "a1b2c3d4e5f6a7b8", **values, **changes})


def chunk_done(**changes: Any) -> ChunkDone:
    values = {"rank": 0, "chunk_id": 0, "num_rows": 10, "num_skipped": 0, "audio_seconds": 60.0}
    return ChunkDone(**{**values, **changes})


def run_summary(**changes: Any) -> RunSummary:
    values = {
        "output_dir": "out",
        "planned": 1_004,
        "written": 1_000,
        "skipped": {"no_lyric": 3, "silent": 1},
        "remaining": 0,
        "warnings": {"loud": 2},
        "audio_seconds": 3_600.0,
        "encoded_seconds": 1_800.0,
        "wall_seconds": 12.0,
        "num_chunks": 10,
        "num_shards": 2,
        "num_bytes": 68_000_000,
        "digest": "d" * 32,
        "content_digest": "c" * 32,
        "fingerprint": "f" * 32,
        "stages": (
            StageSeconds(rank=1, decode=30.0, encode=11.0, rows=0.5, write=0.2, wait=0.1),
            StageSeconds(rank=0, decode=31.0, encode=11.5, rows=0.5, write=0.2, wait=0.0),
        ),
    }
    return RunSummary(**{**values, **changes})
