"""How far a run, or one part of it, has come, by the journals."""

from collections.abc import Mapping, Sequence

from ..core.units import samples_to_seconds
from ..writers.ledger import Journal
from ..writers.records import BlockRecord
from . import events
from .plan.plans import Plans


def committed_records(journal: Journal) -> Mapping[int, BlockRecord]:
    """The line that counts for each chunk; for a chunk in a shard that is still open, the one about that."""
    blocks = {record.chunk: record for shard in journal.open for record in shard.records}
    return blocks | {chunk: block.record for chunk, block in journal.done.items()}


def plan_ready(plan: Plans, chunks: Sequence[int], journal: Journal, *, resumed: bool) -> events.PlanReady:
    """The event that begins a run over these chunks."""
    wanted = set(chunks)
    done = {chunk: record for chunk, record in committed_records(journal).items() if chunk in wanted}
    return events.PlanReady(
        fingerprint=plan.fingerprint,
        num_clips=int(plan.chunks.rows[list(chunks)].sum()),
        num_refused=plan.num_refused,
        num_chunks=len(chunks),
        audio_seconds=_seconds(plan, chunks),
        done_chunks=len(done),
        done_audio_seconds=_seconds(plan, list(done)),
        done_rows=sum(record.rows for record in done.values()),
        resumed=resumed,
    )


def _seconds(plan: Plans, chunks: Sequence[int]) -> float:
    return samples_to_seconds(int(plan.chunk_samples[list(chunks)].sum()), plan.spec.sample_rate)
