"""``compare``: which clips of the corpora, as they are now, are those of earlier plans; which are new, changed, gone.

A clip is known by (corpus, item). It is *kept* if its annotation is unchanged and its audio file has the path, size and
mtime of then; *relabelled* if only its annotation is another; *touched* if the file differs in one of the three, which
only its bytes can tell from a copy (``settle``). The rest is *new*. Pure: nothing is read but what is handed in.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from .clip_keys import ClipKeys
from .clip_table import ClipTable

Int64s = npt.NDArray[np.int64]


class ClipState(IntEnum):
    """What has become of a clip since it was planned."""

    KEPT = 0
    NEW = 1
    RELABELLED = 2
    """Same audio, another annotation."""
    TOUCHED = 3
    """The audio file has another path, size or mtime."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownClips:
    """M clips of earlier plans, and where each stands."""

    keys: ClipKeys
    chunk: Int64s
    """[M] id of its chunk."""
    position: Int64s
    """[M] in its chunk."""
    num_refused: int
    refused: Counter[int]
    """Hashes of the refused items and their faults."""

    @classmethod
    def of(cls, chunks: Iterable[tuple[int, pa.RecordBatch]], refused: Iterable[tuple[str, str, str]]) -> "KnownClips":
        """Take the clips of chunks (id, clips) and the refused items (corpus, item, fault code)."""
        parts, numbers, positions = [], [], []
        for number, clips in chunks:
            parts.append(ClipKeys.of(clips))
            numbers.append(np.full(len(clips), number, np.int64))
            positions.append(np.arange(len(clips), dtype=np.int64))
        hashes = Counter(refused_hash(*item) for item in refused)
        none = np.zeros(0, np.int64)
        return cls(
            keys=ClipKeys.joined(parts),
            chunk=np.concatenate([none, *numbers]),
            position=np.concatenate([none, *positions]),
            num_refused=hashes.total(),
            refused=hashes,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """N clips of now against M known ones."""

    state: npt.NDArray[np.uint8]
    """[N] ``ClipState`` of each clip of now, in reading order."""
    known: Int64s
    """[N] its number among the known clips; -1 if it is new."""
    gone: Int64s
    """Numbers of the known clips that are not there any more."""
    num_refused_added: int
    num_refused_gone: int

    def count(self, state: ClipState) -> int:
        """Clips in that state."""
        return int((self.state == state).sum())

    @property
    def num_changed(self) -> int:
        return self.count(ClipState.RELABELLED) + self.count(ClipState.TOUCHED)

    @property
    def is_equal(self) -> bool:
        """Nothing was added, changed, or is gone, not even a refused item."""
        return not (self.state.any() or len(self.gone) or self.num_refused_added or self.num_refused_gone)

    @property
    def touched(self) -> Int64s:
        """Positions of the clips whose audio file must be looked into."""
        return np.flatnonzero(self.state == ClipState.TOUCHED)

    def settle(self, same: npt.NDArray[np.bool_], relabelled: npt.NDArray[np.bool_]) -> "Comparison":
        """``touched`` clips whose bytes are the ``same`` become kept, or relabelled."""
        state = self.state.copy()
        was = np.where(relabelled, ClipState.RELABELLED, ClipState.KEPT).astype(np.uint8)
        touched = self.touched
        state[touched[same]] = was[same]
        return replace(self, state=state)

    def text(self) -> str:
        """For people: ``14 clips added, 2 gone, 3 changed``; what is 0 is left out."""
        counts = {
            "added": self.count(ClipState.NEW),
            "gone": len(self.gone),
            "changed (annotation)": self.count(ClipState.RELABELLED),
            "changed (audio)": self.count(ClipState.TOUCHED),
            "more refused": self.num_refused_added,
            "not refused any more": self.num_refused_gone,
        }
        shown = [f"{count:,} {what}" for what, count in counts.items() if count]
        return "clips: " + ", ".join(shown) if shown else "no clip was added, changed, or is gone"


def compare(table: ClipTable, known: KnownClips) -> Comparison:
    """Hold the clips of now, as a table, against known ones."""
    keys = ClipKeys.joined(ClipKeys.of(batch) for batch in table.batches())
    number = _look_up(keys.item, known.keys.item)
    there = number >= 0
    same_audio = there.copy()
    same_audio[there] = keys.audio[there] == known.keys.audio[number[there]]
    same_annotation = there.copy()
    same_annotation[there] = keys.annotation[there] == known.keys.annotation[number[there]]
    state = np.full(len(keys), ClipState.NEW, np.uint8)
    state[there & ~same_audio] = ClipState.TOUCHED
    state[there & same_audio & ~same_annotation] = ClipState.RELABELLED
    state[there & same_audio & same_annotation] = ClipState.KEPT
    refused = Counter(refused_hash(*item) for item in _refused_now(table))
    return Comparison(
        state=state,
        known=number,
        gone=np.setdiff1d(np.arange(len(known.keys)), number[there]),
        num_refused_added=(refused - known.refused).total(),
        num_refused_gone=(known.refused - refused).total(),
    )


def is_relabelled(table: ClipTable, positions: Int64s, known: KnownClips, numbers: Int64s) -> npt.NDArray[np.bool_]:
    """Which clips at ``positions`` have another annotation than the known clips ``numbers``."""
    if not len(positions):
        return np.zeros(0, np.bool_)
    return ClipKeys.of(table.gather(positions)).annotation != known.keys.annotation[numbers]


def refused_hash(dataset: str, item: str, code: str) -> int:
    """64 bits for a refused item and its fault."""
    return xxhash.xxh3_64_intdigest("\0".join((dataset, item, code)).encode())


def _refused_now(table: ClipTable) -> Iterable[tuple[str, str, str]]:
    for batch in table.refused():
        names = ("dataset_name", "item_name", "fault_code")
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _look_up(wanted: npt.NDArray[np.uint64], among: npt.NDArray[np.uint64]) -> Int64s:
    """Index of each wanted value in ``among``, -1 where there is none."""
    if not len(among):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(among, kind="stable")
    places = np.minimum(np.searchsorted(among, wanted, sorter=order), len(among) - 1)
    found = order[places]
    return np.where(among[found] == wanted, found, -1).astype(np.int64)
