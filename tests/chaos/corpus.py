"""The corpus of a chaos run and its configuration: many short clips, small chunks, small shards, the dummy encoder.

Everything is small so that borders are many: 16 rows a chunk, 100 rows a shard. Time-outs of supervision are short, so
that a worker that was stopped and never continued is replaced within a run.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.config_file import resolved_yaml
from latentprep.preprocess.synth.corpus import write_bulk_corpus

CLIP_SECONDS = (0.3, 1.0)
CHUNK_ROWS = 16
SHARD_ROWS = 100
STALL_S = 10.0
"""Long beside what a worker needs for one clip on a machine with many other tasks."""
STOP_S = 15.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """What every run of a chaos run encodes."""

    config_path: Path
    items: frozenset[str]
    """Names of all clips; each has to have one row in the end."""


def write_corpus(folder: Path, num_clips: int, seed: int) -> Corpus:
    """Write audio, annotations and prep.yaml to ``folder``."""
    written = write_bulk_corpus(
        folder, num_clips=num_clips, seconds=CLIP_SECONDS, sample_rates=(16_000,), format="WAV", seed=seed
    )
    dataset = {
        "name": "chaos",
        "type": "json_file",
        "json_path": written.annotation_path,
        "audio_root": written.audio_root,
        "song_id_indices": [0, 1],
    }
    config = RunConfig.model_validate(
        {
            "datasets": [dataset],
            "encoder": {"name": "dummy"},
            "output_dir": folder / "unused",
            "limits": {"max_chunk_rows": CHUNK_ROWS},
            "shards": {"max_rows": SHARD_ROWS},
            "supervision": {"stall_s": STALL_S, "stop_s": STOP_S},
        }
    )
    config_path = folder / "prep.yaml"
    config_path.write_text(resolved_yaml(config), encoding="utf-8")
    annotations = json.loads(written.annotation_path.read_text(encoding="utf-8"))
    return Corpus(config_path=config_path, items=frozenset(clip["item_name"] for clip in annotations))
