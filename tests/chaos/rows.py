"""What a finished folder holds, read as a trainer does: ``load_from_disk``, every row counted and hashed."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import datasets

from latentprep.core.digest import digest_batch, sum_digests


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """The rows of a dataset against the clips of its corpus."""

    lost: tuple[str, ...]
    """Clips without a row."""
    twice: tuple[str, ...]
    """Clips with more than one."""
    digest: str
    """Over all rows as they lie in the shards."""


def read_rows(output_dir: Path, items: Iterable[str]) -> Rows:
    """Read every row of a finished folder."""
    table = datasets.load_from_disk(str(output_dir)).data.table
    counts = Counter(table.column("item_name").to_pylist())
    return Rows(
        lost=tuple(sorted(set(items) - counts.keys())),
        twice=tuple(sorted(item for item, count in counts.items() if count > 1)),
        digest=sum_digests(digest_batch(batch) for batch in table.to_batches() if batch.num_rows).full_hex,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The part of ``prep svs --json`` that is compared."""

    digest: str
    planned: int
    written: int
    remaining: int
    skipped: int
    num_chunks: int


def parse_summary(output: str) -> Summary:
    """What a run that ended with 0 has printed."""
    values = json.loads(output)
    return Summary(
        skipped=sum(values["skipped"].values()),
        **{name: values[name] for name in ("digest", "planned", "written", "remaining", "num_chunks")},
    )
