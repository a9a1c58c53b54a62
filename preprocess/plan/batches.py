"""Clips into encode batches: one corpus, nearly one length, nothing over a bound. Pure numpy.

Clips are taken from the longest to the shortest, so a batch's padded size is known from its first clip and what is
left over at the end of a corpus is its shortest clip. Decisions:

- A batch's longest clip is at most 1.05 times its shortest, plus one patch. On lognormal lengths (100,000 clips) that
  leaves 0.1 % padding, which the other bounds mostly keep by themselves; the ratio guards small corpora.
- Two neighbours may share a batch whatever their ratio. A batch of one costs as much as one of two on a CPU (the encoder
  doubles it to keep its bits), and the padding of all such pairs adds up to at most the corpus' longest clip.
- At most 1/32 of the corpus' clips in a batch, so that there is something to deal, but always two.
- A batch fits into a quarter-size chunk's rows and bytes, so that every chunk size can be dealt from the same batches.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.units import ceil_div
from .limits import CutLimits

Int64s = npt.NDArray[np.int64]

CORPUS_PARTS = 32
QUARTER = 4
_RATIO = (21, 20)
"""Longest to shortest clip of a batch, as whole numbers: 1.05."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CutInput:
    """What a cut needs to know of N clips, in reading order."""

    corpus: npt.NDArray[np.integer]
    """[N] number of the clip's corpus."""
    num_samples: npt.NDArray[np.integer]
    """[N] samples at the VAE's rate, at least 1."""
    row_bytes: npt.NDArray[np.integer]
    """[N] estimated bytes of the row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batches:
    """B encode batches over N clips; corpora ascend, lengths fall within a corpus."""

    order: Int64s
    """[N] positions (in reading order) of the clips, batch after batch."""
    starts: Int64s
    """[B + 1] where each batch starts in ``order``; the last is N."""
    corpus: Int64s
    """[B]"""
    rows: Int64s
    """[B]"""
    samples: Int64s
    """[B] without padding."""
    row_bytes: Int64s
    """[B]"""


def cut_batches(clips: CutInput, limits: CutLimits) -> Batches:
    """Cut clips into encode batches. Ties in length keep the reading order."""
    samples = np.asarray(clips.num_samples, np.int64)
    corpus = np.asarray(clips.corpus, np.int64)
    order = np.lexsort((-samples, corpus))
    samples, corpus = samples[order], corpus[order]
    row_bytes = np.asarray(clips.row_bytes, np.int64)[order]
    borders = np.append(np.flatnonzero(np.diff(corpus, prepend=-1)), len(order))
    pieces = [
        low + _batch_starts(samples[low:high], row_bytes[low:high], limits)
        for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
    ]
    starts = np.concatenate([*pieces, [len(order)]]).astype(np.int64)
    return Batches(
        order=order,
        starts=starts,
        corpus=corpus[starts[:-1]],
        rows=np.diff(starts),
        samples=_sums(samples, starts),
        row_bytes=_sums(row_bytes, starts),
    )


def _batch_starts(samples: Int64s, row_bytes: Int64s, limits: CutLimits) -> Int64s:
    """Starts of the batches of one corpus, whose clips' ``samples`` fall."""
    ends = _batch_ends(samples, row_bytes, limits)
    starts, start = [], 0
    while start < len(samples):
        starts.append(start)
        start = ends.item(start)
    return np.asarray(starts, np.int64)


def _batch_ends(samples: Int64s, row_bytes: Int64s, limits: CutLimits) -> Int64s:
    """For each clip, where the batch that begins with it ends: the nearest of all bounds."""
    here = np.arange(len(samples))
    padded = -(-samples // limits.patch_samples) * limits.patch_samples
    ends = here + np.minimum(_max_clips(len(samples), limits), limits.max_batch_samples // padded)
    total = np.cumsum(row_bytes)
    budget = total - row_bytes + limits.max_chunk_bytes // QUARTER
    np.minimum(ends, np.searchsorted(total, budget, side="right"), out=ends)
    np.minimum(ends, np.maximum(_ratio_ends(samples, limits), here + 2), out=ends)
    ends[samples > limits.max_whole_samples] = 0
    return np.clip(ends, here + 1, len(samples))


def _max_clips(num_clips: int, limits: CutLimits) -> int:
    share = max(2, ceil_div(num_clips, CORPUS_PARTS))
    return min(share, limits.max_batch_clips, max(1, limits.max_chunk_rows // QUARTER))


def _ratio_ends(samples: Int64s, limits: CutLimits) -> Int64s:
    """For each clip, the first shorter one that it may not be padded together with."""
    numerator, denominator = _RATIO
    shortest = -(-(samples - limits.patch_samples) * denominator // numerator)
    return np.searchsorted(-samples, -shortest, side="right")


def _sums(values: Int64s, starts: Int64s) -> Int64s:
    return np.add.reduceat(values, starts[:-1]) if len(values) else values
