"""``RowView``: one row of a dataset, with its latents as an array instead of nested lists.

Reading ``audio_feats`` through Python lists takes about a thousand times as long as a view over the flat buffer.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class LatentSummary:
    """What can be said of a row's latents in a line."""

    shape: tuple[int, ...]
    """[L, P, D]"""
    mean: float
    std: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class RowView:
    """One row and where it lies."""

    number: int
    shard: str
    block: int
    """Position of its block in the shard."""
    batch: pa.RecordBatch
    """The row alone: a slice of its block."""

    def value(self, column: str) -> object:
        """A column's value as Python objects."""
        return self.batch.column(column)[0].as_py()

    def values(self) -> Iterator[tuple[str, object]]:
        """(column, value) of every column but ``audio_feats``, in the schema's order."""
        for column in self.batch.schema.names:
            if column != "audio_feats":
                yield column, self.value(column)

    def positions(self) -> npt.NDArray[np.float16]:
        """``audio_feats`` of all positions, prompt and end included: [L, P, D] float16."""
        positions = self.batch.column("audio_feats").flatten()
        patches = positions.flatten()
        flat = patches.flatten().to_numpy()
        return flat.reshape(len(positions), len(patches) // len(positions), -1)

    def frames(self) -> npt.NDArray[np.float16]:
        """The latent frames of the patches alone: [F, D] float16."""
        is_patch = self.batch.column("audio_mask").flatten().to_numpy() == 1
        patches_NPD = self.positions()[is_patch]
        return patches_NPD.reshape(-1, patches_NPD.shape[-1])

    def latent_summary(self) -> LatentSummary:
        """Shape of ``audio_feats``; mean, deviation and range of its patches alone (the rest is zeros)."""
        frames = self.frames().astype(np.float64)
        return LatentSummary(
            self.positions().shape, float(frames.mean()), float(frames.std()), float(frames.min()), float(frames.max())
        )
