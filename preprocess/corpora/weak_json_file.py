"""``weak_json_file``: a JSON array of {audio_path, transcription, confidence}, words without a score.

Every file of such a corpus may be called audio.wav, so an item's name is its whole path without suffix; its song is
the first folder of that path.
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from ...core.errors import ClipFault, Fault, FaultCode
from ..config import ScoreSettings, WeakJsonCorpus
from ..score.check import check_weak, shown
from .clip import RefusedClip
from .json_array import read_array
from .json_decode import decode_json
from .json_file import refused_item, without_suffix
from .outcome import Outcome, clip_of, path_field, read_fault
from .words import split_words

CONFIDENCES = {"low": 1, "medium": 2, "high": 3}
DEFAULT_CONFIDENCE = "medium"


class WeakItem(msgspec.Struct, gc=False):
    """One object of the array."""

    audio_path: Any = None
    transcription: Any = None
    confidence: Any = None


_DECODER = msgspec.json.Decoder(WeakItem)


def read_weak_json_file(corpus: WeakJsonCorpus, score: ScoreSettings) -> Iterator[Outcome]:
    """Clips of a ``weak_json_file`` corpus in the array's order. Raises CorpusError if there is no array."""
    for index, raw in enumerate(read_array(corpus.json_path)):
        try:
            item = decode_json(_DECODER, raw)
        except msgspec.DecodeError as error:
            yield refused_item(corpus.name, index, str(corpus.json_path), str(error))
            continue
        try:
            yield _clip(item, corpus)
        except ClipFault as error:
            yield _refused(item, corpus, index, error.fault)


def _clip(item: WeakItem, corpus: WeakJsonCorpus) -> Outcome:
    audio_path = path_field("audio_path", item.audio_path)
    _check_confidence(item.confidence, corpus.min_confidence)
    if item.transcription is None:
        raise read_fault(FaultCode.MISSING_FIELD, "there is no transcription")
    if not isinstance(item.transcription, str):
        raise read_fault(FaultCode.BAD_ITEM, f"transcription is {shown(item.transcription)}, expected text")
    item_name = without_suffix(audio_path)
    song = _first_part(item_name, audio_path)
    return clip_of(
        check_weak(split_words(item.transcription)),
        dataset_name=corpus.name,
        item_name=item_name,
        song_name=song,
        song_folder=song,
        audio_path=os.path.join(str(corpus.audio_root), audio_path),
        audio_root=str(corpus.audio_root),
    )


def _first_part(item_name: str, audio_path: str) -> str:
    """The first folder; a file that lies in none is its own song, under its file name as upstream has it."""
    first, slash, _ = item_name.partition("/")
    return (first or "/") if slash else audio_path.rpartition("/")[2]


def _check_confidence(value: Any, minimum: str | None) -> None:
    confidence = DEFAULT_CONFIDENCE if value is None else value
    if not isinstance(confidence, str) or confidence not in CONFIDENCES:
        raise read_fault(FaultCode.BAD_ITEM, f"confidence is {shown(value)}, expected high, medium or low")
    if minimum is not None and CONFIDENCES[confidence] < CONFIDENCES[minimum]:
        raise read_fault(FaultCode.FILTERED, f"confidence {confidence} is below min_confidence {minimum}")


def _refused(item: WeakItem, corpus: WeakJsonCorpus, index: int, why: Fault) -> RefusedClip:
    has_audio = isinstance(item.audio_path, str) and item.audio_path != ""
    return RefusedClip(
        dataset_name=corpus.name,
        item_name=without_suffix(item.audio_path) if has_audio else f"item {index}",
        audio_path=os.path.join(str(corpus.audio_root), item.audio_path) if has_audio else str(corpus.json_path),
        fault=why,
    )
