"""How near to the ideal does a run on 1 to 512 cards come, and what would simpler rules cost?

Method: discrete-event simulation (cluster_sim.py) over chunks cut by the real planner out of log-normal clip lengths, handed
out by the real ``decide``. Ideal: one start, then all cards at work until the same moment. Ways:

- ``ours``: chunks of the plan, handed out on demand by one parent (a node, or one engine over many nodes);
- ``parts``: the plan in parts of whole nodes, one task each, as a SLURM array runs it;
- ``fixed``: chunks of 2,000 clips in corpus order, on demand;
- ``ascending``: chunks of 2,000 clips from the shortest to the longest, on demand;
- ``static``: each card has its own equal share of the clips from the start.

Trouble: each card's worker dies once a day, and 5 % of the cards run at half speed.
Command: ``python benchmarks/bench_scaling.py [--clips N] [--cards N ...] [--json FILE]``.
Result: docs/scaling.md, drawn by plot_scaling.py.
"""

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from cluster_sim import Cluster, Floats, Result, simulate_parts, simulate_whole

from latentprep.core.paths import Part
from latentprep.core.units import LatentSpec, ceil_div
from latentprep.preprocess.division import chunks_of
from latentprep.preprocess.encode.limits import batch_limits
from latentprep.preprocess.plan.cut import CutInput, CutLimits, cut
from latentprep.preprocess.plan.row_bytes import row_bytes as estimated_row_bytes

SPEC = LatentSpec(sample_rate=16_000, hop_length=640, latent_dim=64, patch_size=4)
RATE = 1_500.0
"""Times real time of a card: what the planner assumes of a GPU."""
CARDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
FIXED_CLIPS = 2_000
SHARD_BYTES = 1 << 30
BATCH = batch_limits(SPEC, "cuda", context_patches=4)
LIMITS = CutLimits(
    patch_samples=SPEC.patch_samples,
    max_batch_clips=128,
    max_batch_samples=BATCH.max_batch_samples,
    max_whole_samples=BATCH.max_whole_samples,
    max_chunk_rows=1_024,
    max_chunk_bytes=32 << 20,
    max_chunk_samples=int(60 * RATE * SPEC.sample_rate),
)
"""What a run on GPUs plans with, with every setting at its default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One simulated run."""

    way: str
    cards: int
    trouble: bool
    chunks: int
    ideal_s: float
    makespan_s: float
    deaths: int
    files: int
    metadata_operations: int

    @property
    def over_ideal(self) -> float:
        """Share of the ideal time that it took longer."""
        return self.makespan_s / self.ideal_s - 1


def clip_seconds(num_clips: int, seed: int = 0) -> Floats:
    """Log-normal lengths: median 7 s, mean about 8 s, at most 60 s."""
    return np.random.default_rng(seed).lognormal(np.log(7.0), 0.5, num_clips).clip(0.5, 60.0)


def planned_chunks(seconds: Floats) -> Floats:
    """Audio seconds of each chunk of the real plan, in plan order."""
    samples = (seconds * SPEC.sample_rate).astype(np.int64)
    corpus = np.zeros(len(samples), np.int8)
    made = cut(CutInput(corpus=corpus, num_samples=samples, row_bytes=row_bytes(seconds)), LIMITS, seed=1)
    return np.add.reduceat(seconds[made.order], made.chunk_starts[:-1])


def row_bytes(seconds: Floats) -> np.ndarray:
    """Bytes of rows with a prompt of 40 tokens."""
    patches = (seconds * SPEC.sample_rate).astype(np.int64) // SPEC.patch_samples + 1
    return estimated_row_bytes(np.full(len(seconds), 40), patches, SPEC)


def fixed_chunks(seconds: Floats) -> Floats:
    """Audio seconds of chunks of a fixed number of clips, in the order given."""
    return np.add.reduceat(seconds, np.arange(0, len(seconds), FIXED_CLIPS))


def rates(cards: int, *, trouble: bool) -> tuple[float, ...]:
    """Every twentieth card is slow where there is trouble."""
    return tuple(RATE / 2 if trouble and card % 20 == 10 else RATE for card in range(cards))


def cluster(cards: int, *, trouble: bool, cards_per_node: int = 8) -> Cluster:
    return Cluster(
        rates=rates(cards, trouble=trouble),
        failures_per_day=1.0 if trouble else 0.0,
        cards_per_node=cards_per_node,
    )


def shares(num_chunks: int, num_cards: int) -> list[range]:
    """Neighbouring chunks in equal numbers."""
    borders = [num_chunks * card // num_cards for card in range(num_cards + 1)]
    return [range(low, high) for low, high in itertools.pairwise(borders)]


def simulate(way: str, chunks: Floats, cards: int, *, trouble: bool) -> tuple[Cluster, Result]:
    """One run. ``parts`` has one task for each node: a task pays for a start."""
    if way == "parts":
        where = cluster(cards, trouble=trouble)
        count = where.num_nodes
        live = range(len(chunks))
        parts = [chunks_of(Part(number=number, count=count), live) for number in range(1, count + 1)]
        return where, simulate_parts(chunks, where, parts)
    if way == "static":
        where = cluster(cards, trouble=trouble, cards_per_node=1)
        return where, simulate_parts(chunks, where, shares(len(chunks), cards))
    where = cluster(cards, trouble=trouble)
    return where, simulate_whole(chunks, where)


def measure(seconds: Floats, cards: Sequence[int]) -> Iterator[Row]:
    """All ways at all sizes, without and with trouble."""
    planned, fixed, rising = planned_chunks(seconds), fixed_chunks(seconds), fixed_chunks(np.sort(seconds))
    chunks_of = {"ours": planned, "parts": planned, "fixed": fixed, "ascending": rising, "static": fixed}
    total_bytes = int(row_bytes(seconds).sum())
    for trouble in (False, True):
        for number in cards:
            for way, chunks in chunks_of.items():
                where, result = simulate(way, chunks, number, trouble=trouble)
                assert set(result.commits.values()) == {1}
                assert len(result.commits) == len(chunks)
                yield row_of(way, where, result, chunks, total_bytes, trouble=trouble)


def row_of(way: str, where: Cluster, result: Result, chunks: Floats, total_bytes: int, *, trouble: bool) -> Row:
    """Files and metadata operations are counted from how shards and journals are written (writers/)."""
    shards = max(result.incarnations, ceil_div(total_bytes, SHARD_BYTES))
    return Row(
        way=way,
        cards=len(where.rates),
        trouble=trouble,
        chunks=len(chunks),
        ideal_s=where.ideal_s(float(chunks.sum())),
        makespan_s=result.makespan_s,
        deaths=result.deaths,
        files=shards + result.incarnations,
        # a shard: create, sync, rename, sync of the folder; a journal: create, sync of the folder; a chunk: two syncs
        metadata_operations=4 * shards + 2 * result.incarnations + 2 * len(chunks),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clips", type=int, default=35_000_000)
    parser.add_argument("--cards", type=int, nargs="+", default=CARDS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    for row in measure(clip_seconds(options.clips), options.cards):
        rows.append(row)
        trouble = "trouble" if row.trouble else "quiet"
        print(
            f"{row.way:10} {row.cards:4} cards {trouble:8} {row.chunks:6} chunks  ideal {row.ideal_s:9.0f} s"
            f"  took {row.makespan_s:9.0f} s  +{100 * row.over_ideal:6.2f} %  {row.files:6} files"
            f"  {row.metadata_operations:8} metadata operations",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps({"clips": options.clips, "rows": [asdict(row) for row in rows]}, indent=1))


if __name__ == "__main__":
    main()
