"""``DatasetFacts``: what a finished dataset holds, counted from its shards and its list of skipped clips.

Counted, not copied out of a summary that the run wrote: what a person asks `prep inspect` is what is really there.
Only two small columns are read, so a dataset of 200 GB is counted from some tens of megabytes.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from .dataset_files import DatasetFiles


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """One corpus' share."""

    dataset_name: str
    num_rows: int
    audio_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetFacts:
    """Counts of one dataset."""

    folder: str
    num_rows: int
    num_shards: int
    num_blocks: int
    num_bytes: int
    """Of the shards."""
    audio_seconds: float
    corpora: tuple[CorpusFacts, ...]
    skipped: dict[str, int]
    """Clips without a row, by fault code, the commonest first."""
    schema: dict[str, str]
    """Arrow type of each column, in order."""


def dataset_facts(files: DatasetFiles) -> DatasetFacts:
    """Count the rows, hours, blocks and bytes of ``files``."""
    num_blocks, rows, seconds = 0, Counter[str](), defaultdict[str, float](float)
    schema: dict[str, str] = {}
    for block in files.blocks():
        num_blocks += 1
        schema = schema or {field.name: str(field.type) for field in block.batch.schema}
        _add_corpora(block.batch, rows, seconds)
    return DatasetFacts(
        folder=str(files.paths.root),
        num_rows=rows.total(),
        num_shards=len(files.shards),
        num_blocks=num_blocks,
        num_bytes=sum(shard.stat().st_size for shard in files.shards),
        audio_seconds=sum(seconds.values()),
        corpora=tuple(CorpusFacts(name, rows[name], seconds[name]) for name in sorted(rows)),
        skipped=_skipped_by_code(files.paths.skipped),
        schema=schema,
    )


def _add_corpora(batch: pa.RecordBatch, rows: Counter[str], seconds: dict[str, float]) -> None:
    table = pa.table({"name": batch.column("dataset_name"), "seconds": batch.column("audio_duration")})
    groups = table.group_by("name").aggregate([("seconds", "sum"), ("seconds", "count")])
    for group in groups.to_pylist():
        rows[group["name"]] += group["seconds_count"]
        seconds[group["name"]] += group["seconds_sum"]


def _skipped_by_code(path: Path) -> dict[str, int]:
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8") as lines:
        counts = Counter(str(json.loads(line)["code"]) for line in lines if line.strip())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
