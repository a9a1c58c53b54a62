"""``Outcome``: what a reader makes of one item of a corpus, a clip or the reason why there is none."""

from collections.abc import Callable, Iterator
from typing import Any

from ...core.errors import ClipFault, Fault, FaultCode, Stage
from ..config import ScoreSettings
from ..score.check import Score, shown
from .clip import Clip, RefusedClip

Outcome = Clip | RefusedClip

Reader = Callable[[Any, ScoreSettings], Iterator[Outcome]]
"""Settings of one corpus -> its items, in an order that depends on nothing but the files."""


def clip_of(
    score: Score,
    *,
    dataset_name: str,
    item_name: str,
    song_name: str,
    song_folder: str,
    audio_path: str,
    audio_root: str,
) -> Clip:
    """A clip of checked words and notes."""
    word, word_dur, pitch, pitch_dur, note, pitch2word, bpm, has_score, warnings = score
    return Clip(
        dataset_name=dataset_name,
        item_name=item_name,
        song_name=song_name,
        song_folder=song_folder,
        audio_path=audio_path,
        audio_root=audio_root,
        word=word,
        word_dur=word_dur,
        pitch=pitch,
        pitch_dur=pitch_dur,
        note=note,
        pitch2word=pitch2word,
        bpm=bpm,
        has_score=has_score,
        warnings=warnings,
    )


def fault(code: FaultCode, message: str) -> Fault:
    """A fault of reading an annotation."""
    return Fault(Stage.READ, code, message)


def read_fault(code: FaultCode, message: str) -> ClipFault:
    """The same as something to raise."""
    return ClipFault(Stage.READ, code, message)


def path_field(field: str, value: Any) -> str:
    """The value of a field that names an audio file. Raises ClipFault(MISSING_FIELD or BAD_ITEM)."""
    if value is None or value == "":
        raise read_fault(FaultCode.MISSING_FIELD, f"there is no {field}")
    if not isinstance(value, str) or "\0" in value:
        raise read_fault(FaultCode.BAD_ITEM, f"{field} is {shown(value)}, expected a path")
    return value
