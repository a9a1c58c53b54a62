"""Rules of the annotation columns: words, notes, tempo, names. They are those by which a clip gets a row at all
(preprocess/score/check.py refuses what breaks them), held against what lies in a block.

R rows, N notes or words of all rows together.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .verify_findings import Finding, ListColumn, Mask, ScalarColumn
from .verify_report import DamageCode

NOTE_VALUES = tuple(f"<NOTE_{dot}{value}>" for dot in ("", "DOT_") for value in (1, 2, 4, 8, 16, 32))
"""The twelve note value tokens."""
MAX_PITCH = 127
MAX_BPM = 255

_SCORE = DamageCode.ROW_SCORE
_NAMES_NEEDED = ("item_name", "dataset_name", "svs_prompt")


def score_findings(batch: pa.RecordBatch) -> Iterator[Finding]:
    """What is wrong with names, words and notes."""
    columns = {name: ListColumn.of(batch, name) for name in ("word", "pitch", "note", "pitch2word")}
    is_scored: Mask = batch.column("has_score").to_numpy(zero_copy_only=False)
    yield from _names(batch)
    yield from _counts(columns, is_scored)
    yield from _values(columns)
    yield from _word_indices(columns["pitch2word"], columns["word"])
    yield from _tempo(ScalarColumn.of(batch, "bpm"), is_scored)
    yield from _seconds(ListColumn.of(batch, "word_dur"), columns["word"])
    yield from _seconds(ListColumn.of(batch, "pitch_dur"), columns["pitch"])
    yield from _token_count(ScalarColumn.of(batch, "text_token_count"), columns, is_scored)


def _names(batch: pa.RecordBatch) -> Iterator[Finding]:
    for name in _NAMES_NEEDED:
        empty = _text_lengths(batch.column(name)) == 0
        if empty.any():
            yield Finding(DamageCode.ROW_IDENTITY, np.flatnonzero(empty), None, f"{name} is empty")


def _text_lengths(texts: pa.StringArray) -> npt.NDArray[np.int32]:
    """[R] in bytes."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    return np.diff(offsets[texts.offset : texts.offset + len(texts) + 1])


def _counts(columns: dict[str, ListColumn], is_scored: Mask) -> Iterator[Finding]:
    word, pitch = columns["word"], columns["pitch"]
    yield from word.wrong_length(_SCORE, word.lengths == 0, "there are no words")
    yield from pitch.wrong_length(
        _SCORE, (pitch.lengths > 0) != is_scored, "there are {value} notes, has_score says otherwise"
    )
    for name in ("note", "pitch2word"):
        mask = columns[name].lengths != pitch.lengths
        yield from columns[name].wrong_length(_SCORE, mask, "{name} has {value} entries, pitch has another number")


def _values(columns: dict[str, ListColumn]) -> Iterator[Finding]:
    pitch, note = columns["pitch"], columns["note"]
    out_of_range = (pitch.values < 0) | (pitch.values > MAX_PITCH)
    yield from pitch.wrong(_SCORE, out_of_range, f"pitch {{value}} is not one of 0..{MAX_PITCH}")
    yield from note.wrong(_SCORE, _unknown(note.items), "{value} is not one of the twelve note values")


def _unknown(notes: pa.StringArray) -> Mask:
    """[N]; each note value that occurs is compared once."""
    encoded = notes.dictionary_encode()
    is_unknown = np.array([text not in NOTE_VALUES for text in encoded.dictionary.to_pylist()], np.bool_)
    return is_unknown[encoded.indices.to_numpy()]


def _word_indices(pitch2word: ListColumn, word: ListColumn) -> Iterator[Finding]:
    values = pitch2word.values
    num_words = np.repeat(word.lengths, pitch2word.lengths)
    yield from pitch2word.wrong(_SCORE, (values < 0) | (values >= num_words), "{name} points at word {value}")
    falling = np.zeros(len(values), np.bool_)
    falling[1:] = values[1:] < values[:-1]
    falling[pitch2word.starts[pitch2word.lengths > 0]] = False
    yield from pitch2word.wrong(_SCORE, falling, "{name} falls to {value}")


def _tempo(bpm: ScalarColumn, is_scored: Mask) -> Iterator[Finding]:
    in_range = (bpm.values >= 1) & (bpm.values <= MAX_BPM)
    yield from bpm.wrong(_SCORE, is_scored & ~in_range, f"bpm is {{value}}, not one of 1..{MAX_BPM}")
    yield from bpm.wrong(_SCORE, ~is_scored & (bpm.values != 0), "bpm is {value} without a score")


def _seconds(durations: ListColumn, described: ListColumn) -> Iterator[Finding]:
    mask = (durations.lengths != 0) & (durations.lengths != described.lengths)
    yield from durations.wrong_length(_SCORE, mask, f"{{name}} has {{value}} entries, {described.name} another number")
    values = durations.values
    yield from durations.wrong(_SCORE, ~(np.isfinite(values) & (values >= 0)), "{name} holds {value} s")


def _token_count(count: ScalarColumn, columns: dict[str, ListColumn], is_scored: Mask) -> Iterator[Finding]:
    expected = np.where(is_scored, columns["pitch2word"].lengths, columns["word"].lengths)
    yield from count.wrong(_SCORE, count.values != expected, "{name} is {value}, words and notes say otherwise")
