"""Finished datasets, small and right by every rule, written by the code that writes real ones."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from latentprep.core.paths import OutputPaths
from latentprep.core.schema import AUDIO_START_ID
from latentprep.preprocess.rows.assemble import assemble
from latentprep.preprocess.rows.facts import RowFacts, annotation_hashes, encode_facts
from latentprep.writers.block import BlockMetadata
from latentprep.writers.hf_dataset import dataset_fingerprint, write_hf_metadata
from latentprep.writers.index_build import write_index
from latentprep.writers.ledger import Journal, read_journals
from latentprep.writers.provenance import (
    Counts,
    EncoderFacts,
    Provenance,
    Timings,
    describe_environment,
    shard_facts,
    write_provenance,
)
from latentprep.writers.shard import ShardLimits, ShardWriter
from latentprep.writers.skipped import SkippedLine, skipped_line, write_skipped

from .builders import FINGERPRINT, SPEC, annotations, skipped

ROWS_PER_BLOCK = 3
BLOCKS_PER_SHARD = 2


def right_rows(chunk: int, num_rows: int = ROWS_PER_BLOCK) -> tuple[pa.RecordBatch, str]:
    """Rows that break no rule, with their facts; another chunk gives other rows."""
    rng = np.random.default_rng(chunk)
    clips = annotations(num_rows, seed=chunk)
    scored, words, notes = (clips.column(name).to_pylist() for name in ("has_score", "word", "pitch2word"))
    lengths = rng.integers(2, 6, num_rows) * SPEC.patch_size
    prompts = [np.array([*rng.integers(1, 99, rng.integers(2, 6)), AUDIO_START_ID], np.int32) for _ in range(num_rows)]
    batch = assemble(
        clips,
        prompts=prompts,
        text_token_counts=[len(n if s else w) for s, w, n in zip(scored, words, notes, strict=True)],
        prompt_texts=[f"感 {row}" for row in range(num_rows)],
        estimated_durations=(rng.random(num_rows) + 0.1).tolist(),
        latents=[rng.standard_normal((length, SPEC.latent_dim)).astype(np.float16) for length in lengths],
        spec=SPEC,
    )
    return batch, encode_facts([_facts(text) for text in annotation_hashes(clips)])


def _facts(annotation_hash: str) -> RowFacts:
    return RowFacts(
        audio_hash="0" * 32,
        audio_bytes=1,
        sample_rate=16_000,
        channels=1,
        num_samples=1,
        peak=1.0,
        rms=0.1,
        annotation_hash=annotation_hash,
        encode_batch=0,
        rank=0,
        device="cpu",
    )


def block_metadata(chunk: int, facts: str = "") -> BlockMetadata:
    return BlockMetadata(chunk=chunk, fingerprint=FINGERPRINT, facts=facts)


def write_shards(paths: OutputPaths, num_blocks: int, *, first: int = 0, run_id: str = "run1") -> None:
    """Chunks from ``first`` on, two a shard; the last chunk skipped a clip, one more chunk has no rows at all."""
    limits = ShardLimits(max_rows=ROWS_PER_BLOCK * BLOCKS_PER_SHARD, max_bytes=1 << 40)
    with ShardWriter(paths, 0, run_id, FINGERPRINT, limits) as writer:
        for chunk in range(first, first + num_blocks):
            batch, facts = right_rows(chunk)
            lost = [skipped(ROWS_PER_BLOCK)] if chunk == first + num_blocks - 1 else []
            writer.write(batch, block_metadata(chunk, facts), skipped=lost, warnings={"loud": 1})
        writer.write(None, block_metadata(first + num_blocks), skipped=[skipped(0, "silence")])


def write_metadata(paths: OutputPaths) -> Journal:
    """What the end of a run writes of the shards that are there."""
    journal = read_journals(paths, FINGERPRINT)
    refused = SkippedLine(dataset="合唱", item="x", path="p", stage="score", code="no_lyric", message="only rests")
    counts = write_skipped(paths, [refused, *(skipped_line(clip) for _, clip in journal.skipped())])
    write_provenance(paths, _provenance(journal, dict(counts)))
    write_index(paths, journal.shards, dataset_fingerprint(journal.shards, FINGERPRINT, journal.digests), SPEC)
    write_hf_metadata(paths, journal.shards, FINGERPRINT, journal.digests)
    return journal


def finished_dataset(root: Path, num_blocks: int = 6) -> OutputPaths:
    """Three shards of two blocks of three rows, by default."""
    paths = OutputPaths(root)
    write_shards(paths, num_blocks)
    write_metadata(paths)
    return paths


def _provenance(journal: Journal, skipped_counts: dict[str, int]) -> Provenance:
    return Provenance(
        environment=describe_environment(),
        command=("prep", "svs"),
        config={},
        fingerprint=FINGERPRINT,
        encoder=EncoderFacts(
            name="dummy",
            checkpoint="(none)",
            weights_hash="w",
            tokenizer_hash="t",
            sample_rate=SPEC.sample_rate,
            hop_length=SPEC.hop_length,
            patch_size=SPEC.patch_size,
            latent_dim=SPEC.latent_dim,
            precision="float32",
        ),
        devices=("cpu",),
        counts=Counts(
            planned=journal.num_rows + sum(skipped_counts.values()),
            written=journal.num_rows,
            skipped=skipped_counts,
            remaining=0,
            warnings=dict(journal.warnings),
            audio_seconds=journal.audio_seconds,
            chunks=len(journal.done),
            shards=len(journal.shards),
            bytes=journal.num_bytes,
        ),
        digest=journal.digests.full_hex,
        content_digest=journal.digests.content_hex,
        timings=Timings(started="", finished="", wall_seconds=0.0, encoded_seconds=0.0),
        shards=shard_facts(journal.shards),
    )
