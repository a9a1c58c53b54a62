"""The prompt: what a clip's words and notes become as token ids, and as text.

    scored   <BPM_100> 感<P_62><NOTE_8> 受<P_64><NOTE_DOT_8><P_65><NOTE_16> ... <|audio_start|>
    weak     <SVS_MASK> 感<SVS_MASK><SVS_MASK> 受<SVS_MASK><SVS_MASK> ... <|audio_start|>

A word's text stands once, before its first note; words that no note points to are left out of a scored prompt. The
functions expect what preprocess/score/check.py lets through, and raise KeyError, IndexError or ValueError for
anything else rather than guess. Ids of a 15-note clip take 6 us with a warm tokenizer, its length 3 us.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.schema import AUDIO_START_ID
from .tokenizer import SvsTokenizer


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids of one clip, up to and including audio_start."""

    ids: npt.NDArray[np.int32]
    """[T] int32."""
    text_token_count: int
    """Notes of a scored clip, words of a weak one: the column of that name."""


def build_prompt(
    word: Sequence[str],
    pitch: Sequence[int],
    note: Sequence[str],
    pitch2word: Sequence[int],
    bpm: int,
    has_score: bool,
    tokenizer: SvsTokenizer,
) -> Prompt:
    """Token ids of a clip. Raises ClipFault(RESERVED_TOKEN or UNKNOWN_TEXT) for a word that has no ids."""
    if has_score:
        ids = _scored_ids(word, pitch, note, pitch2word, bpm, tokenizer)
        count = len(pitch2word)
    else:
        ids = _weak_ids(word, tokenizer)
        count = len(word)
    return Prompt(np.array(ids, dtype=np.int32), count)


def prompt_length(word: Sequence[str], pitch2word: Sequence[int], has_score: bool, tokenizer: SvsTokenizer) -> int:
    """Number of ids that ``build_prompt`` makes, with the same faults and without making them."""
    if not has_score:
        return 2 + sum(len(tokenizer.word_ids(text)) + 2 for text in word)
    sung = dict.fromkeys(pitch2word)
    return 2 + sum(len(tokenizer.word_ids(word[index])) for index in sung) + 2 * len(pitch2word)


def prompt_text(ids: npt.NDArray[np.integer] | Sequence[int], tokenizer: SvsTokenizer) -> str:
    """Text of a prompt's ids: the column ``svs_prompt``.

    The column ends with the text of audio_start. The reference tool means to cut that token off, and cuts off the
    audio_end behind it instead; trainers compare the column, so it stays.
    """
    return tokenizer.decode(ids.tolist() if isinstance(ids, np.ndarray) else ids)


def svs_prompt(row: Mapping[str, Any], tokenizer: SvsTokenizer | str | PathLike[str], lyrics_only: bool = False) -> str:
    """Rebuild the prompt text of a row from its annotation columns: what a trainer shows its model at inference.

    Reads ``word``, ``pitch``, ``note``, ``pitch2word``, ``bpm`` and ``has_score``. Equals the row's ``svs_prompt``,
    audio_start at the end included; a model that adds audio_start itself wants
    ``text.removesuffix("<|audio_start|>")``. ``lyrics_only`` gives the weak form of a scored row: all its words, and
    masks for tempo and notes. ``tokenizer`` may be a checkpoint folder, loaded once.
    """
    loaded = tokenizer if isinstance(tokenizer, SvsTokenizer) else _loaded(Path(tokenizer))
    if row["has_score"] and not lyrics_only:
        ids = _scored_ids(row["word"], row["pitch"], row["note"], row["pitch2word"], row["bpm"], loaded)
    else:
        ids = _weak_ids(row["word"], loaded)
    return loaded.decode(ids)


@functools.lru_cache(maxsize=4)
def _loaded(folder: Path) -> SvsTokenizer:
    return SvsTokenizer.load(folder)


def _scored_ids(
    word: Sequence[str],
    pitch: Sequence[int],
    note: Sequence[str],
    pitch2word: Sequence[int],
    bpm: int,
    tokenizer: SvsTokenizer,
) -> list[int]:
    ids = [tokenizer.bpm_id(bpm)]
    previous = -1
    for note_pitch, note_value, index in zip(pitch, note, pitch2word, strict=True):
        if index != previous:
            ids.extend(tokenizer.word_ids(word[index]))
            previous = index
        ids.append(tokenizer.pitch_id(note_pitch))
        ids.append(tokenizer.note_id(note_value))
    ids.append(AUDIO_START_ID)
    return ids


def _weak_ids(word: Sequence[str], tokenizer: SvsTokenizer) -> list[int]:
    mask = tokenizer.mask_id
    ids = [mask]
    for text in word:
        ids.extend(tokenizer.word_ids(text))
        ids.append(mask)
        ids.append(mask)
    ids.append(AUDIO_START_ID)
    return ids
