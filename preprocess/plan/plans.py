"""``Plans``: the plan of a dataset and the plans that extended it, as if they were one.

Chunks are called by ids that run through all plans. Those that a later plan supersedes are no part of the run any more:
``live`` has the others. Everything that a run asks of its plan it asks of this, so that a run over one plan, the usual
case, and over several are the same code.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...core.errors import OutputError
from ...core.paths import OutputPaths
from ...core.units import LatentSpec, samples_to_seconds
from ..corpora.clip import RefusedClip
from .chunk_table import ChunkTable
from .identity import Identity
from .limits import CutLimits
from .plan import Plan, PlanHead


class Plans:
    """Stored plans, oldest first. Reading is safe from several threads."""

    def __init__(self, plans: tuple[Plan, ...]) -> None:
        """Raises OutputError if one doesn't extend the one before it."""
        self.parts = plans
        self._firsts = [0, *np.cumsum([plan.num_chunks for plan in plans]).tolist()]
        for before, plan, first in zip(plans, plans[1:], self._firsts[1:], strict=False):
            extension = plan.head.extension
            if extension is None or (extension.base, extension.first_chunk) != (before.fingerprint, first):
                raise OutputError(
                    f"{plan.path} does not extend {before.path}",
                    why="chunk ids of both would mean different clips",
                    fix="restore the plan files of this folder, or start anew with --overwrite",
                )

    @classmethod
    def open(cls, paths: OutputPaths) -> "Plans":
        """Open all plans of an output folder. Raises OutputError if one is missing, damaged or out of place."""
        plans = [Plan.open(paths.plan)]
        while (path := paths.extended_plan(len(plans) + 1)).exists():
            plans.append(Plan.open(path))
        return cls(tuple(plans))

    @property
    def last(self) -> Plan:
        """The plan whose corpora are those of now."""
        return self.parts[-1]

    @property
    def fingerprint(self) -> str:
        """Of the last plan; it covers those that it extends."""
        return self.last.fingerprint

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Of all plans, oldest first: the dataset's lineage."""
        return tuple(plan.fingerprint for plan in self.parts)

    @property
    def head(self) -> PlanHead:
        """Of the last plan."""
        return self.last.head

    @property
    def identity(self) -> Identity:
        return self.last.identity

    @property
    def limits(self) -> CutLimits:
        return self.last.limits

    @property
    def spec(self) -> LatentSpec:
        return self.last.spec

    @property
    def num_chunks(self) -> int:
        """Of all plans, the superseded ones included: ids are below it."""
        return self._firsts[-1]

    @cached_property
    def superseded(self) -> frozenset[int]:
        """Ids of chunks that a later plan replaces, be it complete or not."""
        heads = (plan.head.extension for plan in self.parts)
        return frozenset(chunk for extension in heads if extension is not None for chunk in extension.supersedes)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Ids of the chunks that the finished dataset consists of, ascending."""
        return tuple(chunk for chunk in range(self.num_chunks) if chunk not in self.superseded)

    @cached_property
    def chunks(self) -> ChunkTable:
        """Sizes of all chunks, by id."""
        return ChunkTable.joined([plan.chunks for plan in self.parts])

    @property
    def chunk_samples(self) -> npt.NDArray[np.int64]:
        """[K] expected audio samples of each chunk, at the VAE's rate."""
        return self.chunks.samples

    @property
    def chunk_dataset(self) -> list[str]:
        """[K] name of each chunk's corpus."""
        return [self.chunks.corpora[number] for number in self.chunks.corpus]

    @property
    def num_clips(self) -> int:
        """Clips of the live chunks."""
        return int(self.chunks.rows[list(self.live)].sum())

    @property
    def num_refused(self) -> int:
        """Items that were refused when the corpora were last read."""
        return self.last.num_refused

    @property
    def audio_seconds(self) -> float:
        """Expected audio of the live chunks."""
        return samples_to_seconds(int(self.chunk_samples[list(self.live)].sum()), self.spec.sample_rate)

    def fingerprint_of(self, chunk: int) -> str:
        """Of the plan that a chunk belongs to."""
        return self.parts[self._part(chunk)].fingerprint

    def chunk(self, number: int) -> pa.RecordBatch:
        """The clips of a chunk, as ``Plan.chunk``."""
        part = self._part(number)
        return self.parts[part].chunk(number - self._firsts[part])

    def refused(self) -> Iterator[RefusedClip]:
        """The clips that were refused when the corpora were last read."""
        return self.last.refused()

    def decoded_bytes(self, clips: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """[N], see ``Plan.decoded_bytes``."""
        return self.last.decoded_bytes(clips)

    def _part(self, chunk: int) -> int:
        if not 0 <= chunk < self.num_chunks:
            raise IndexError(f"chunk {chunk} of {self.num_chunks}")
        return int(np.searchsorted(self._firsts, chunk, side="right")) - 1
