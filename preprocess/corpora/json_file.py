"""``json_file``: a JSON array with one object per clip (item_name, wav_fn, word, pitch, note, pitch2word, bpm).

This is the form in which Opencpop, M4Singer and GTSinger are published for the upstream tool. Where an item has no
name, its audio path without suffix is the name: a bare file name ("0000") is the same in every song.
"""

import os
import posixpath
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

import msgspec

from ...core.errors import ClipFault, Fault, FaultCode
from ..config import JsonFileCorpus, ScoreSettings
from ..score.check import Annotation, check_annotation
from .clip import RefusedClip
from .json_array import read_array
from .json_decode import decode_json
from .outcome import Outcome, clip_of, fault, path_field, read_fault


class JsonItem(Annotation, gc=False):
    """One object of the array."""

    item_name: Any = None
    wav_fn: Any = None


_DECODER = msgspec.json.Decoder(JsonItem)


def read_json_file(corpus: JsonFileCorpus, score: ScoreSettings) -> Iterator[Outcome]:
    """Clips of a ``json_file`` corpus in the array's order. Raises CorpusError if there is no array."""
    song_name_of = _song_namer(corpus)
    root = str(corpus.audio_root)
    for index, raw in enumerate(read_array(corpus.json_path)):
        try:
            item = decode_json(_DECODER, raw)
        except msgspec.DecodeError as error:
            yield refused_item(corpus.name, index, str(corpus.json_path), str(error))
            continue
        try:
            yield _clip(item, corpus.name, root, song_name_of, score)
        except ClipFault as error:
            yield _refused(item, corpus, index, error.fault)


def refused_item(dataset_name: str, index: int, json_path: str, message: str) -> RefusedClip:
    """An item that is no object, or whose text can't be decoded."""
    broken = fault(FaultCode.BAD_ITEM, f"item {index} of the array (counted from 0): {message}")
    return RefusedClip(dataset_name=dataset_name, item_name=f"item {index}", audio_path=json_path, fault=broken)


def _clip(
    item: JsonItem, dataset_name: str, root: str, song_name_of: Callable[[str], str], score: ScoreSettings
) -> Outcome:
    wav_fn = path_field("wav_fn", item.wav_fn)
    item_name = without_suffix(wav_fn) if item.item_name is None else item.item_name
    if not isinstance(item_name, str) or not item_name:
        raise read_fault(FaultCode.BAD_ITEM, f"item_name is {item_name!r}, expected text")
    return clip_of(
        check_annotation(item, score.word_without_note),
        dataset_name=dataset_name,
        item_name=item_name,
        song_name=song_name_of(item_name),
        song_folder=folder_of(wav_fn),
        audio_path=os.path.join(root, wav_fn),
        audio_root=root,
    )


def _refused(item: JsonItem, corpus: JsonFileCorpus, index: int, why: Fault) -> RefusedClip:
    has_audio = isinstance(item.wav_fn, str) and item.wav_fn != ""
    name = item.item_name if isinstance(item.item_name, str) and item.item_name else None
    return RefusedClip(
        dataset_name=corpus.name,
        item_name=name or (without_suffix(item.wav_fn) if has_audio else f"item {index}"),
        audio_path=os.path.join(str(corpus.audio_root), item.wav_fn) if has_audio else str(corpus.json_path),
        fault=why,
    )


def without_suffix(path: str) -> str:
    """A relative path without the suffix of its file name, its folders kept; ``a//b.wav`` and ``./a/b.wav`` are a/b."""
    if "//" in path or path.startswith("./") or "/./" in path:
        path = str(PurePosixPath(path))
    return posixpath.splitext(path)[0]


def folder_of(path: str) -> str:
    """The folder part of an audio path, "" if it has none."""
    if "//" in path or path.startswith("./") or "/./" in path or path.rfind("/") == 0:
        return str(PurePosixPath(path).parent)
    return path.rpartition("/")[0]


def _song_namer(corpus: JsonFileCorpus) -> Callable[[str], str]:
    """The rule that makes a song's name of an item's name; without one every item is its own song."""
    if corpus.song_id_slice is not None:
        start, end = corpus.song_id_slice
        return lambda item_name: _not_empty(item_name[start:end], item_name, f"song_id_slice [{start}, {end}]")
    if corpus.song_id_indices is not None:
        indices, separator = corpus.song_id_indices, corpus.song_id_separator
        return lambda item_name: _joined(item_name, indices, separator)
    return lambda item_name: item_name


def _not_empty(song_name: str, item_name: str, rule: str) -> str:
    if not song_name:
        raise read_fault(FaultCode.BAD_ITEM, f"{rule} cuts nothing out of item_name {item_name!r}")
    return song_name


def _joined(item_name: str, indices: tuple[int, ...], separator: str) -> str:
    parts = item_name.split(separator)
    try:
        return separator.join([parts[index] for index in indices])
    except IndexError:
        # Left out silently, the songs of one singer would become one song.
        count = "1 part" if len(parts) == 1 else f"{len(parts)} parts"
        message = f"item_name {item_name!r} has {count}, song_id_indices is {list(indices)}"
        raise read_fault(FaultCode.BAD_ITEM, message) from None
