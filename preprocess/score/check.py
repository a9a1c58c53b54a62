"""From the raw fields of one annotation to values that every later stage may rely on, or the reason why not.

Nothing is repaired: what can be read in one way only is read (60.0, "60", a fractional tempo), what would have to be
guessed is refused with a code. Words are kept as annotated, blanks included. A clip of 12 words and 15 notes passes
in 12 us, since each rule first looks at a whole list in C and only a clip that fails pays for finding the entry.
"""

import math
import re
import reprlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, NoReturn

import msgspec

from ...core.errors import ClipFault, FaultCode, Stage, WarningCode
from ..corpora.words import has_lyric
from .note_value import NOTE_QUARTERS

MAX_PITCH = 127
MAX_BPM = 255

_HUGE = 1e300  # integers beyond a double's range can't even be compared by math.isfinite
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", re.ASCII)


class Annotation(msgspec.Struct):
    """The annotation fields of one clip as the file has them: of any type, ``null`` or absent."""

    word: Any = None
    word_dur: Any = None
    pitch: Any = None
    pitch_dur: Any = None
    note: Any = None
    pitch2word: Any = None
    bpm: Any = None


class Score(NamedTuple):
    """Checked words and notes of one clip; the fields are those of ``Clip``."""

    word: tuple[str, ...]
    word_dur: tuple[float, ...]
    pitch: tuple[int, ...]
    pitch_dur: tuple[float, ...]
    note: tuple[str, ...]
    pitch2word: tuple[int, ...]
    bpm: int
    has_score: bool
    warnings: tuple[WarningCode, ...]


def check_annotation(raw: Annotation, word_without_note: Literal["error", "warn"] = "error") -> Score:
    """Check every rule of a clip's words and notes. A clip without any of pitch, note, pitch2word is weak.

    Raises ClipFault with the code of the first rule that is broken, in the order of this function.
    """
    warnings: list[WarningCode] = []
    word = _words(raw.word)
    pitch, note = _list("pitch", raw.pitch), _list("note", raw.note)
    pitch2word = _list("pitch2word", raw.pitch2word)
    if not (pitch or note or pitch2word):
        return _weak(word, raw, warnings)
    _check_lengths(pitch, note, pitch2word)
    notes = _notes(note)
    pitches = _pitches(pitch, warnings)
    words_of_notes = _pitch2word(pitch2word, len(word), warnings)
    bpm = check_bpm(raw.bpm, warnings)
    _check_coverage(word, words_of_notes, word_without_note, warnings)
    word_dur = _durations("word_dur", raw.word_dur, len(word), warnings)
    pitch_dur = _durations("pitch_dur", raw.pitch_dur, len(notes), warnings)
    return Score(word, word_dur, pitches, pitch_dur, notes, words_of_notes, bpm, True, tuple(warnings))


def check_weak(word: tuple[str, ...]) -> Score:
    """Words without a score that come from splitting a transcription. Raises ClipFault(NO_LYRIC)."""
    if not has_lyric(word):
        _refuse(FaultCode.NO_LYRIC, "no words, or only rests and markers")
    return Score(word, (), (), (), (), (), 0, False, ())


def _weak(word: tuple[str, ...], raw: Annotation, warnings: list[WarningCode]) -> Score:
    for at, text in enumerate(word):
        if not text.strip():
            _refuse(FaultCode.EMPTY_WORD, f"word[{at}] is {text!r}, which has no text to be sung")
    word_dur = _durations("word_dur", raw.word_dur, len(word), warnings)
    _durations("pitch_dur", raw.pitch_dur, 0, warnings)
    return Score(word, word_dur, (), (), (), (), 0, False, tuple(warnings))


def _refuse(code: FaultCode, message: str) -> NoReturn:
    stage = Stage.READ if code in (FaultCode.BAD_ITEM, FaultCode.MISSING_FIELD) else Stage.SCORE
    raise ClipFault(stage, code, message)


def _list(field: str, value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        _refuse(FaultCode.BAD_ITEM, f"{field} is {shown(value)}, expected a list")
    return value


def shown(value: Any) -> str:
    """A value as JSON, cut to what fits a line."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _first(values: list[Any] | tuple[Any, ...], is_wrong: Callable[[Any], bool]) -> int:
    return next(at for at, value in enumerate(values) if is_wrong(value))


def _words(value: Any) -> tuple[str, ...]:
    if value is None:
        _refuse(FaultCode.MISSING_FIELD, "there is no word list")
    words = _list("word", value)
    if not set(map(type, words)) <= {str}:
        at = _first(words, lambda word: not isinstance(word, str))
        _refuse(FaultCode.BAD_ITEM, f"word[{at}] is {shown(words[at])}, expected text")
    if not has_lyric(words):
        _refuse(FaultCode.NO_LYRIC, "no words, or only rests and markers")
    return tuple(words)


def _check_lengths(pitch: list[Any], note: list[Any], pitch2word: list[Any]) -> None:
    counts = f"pitch has {len(pitch)}, note {len(note)}, pitch2word {len(pitch2word)}"
    if not (pitch and note and pitch2word):
        _refuse(FaultCode.PARTIAL_SCORE, f"a score needs all three lists or none: {counts}")
    if not len(pitch) == len(note) == len(pitch2word):
        _refuse(FaultCode.UNEQUAL_LISTS, counts)


def _notes(note: list[Any]) -> tuple[str, ...]:
    if not (set(map(type, note)) == {str} and NOTE_QUARTERS.keys() >= set(note)):
        at = _first(note, lambda token: not isinstance(token, str) or token not in NOTE_QUARTERS)
        _refuse(FaultCode.UNKNOWN_NOTE, f"note[{at}] is {shown(note[at])}, not one of the twelve note values")
    return tuple(note)


def _pitches(pitch: list[Any], warnings: list[WarningCode]) -> tuple[int, ...]:
    pitches = _whole_numbers("pitch", pitch, FaultCode.PITCH_RANGE, warnings)
    if min(pitches) < 0 or max(pitches) > MAX_PITCH:
        at = _first(pitches, lambda value: not 0 <= value <= MAX_PITCH)
        _refuse(FaultCode.PITCH_RANGE, f"pitch[{at}] is {shown(pitches[at])}, outside 0..{MAX_PITCH}")
    return pitches


def _pitch2word(pitch2word: list[Any], num_words: int, warnings: list[WarningCode]) -> tuple[int, ...]:
    indices = _whole_numbers("pitch2word", pitch2word, FaultCode.BAD_PITCH2WORD, warnings)
    if sorted(indices) != list(indices):
        at = next(at for at in range(1, len(indices)) if indices[at] < indices[at - 1])
        _refuse(
            FaultCode.BAD_PITCH2WORD,
            f"pitch2word falls from {shown(indices[at - 1])} to {shown(indices[at])} at note {at}",
        )
    if indices[0] < 0 or indices[-1] >= num_words:
        at = _first(indices, lambda index: not 0 <= index < num_words)
        _refuse(FaultCode.BAD_PITCH2WORD, f"pitch2word[{at}] is {shown(indices[at])}, but there are {num_words} words")
    return indices


def _whole_numbers(field: str, values: list[Any], code: FaultCode, warnings: list[WarningCode]) -> tuple[int, ...]:
    if set(map(type, values)) == {int}:
        return tuple(values)
    numbers = []
    for at, value in enumerate(values):
        number = _number(value, warnings)
        if number is None or not math.isfinite(number) or number != int(number):
            _refuse(code, f"{field}[{at}] is {shown(value)}, not a whole number")
        numbers.append(int(number))
    return tuple(numbers)


def _number(value: Any, warnings: list[WarningCode]) -> int | float | None:
    """A number, or a number written as text (which is counted); None for anything else, booleans included."""
    if type(value) is int or type(value) is float:
        return value if -_HUGE < value < _HUGE else math.inf
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        _warn(warnings, WarningCode.NUMERIC_STRING)
        return float(value)
    return None


def _warn(warnings: list[WarningCode], code: WarningCode) -> None:
    if code not in warnings:
        warnings.append(code)


def check_bpm(value: Any, warnings: list[WarningCode]) -> int:
    """Tempo in 1..255 quarters per minute, a fraction rounded half up. Raises ClipFault(BAD_BPM)."""
    if value is None:
        _refuse(FaultCode.BAD_BPM, "there is no bpm")
    number = _number(value, warnings)
    if number is None or not math.isfinite(number):
        _refuse(FaultCode.BAD_BPM, f"bpm is {shown(value)}, not a number")
    whole = math.floor(number)
    if number != whole:
        # floor(x + 0.5) would round 0.49999999999999994 up.
        whole += number - whole >= 0.5
        _warn(warnings, WarningCode.BPM_ROUNDED)
    if not 1 <= whole <= MAX_BPM:
        _refuse(FaultCode.BAD_BPM, f"bpm is {shown(value)}, outside 1..{MAX_BPM}")
    return whole


def _check_coverage(
    word: tuple[str, ...],
    pitch2word: tuple[int, ...],
    word_without_note: Literal["error", "warn"],
    warnings: list[WarningCode],
) -> None:
    sung = set(pitch2word)
    if not all(map(str.strip, word)):
        blank = next((at for at, text in enumerate(word) if at in sung and not text.strip()), None)
        if blank is not None:
            _refuse(FaultCode.EMPTY_WORD, f"word[{blank}] is {word[blank]!r}, but has notes")
    if len(sung) != len(word):
        at = next(at for at in range(len(word)) if at not in sung)
        if word_without_note == "error":
            _refuse(FaultCode.WORD_WITHOUT_NOTE, f"word[{at}], {shown(word[at])}, has no note")
        _warn(warnings, WarningCode.WORD_WITHOUT_NOTE)


def _durations(field: str, value: Any, count: int, warnings: list[WarningCode]) -> tuple[float, ...]:
    """Seconds per word or note; an empty or absent list says nothing and is allowed."""
    values = _list(field, value)
    if not values:
        return ()
    if len(values) != count:
        what = "words" if field == "word_dur" else "notes"
        _refuse(FaultCode.UNEQUAL_LISTS, f"{field} has {len(values)} entries for {count} {what}")
    # The sum of finite durations is finite; a NaN or an infinity always shows in it, in min() it may hide.
    if set(map(type, values)) == {float} and min(values) >= 0 and sum(values) < math.inf:
        return tuple(values)
    return tuple(_duration(field, at, value, warnings) for at, value in enumerate(values))


def _duration(field: str, at: int, value: Any, warnings: list[WarningCode]) -> float:
    number = _number(value, warnings)
    if number is None or not 0 <= number < math.inf:
        _refuse(FaultCode.BAD_DURATION, f"{field}[{at}] is {shown(value)}, not a number of seconds")
    return float(number)
