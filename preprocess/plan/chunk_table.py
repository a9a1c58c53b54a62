"""``ChunkTable``: the sizes of every chunk of a plan, a few numbers each, small enough to keep in memory.

It is what the bill, the progress bar and the feeder need; nobody opens the clips for it. Ten million clips in 1,024-row
chunks are 10,000 entries.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkTable:
    """One entry per chunk, in plan order; all columns are int64 [K]."""

    corpora: tuple[str, ...]
    """Names of the corpora."""
    corpus: Column
    """Index into ``corpora``: a chunk holds clips of one corpus."""
    rows: Column
    """Clips."""
    weak: Column
    """Clips without a score."""
    batches: Column
    """Encode batches."""
    samples: Column
    """Audio samples at the VAE's rate, as expected from the headers."""
    padded_samples: Column
    """Samples that the encoder computes: each batch padded to its longest clip in whole patches."""
    row_bytes: Column
    """Estimated bytes of the rows."""

    def __len__(self) -> int:
        return len(self.rows)

    def to_json(self) -> str:
        """Compact JSON, an object of lists."""
        values = {name: getattr(self, name).tolist() for name in _COLUMNS}
        return json.dumps({"corpora": self.corpora} | values, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def none(cls, corpora: tuple[str, ...]) -> "ChunkTable":
        """No chunks."""
        columns = {name: np.zeros(0, np.int64) for name in _COLUMNS}
        return cls(corpora=corpora, **columns)

    @classmethod
    def joined(cls, tables: "Sequence[ChunkTable]") -> "ChunkTable":
        """The chunks of all tables, one after another."""
        corpora = tuple(dict.fromkeys(name for table in tables for name in table.corpora))
        columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in _COLUMNS}
        numbers = [np.asarray([corpora.index(name) for name in table.corpora], np.int64) for table in tables]
        columns["corpus"] = np.concatenate([new[table.corpus] for table, new in zip(tables, numbers, strict=True)])
        return cls(corpora=corpora, **columns)

    @classmethod
    def from_json(cls, text: str) -> "ChunkTable":
        """The inverse of ``to_json``; raises ``ValueError`` or ``KeyError`` for anything else."""
        values = json.loads(text)
        columns = {name: np.asarray(values[name], np.int64) for name in _COLUMNS}
        if len({len(column) for column in columns.values()}) != 1:
            raise ValueError("columns of the chunk table differ in length")
        return cls(corpora=tuple(values["corpora"]), **columns)


_COLUMNS = tuple(field.name for field in fields(ChunkTable) if field.name != "corpora")
