"""``ClipKeys``: of each clip of a record batch three 64-bit hashes, by which two readings of the corpora are compared.

``item`` says who it is, ``annotation`` what its row would hold beside the audio, ``audio`` which file it is and how it
lies on disk. 24 bytes a clip instead of its annotation, so that ten million clips are compared in some 500 MB; two of
ten million items share a hash in one of 400,000 such comparisons. Takes about 15 us a clip.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...core.digest import hash_rows
from ...core.schema import ANNOTATION_COLUMNS, IDENTITY_COLUMNS

Hashes = npt.NDArray[np.uint64]

_ITEM = ("dataset_name", "item_name")
_ANNOTATION = (*IDENTITY_COLUMNS, *ANNOTATION_COLUMNS)
_AUDIO = ("audio_path", "file_size", "mtime_ns")
_MASK = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ClipKeys:
    """Of N clips, in their order."""

    item: Hashes
    """[N] over corpus and item name."""
    annotation: Hashes
    """[N] over the identity and annotation columns of the row."""
    audio: Hashes
    """[N] over path, size and mtime of the audio file."""

    def __len__(self) -> int:
        return len(self.item)

    @classmethod
    def of(cls, clips: pa.RecordBatch) -> "ClipKeys":
        """The keys of clips as a plan holds them (``CLIP_SCHEMA``)."""
        return cls(item=_hashes(clips, _ITEM), annotation=_hashes(clips, _ANNOTATION), audio=_hashes(clips, _AUDIO))

    @classmethod
    def joined(cls, parts: Iterable["ClipKeys"]) -> "ClipKeys":
        """The keys of all parts, one after another."""
        kept = [*parts]
        none = np.zeros(0, np.uint64)
        return cls(
            item=np.concatenate([none, *(part.item for part in kept)]),
            annotation=np.concatenate([none, *(part.annotation for part in kept)]),
            audio=np.concatenate([none, *(part.audio for part in kept)]),
        )


def _hashes(clips: pa.RecordBatch, names: tuple[str, ...]) -> Hashes:
    return np.asarray([value & _MASK for value in hash_rows(clips, names)], np.uint64)
