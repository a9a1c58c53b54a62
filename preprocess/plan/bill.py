"""``Bill``: what a run will cost, before it runs. A pure function of the plan and of what is free.

Hours and counts are the plan's; bytes are estimated from lengths (row_bytes.py, within 3 %); time is the audio at the
encoder's stated rate on so many workers, which a real card may beat or miss, so it is a scale and not a promise.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.units import ceil_div, samples_to_seconds
from ...writers.skipped import by_code
from ..config import RunConfig, ShardSettings
from ..encode.protocol import EncoderInfo
from .plan import Plan

BLOCK_BYTES = 12_000
"""What a block takes beside its rows: message header, facts of its rows, journal line, index line."""
FIXED_INODES = 12
"""Metadata, card, report, plan, events, locks and the folders they lie in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeSpace:
    """What the output's file system has left for this user."""

    num_bytes: int
    inodes: int | None
    """None = the file system does not count them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusBill:
    """One corpus' share."""

    name: str
    clips: int
    weak: int
    refused: int
    hours: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bill:
    """What a run will cost."""

    corpora: tuple[CorpusBill, ...]
    hours: float
    """Of audio, by the headers."""
    clips: int
    """Clips that have a place in the plan."""
    weak: int
    """Of these, clips without a score."""
    refused: Mapping[str, int]
    """Number of clips by fault code, the commonest first."""
    chunks: int
    batches: int
    padding: float
    """Share of what the encoder computes that is padding, whole patches included."""
    rows_per_block: float
    """Median; small blocks make a dataset slower to open."""
    num_bytes: int
    """To be written."""
    inodes: int
    free: FreeSpace
    workers: int
    encode_seconds: float | None
    """At the stated rate; None if that is unbounded."""

    @property
    def num_refused(self) -> int:
        return sum(self.refused.values())

    @property
    def fits(self) -> bool:
        """Whether the output's file system has room for it."""
        return self.num_bytes <= self.free.num_bytes and (self.free.inodes is None or self.inodes <= self.free.inodes)


def free_space(folder: Path) -> FreeSpace:
    """What is free where ``folder`` is or will be (its nearest existing parent). A quota is not seen here."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    facts = os.statvfs(folder)
    return FreeSpace(num_bytes=facts.f_bavail * facts.f_frsize, inodes=facts.f_favail if facts.f_files else None)


def make_bill(plan: Plan, config: RunConfig, info: EncoderInfo, workers: int, free: FreeSpace) -> Bill:
    """The bill of a whole plan, whatever of it is done already."""
    chunks = plan.chunks
    num_bytes = int(chunks.row_bytes.sum()) + BLOCK_BYTES * len(chunks)
    padded = int(chunks.padded_samples.sum())
    rate = info.stated_rate
    codes: Counter[str] = Counter()
    for _, code, count in plan.head.refused_counts:
        codes[code] += count
    return Bill(
        corpora=_corpora(plan),
        hours=plan.audio_seconds / 3600,
        clips=plan.num_clips,
        weak=int(chunks.weak.sum()),
        refused=by_code(codes),
        chunks=len(chunks),
        batches=int(chunks.batches.sum()),
        padding=1 - int(chunks.samples.sum()) / padded if padded else 0.0,
        rows_per_block=float(np.median(chunks.rows)) if len(chunks) else 0.0,
        num_bytes=num_bytes,
        inodes=_inodes(num_bytes, plan.num_clips, config.shards, workers),
        free=free,
        workers=workers,
        encode_seconds=None if rate is None else samples_to_seconds(padded, plan.spec.sample_rate) / (rate * workers),
    )


def _corpora(plan: Plan) -> tuple[CorpusBill, ...]:
    chunks = plan.chunks
    refused: Counter[str] = Counter()
    for name, _, count in plan.head.refused_counts:
        refused[name] += count
    names = [*chunks.corpora, *(name for name in refused if name not in chunks.corpora)]
    bills = []
    for number, name in enumerate(names):
        mine = chunks.corpus == number
        seconds = samples_to_seconds(int(chunks.samples[mine].sum()), plan.spec.sample_rate)
        bills.append(
            CorpusBill(
                name=name,
                clips=int(chunks.rows[mine].sum()),
                weak=int(chunks.weak[mine].sum()),
                refused=refused[name],
                hours=seconds / 3600,
            )
        )
    return tuple(bills)


def _inodes(num_bytes: int, num_rows: int, shards: ShardSettings, workers: int) -> int:
    """Files of a run: each worker fills shards of its own and keeps a journal."""
    per_worker = max(ceil_div(num_bytes, workers * shards.max_bytes), ceil_div(num_rows, workers * shards.max_rows))
    return workers * (per_worker + 1) + FIXED_INODES
