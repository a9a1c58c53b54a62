"""Rows, shards and journals for tests of the writers and of the digest."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from latentprep.core.paths import WHOLE, OutputPaths, Part
from latentprep.core.schema import ANNOTATION_COLUMNS, COLUMNS, IDENTITY_COLUMNS
from latentprep.core.units import LatentSpec
from latentprep.preprocess.rows.assemble import assemble
from latentprep.writers.block import BlockMetadata
from latentprep.writers.records import BlockRecord, ClosedRecord, SkippedClip
from latentprep.writers.shard import ShardLimits, ShardWriter

FINGERPRINT = "a1b2c3d4"
SPEC = LatentSpec(sample_rate=16_000, hop_length=640, patch_size=2, latent_dim=3)
WIDE = ShardLimits(max_rows=1 << 30, max_bytes=1 << 40)


def annotations(num_rows: int, seed: int = 0) -> pa.RecordBatch:
    """Identity and annotation columns of clips; every third is weak."""
    rng = np.random.default_rng(seed)
    clips = [_annotation(rng, f"item-{seed}-{row}", weak=row % 3 == 2) for row in range(num_rows)]
    names = (*IDENTITY_COLUMNS, *ANNOTATION_COLUMNS)
    return pa.RecordBatch.from_arrays([pa.array([clip[n] for clip in clips], COLUMNS[n]) for n in names], names)


def _annotation(rng: np.random.Generator, item: str, *, weak: bool) -> dict[str, object]:
    num_words = int(rng.integers(1, 5))
    num_notes = 0 if weak else num_words
    return {
        "item_name": item,
        "song_name": item[:6],
        "song_folder": "",
        "dataset_name": "合唱",
        "word": [["感", "la", "AP", "受"][i % 4] for i in range(num_words)],
        "pitch": rng.integers(0, 128, num_notes).tolist(),
        "pitch_dur": rng.random(num_notes).tolist(),
        "note": ["<NOTE_8>"] * num_notes,
        "pitch2word": list(range(num_notes)),
        "word_dur": [] if weak else rng.random(num_words).tolist(),
        "bpm": 0 if weak else int(rng.integers(1, 256)),
        "has_score": not weak,
    }


def rows(num_rows: int, seed: int = 0, max_patches: int = 6) -> pa.RecordBatch:
    """Rows as a worker makes them; another seed gives other rows."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, max_patches + 1, num_rows) * SPEC.patch_size
    return assemble(
        annotations(num_rows, seed),
        prompts=[rng.integers(1, 500, rng.integers(1, 6)).astype(np.int32) for _ in range(num_rows)],
        text_token_counts=rng.integers(1, 9, num_rows).tolist(),
        prompt_texts=[f"感 {row}" for row in range(num_rows)],
        estimated_durations=rng.random(num_rows).tolist(),
        latents=[rng.standard_normal((length, SPEC.latent_dim)).astype(np.float16) for length in lengths],
        spec=SPEC,
    )


def metadata(chunk: int, facts: str = "facts") -> BlockMetadata:
    return BlockMetadata(chunk=chunk, fingerprint=FINGERPRINT, facts=facts)


def skipped(position: int = 0, item: str = "gone") -> SkippedClip:
    return SkippedClip(
        position=position, dataset="d", item=item, path="p", stage="decode", code="empty_file", message="0 bytes"
    )


def writer(paths: OutputPaths, rank: int = 0, run_id: str = "run1", limits: ShardLimits = WIDE, part: Part = WHOLE):
    return ShardWriter(paths, rank, run_id, FINGERPRINT, limits, part=part)


def killed_run(paths: OutputPaths, chunks: Sequence[int], rank: int = 0, run_id: str = "run1") -> list[BlockRecord]:
    """A run that committed ``chunks`` (2 rows each, seeded by the chunk) to one shard and was killed then."""
    dying = writer(paths, rank, run_id)
    records = [dying.write(rows(2, chunk), metadata(chunk)) for chunk in chunks]
    dying.abandon()
    return records


def finished_run(paths: OutputPaths, chunks: Iterable[int], rank: int = 0, run_id: str = "run1") -> list[ClosedRecord]:
    """A run that committed ``chunks`` and closed its shard."""
    closed: list[ClosedRecord] = []
    with ShardWriter(paths, rank, run_id, FINGERPRINT, WIDE, on_closed=closed.append) as done:
        for chunk in chunks:
            done.write(rows(2, chunk), metadata(chunk))
    return closed


def open_parts(paths: OutputPaths) -> list[str]:
    return sorted(os.listdir(paths.open_dir))


def shard_names(paths: OutputPaths) -> list[str]:
    return sorted(path.name for path in paths.root.glob("data-*"))


def read_shard(path: Path) -> pa.Table:
    with pa.ipc.open_stream(path.read_bytes()) as reader:
        return reader.read_all()
