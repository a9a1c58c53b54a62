"""``cut_extension``: the chunks of a plan that extends others, worked out from a comparison. Pure, numpy only.

    new, relabelled, other audio ── the usual cut ──────────────────► chunks to encode
    chunks with a clip that changed or is gone ── their other clips ─► chunks to copy rows into, one for one

A copied chunk keeps the order and the encode batches that its clips had, so that its rows can be made again if they are
lost. Blocks without a changed clip are not touched at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .batches import CutInput, Int64s
from .compare import ClipState, Comparison, KnownClips
from .cut import Cut, cut
from .extension import Extension
from .limits import CutLimits


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtendedCut:
    """Chunks over the clips of now, and what they replace."""

    pieces: Cut
    extension: Extension


def cut_extension(
    sizes: CutInput,
    found: Comparison,
    known: KnownClips,
    batches_of: Callable[[int], npt.NDArray[np.int32]],
    limits: CutLimits,
    *,
    seed: int,
    base: str,
    first_chunk: int,
) -> ExtendedCut:
    """Cut the clips that need encoding, and gather the unchanged rest of each chunk that has to be replaced.

    ``sizes`` are of all clips of now; ``batches_of`` gives the encode batch of each clip of a known chunk.
    """
    todo = np.flatnonzero(found.state != ClipState.KEPT)
    part = CutInput(corpus=sizes.corpus[todo], num_samples=sizes.num_samples[todo], row_bytes=sizes.row_bytes[todo])
    encoded = cut(part, limits, seed=seed)
    changed = found.known[todo]
    stale = np.unique(np.concatenate([known.chunk[changed[changed >= 0]], known.chunk[found.gone]]))
    rests = _rests(stale, found, known)
    borders = [_batch_borders(batches_of(chunk)[known.position[found.known[rest]]]) for chunk, rest in rests.items()]
    first_copy = first_chunk + len(encoded.chunk_starts) - 1
    return ExtendedCut(
        pieces=_joined(encoded, todo, [*rests.values()], borders),
        extension=Extension(
            base=base,
            first_chunk=first_chunk,
            supersedes=tuple(stale.tolist()),
            copies=tuple((first_copy + number, chunk) for number, chunk in enumerate(rests)),
        ),
    )


def _rests(stale: Int64s, found: Comparison, known: KnownClips) -> dict[int, Int64s]:
    """By stale chunk the positions of now of its unchanged clips, in its order; chunks without any are left out."""
    kept = np.flatnonzero(found.state == ClipState.KEPT)
    kept = kept[np.isin(known.chunk[found.known[kept]], stale)]
    numbers = found.known[kept]
    order = np.lexsort((known.position[numbers], known.chunk[numbers]))
    chunks, starts = np.unique(known.chunk[numbers[order]], return_index=True)
    return dict(zip(chunks.tolist(), np.split(kept[order], starts[1:]), strict=False))


def _batch_borders(batches: npt.NDArray[np.int32]) -> Int64s:
    """Where encode batches start, and the end."""
    return np.concatenate([[0], np.flatnonzero(np.diff(batches)) + 1, [len(batches)]]).astype(np.int64)


def _joined(encoded: Cut, todo: Int64s, rests: list[Int64s], borders: list[Int64s]) -> Cut:
    """The chunks to encode, then one chunk for each rest."""
    ends = len(todo) + np.cumsum([0, *map(len, rests)])
    batch_starts = [start + inner[1:] for (start, _), inner in zip(pairwise(ends.tolist()), borders, strict=True)]
    return Cut(
        order=np.concatenate([todo[encoded.order], *rests]).astype(np.int64),
        batch_starts=np.concatenate([encoded.batch_starts, *batch_starts]).astype(np.int64),
        chunk_starts=np.concatenate([encoded.chunk_starts, ends[1:]]).astype(np.int64),
        num_full_chunks=encoded.num_full_chunks,
    )
