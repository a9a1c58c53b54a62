"""A small finished dataset, written straight with pyarrow: what a reader sees, without the code that writes it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from latentprep.core.paths import OutputPaths, shard_name
from latentprep.core.schema import row_schema

PATCH_SIZE, LATENT_DIM = 2, 3


def row(number: int, *, num_prompt: int = 2, num_patches: int = 3, dataset_name: str = "choir") -> dict[str, Any]:
    """A row whose latents are all ``number + 1``, so that a swapped row shows."""
    length = num_prompt + num_patches + 1
    is_patch = [0] * num_prompt + [1] * num_patches + [0]
    feats = np.zeros((length, PATCH_SIZE, LATENT_DIM), np.float16)
    feats[num_prompt:-1] = number + 1
    return {
        "packed_text_tokens": list(range(num_prompt)) + [0] * num_patches + [102],
        "audio_feats": feats.tolist(),
        "text_mask": [1 - patch for patch in is_patch],
        "audio_mask": is_patch,
        "loss_mask": is_patch,
        "labels": [0] * (length - 2) + [1, 0],
        "audio_duration": num_patches * 0.5,
        "estimated_duration": 1.0,
        "text_token_count": 1,
        "total_length": length,
        "item_name": f"item-{number}",
        "song_name": "song",
        "song_folder": "folder",
        "dataset_name": dataset_name,
        "svs_prompt": "<BPM_100>a<P_60><NOTE_4>",
        "bpm": 100,
        "word": ["a"],
        "pitch": [60],
        "pitch_dur": [0.5],
        "note": ["<NOTE_4>"],
        "pitch2word": [0],
        "word_dur": [0.5],
        "has_score": True,
    }


def write_dataset(folder: Path, shards: list[list[list[dict[str, Any]]]]) -> Path:
    """Write ``shards``, each a list of blocks, each a list of rows, and the state.json that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, blocks in enumerate(shards):
        with pa.OSFile(str(OutputPaths(folder).shard(0, number)), "wb") as sink:
            writer = pa.ipc.new_stream(sink, row_schema())
            for rows in blocks:
                writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=row_schema()))
            writer.close()
    files = [{"filename": shard_name(0, number)} for number in range(len(shards))]
    OutputPaths(folder).state.write_text(json.dumps({"_data_files": files}), encoding="utf-8")
    return folder


def small_dataset(folder: Path) -> Path:
    """Six rows: shard 0 has blocks of 2 and 1 rows, shard 1 one block of 3; rows 4 and 5 are of another corpus."""
    rows = [row(number, num_patches=number + 1, dataset_name="opera" if number > 3 else "choir") for number in range(6)]
    return write_dataset(folder, [[rows[:2], rows[2:3]], [rows[3:]]])
