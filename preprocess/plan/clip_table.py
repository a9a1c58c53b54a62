"""The clips of a run on their way into the plan: spilled to Arrow files, so that memory does not grow with annotations.

``ClipTableWriter`` takes clips in reading order and keeps 17 bytes of each in memory (what the cut needs); everything
else goes to a temporary Arrow file beside the plan, ``SPILL_ROWS`` clips a record batch. ``ClipTable`` maps that file
and gathers clips in any order. Trade-off: a clip is written twice (about 600 bytes each time) and gathered once, so
that ten million clips fit in a parent of under 2 GB; as Python objects they would take some 30 GB.

The map is Python's own, since its pages can be handed back (``MADV_DONTNEED``): what was gathered would otherwise stay
in the resident set until the file is in it whole. Only the pages of the batch just read are handed back, as the kernel
walks whatever range it is given: over the whole map, that alone made the store of three million clips twice as slow.
"""

import mmap
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...core.errors import ClipFault, FaultCode, Stage
from ...core.schema import ANNOTATION_COLUMNS, COLUMNS
from ..corpora.clip import Clip, RefusedClip

SPILL_ROWS = 16_384
"""Clips per record batch of the spill: as Python objects about 50 MB, and gathering touches few batches."""

UNKNOWN_FRAMES = -1
"""``num_frames`` of an audio file whose header does not say its length."""

_TEXT = ("dataset_name", "item_name", "song_name", "song_folder", "audio_path", "audio_root")
_FACTS = ("file_size", "mtime_ns", "num_frames", "source_rate", "channels", "num_samples")

_text_of = attrgetter(*_TEXT)
_annotation_of = attrgetter(*ANNOTATION_COLUMNS)
_facts_of = attrgetter(*_FACTS)

CLIP_SCHEMA = pa.schema(
    [pa.field(name, pa.string()) for name in _TEXT]
    + [pa.field(name, COLUMNS[name]) for name in ANNOTATION_COLUMNS]
    + [
        pa.field("warnings", pa.list_(pa.field("item", pa.string()))),
        pa.field("file_size", pa.int64()),  # bytes
        pa.field("mtime_ns", pa.int64()),
        pa.field("num_frames", pa.int64()),  # per channel, as the header says; -1 = unknown
        pa.field("source_rate", pa.int32()),  # Hz; 0 = unknown
        pa.field("channels", pa.int32()),  # 0 = unknown
        pa.field("num_samples", pa.int64()),  # expected, at the VAE's rate
        pa.field("prompt_length", pa.int32()),  # tokens
    ]
)
"""One clip of a plan: who it is, its annotation with the types that its row will have, and its audio facts."""

REFUSED_SCHEMA = pa.schema(
    [
        pa.field(name, pa.string())
        for name in ("dataset_name", "item_name", "audio_path", "fault_stage", "fault_code", "fault_message")
    ]
)
"""One item that will have no row, and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioFacts:
    """What is known of a clip's audio before it is decoded."""

    file_size: int
    """Bytes."""
    mtime_ns: int
    num_frames: int
    """Samples per channel by the header; ``UNKNOWN_FRAMES`` if it does not say."""
    source_rate: int
    """Hz; 0 = unknown."""
    channels: int
    """0 = unknown."""
    num_samples: int
    """Expected samples at the VAE's rate; what is decoded decides."""


class ClipTable:
    """All clips of a run, in reading order, in a mapped file; ``position`` is a clip's number in that order."""

    def __init__(self, path: Path, writer: "ClipTableWriter") -> None:
        self.corpora: tuple[str, ...] = tuple(writer.corpora)
        """Names of the corpora in order of appearance; ``corpus`` indexes it."""
        self.corpus: npt.NDArray[np.int32] = np.frombuffer(writer.corpus, np.int32)
        self.num_samples: npt.NDArray[np.int64] = np.frombuffer(writer.num_samples, np.int64)
        self.prompt_length: npt.NDArray[np.int32] = np.frombuffer(writer.prompt_length, np.int32)
        self.weak: npt.NDArray[np.bool_] = np.frombuffer(writer.weak, np.bool_)
        self.refused_counts: Counter[tuple[str, str]] = writer.refused_counts
        """Number of refused clips by (dataset name, fault code)."""
        self._refused_path = writer.refused_path
        self._map, self._batches = _map_batches(path)
        base = np.frombuffer(self._map, np.uint8).ctypes.data
        self._extents = [_extent(batch, base) for batch in self._batches]

    def __len__(self) -> int:
        return len(self.num_samples)

    def gather(self, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The clips at these (distinct) positions, in this order, as one record batch of ``CLIP_SCHEMA``."""
        order = np.argsort(positions)
        ascending = positions[order]
        parts, starts = np.unique(ascending // SPILL_ROWS, return_index=True)
        pieces = []
        for part, rows in zip(parts.tolist(), np.split(ascending, starts[1:]), strict=True):
            pieces.append(self._batches[part].take(pa.array(rows - part * SPILL_ROWS)))
            self._map.madvise(mmap.MADV_DONTNEED, *self._extents[part])
        merged = _one_batch(pieces)
        pieces.clear()  # else what is gathered would be in memory three times
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return merged.take(pa.array(back))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All clips in reading order, as record batches of ``CLIP_SCHEMA``; don't keep more than one."""
        for batch, extent in zip(self._batches, self._extents, strict=True):
            yield batch
            self._map.madvise(mmap.MADV_DONTNEED, *extent)

    def refused(self) -> Iterator[pa.RecordBatch]:
        """The refused clips, as record batches of ``REFUSED_SCHEMA``."""
        with pa.OSFile(str(self._refused_path)) as file, pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


class ClipTableWriter:
    """Takes clips in reading order; ``finish`` makes the table. The caller owns and removes the folder."""

    def __init__(self, folder: Path) -> None:
        self.refused_path = folder / "refused.arrow"
        self._clips_path = folder / "clips.arrow"
        self._clips = _Spill(self._clips_path, CLIP_SCHEMA)
        self._refused = _Spill(self.refused_path, REFUSED_SCHEMA)
        self.corpora: dict[str, int] = {}
        self.corpus = array("i")
        self.num_samples = array("q")
        self.prompt_length = array("i")
        self.weak = array("B")
        self.refused_counts: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._clips.close()
        self._refused.close()

    def add(self, clip: Clip, facts: AudioFacts, prompt_length: int) -> None:
        """Take one good clip.

        Raises ``ClipFault`` (read, bad_item) if a text of it can't be written as UTF-8: a lone surrogate, or a file
        name in another encoding. Arrow would refuse the whole record batch later, without naming the clip.
        """
        text = _text_of(clip)
        _check_text([*text, *clip.word, *clip.note])
        self._clips.append([*text, *_annotation_of(clip), clip.warnings, *_facts_of(facts), prompt_length])
        self.corpus.append(self.corpora.setdefault(clip.dataset_name, len(self.corpora)))
        self.num_samples.append(facts.num_samples)
        self.prompt_length.append(prompt_length)
        self.weak.append(not clip.has_score)

    def refuse(self, clip: RefusedClip) -> None:
        """Take one refused clip."""
        fault = clip.fault
        names = [clip.dataset_name, clip.item_name, clip.audio_path]
        self._refused.append([_printable(text) for text in (*names, fault.stage, fault.code, fault.message)])
        self.refused_counts[clip.dataset_name, str(fault.code)] += 1

    def finish(self) -> ClipTable:
        """Close the files and map the clips."""
        self._clips.close()
        self._refused.close()
        return ClipTable(self._clips_path, self)


class _Spill:
    """Rows as Python values in, record batches of ``SPILL_ROWS`` rows in an Arrow file out."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pa.ipc.new_file(str(path), schema)
        self._rows: list[Sequence[Any]] = []

    def append(self, row: Sequence[Any]) -> None:
        self._rows.append(row)
        if len(self._rows) == SPILL_ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
            self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
            self._rows.clear()


def _map_batches(path: Path) -> tuple[mmap.mmap, list[pa.RecordBatch]]:
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reader = pa.ipc.open_file(pa.py_buffer(mapped))
    return mapped, [reader.get_batch(number) for number in range(reader.num_record_batches)]


def _extent(batch: pa.RecordBatch, base: int) -> tuple[int, int]:
    """(start, length) in bytes of the whole pages that a batch lies on, in a map at the address ``base``."""
    buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer is not None and buffer.size]
    first = min(buffer.address for buffer in buffers) - base
    last = max(buffer.address + buffer.size for buffer in buffers) - base
    start = first - first % mmap.PAGESIZE
    return start, last - start


def _one_batch(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]


def _check_text(texts: Sequence[str]) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        message = f"{_printable(error.object)[:80]!r} holds a character that is no Unicode text"
        raise ClipFault(Stage.READ, FaultCode.BAD_ITEM, message) from None


def _printable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
