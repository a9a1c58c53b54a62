"""``SvsTokenizer``: a checkpoint's text tokenizer with the tokens of a score added.

It is what ``LlamaTokenizerFast`` of transformers 5 or newer makes of the folder, because that is what trainers load:
the class builds its own pre-tokenizer and decoder, so a plain ``tokenizers`` load of the same file spaces texts
otherwise. Importing transformers takes 1.3 s and doesn't import torch; it happens in ``load``.

Both directions are cached, as lyrics repeat: ids per word (3 us uncached, through the Rust tokenizer; 17 us through
``encode``), and text per id, so that decoding the prompt of a 15-note clip takes 5 us instead of 16. A full word
cache is emptied and starts anew.
"""

import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import xxhash

from ...core.errors import CheckpointError, ClipFault, FaultCode, Stage
from .vocabulary import BOUNDARY_TOKENS, BPM_TOKENS, MASK_TOKEN, NOTE_TOKENS, PITCH_TOKENS, SVS_TOKENS

if TYPE_CHECKING:
    from transformers import LlamaTokenizerFast

MAX_CACHED_WORDS = 1 << 16
"""About 12 MB when full. Lyrics in alphabets have no end of words, so there has to be a limit."""

_BYTE_TOKEN = re.compile("<0x..>")
_DECODERS = {"Replace", "ByteFallback", "Fuse", "Strip"}
"""Steps of the Llama decoder. With these the text of an id depends on its neighbours only if it stands for a byte."""

_CONFIG_NAME = "tokenizer_config.json"


class SvsTokenizer:
    """A text tokenizer with score tokens. Safe to share between threads."""

    def __init__(self, tokenizer: "LlamaTokenizerFast") -> None:
        """Takes a tokenizer that has all ``SVS_TOKENS``; use ``load``."""
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        vocabulary = tokenizer.get_vocab()
        self._pitch_ids = {pitch: vocabulary[token] for pitch, token in enumerate(PITCH_TOKENS)}
        self._note_ids = {token: vocabulary[token] for token in NOTE_TOKENS}
        self._bpm_ids = {bpm: vocabulary[token] for bpm, token in enumerate(BPM_TOKENS)}
        self.mask_id = vocabulary[MASK_TOKEN]
        """Id of ``<SVS_MASK>``."""
        score_ids = {vocabulary[token] for token in SVS_TOKENS}
        self._reserved = (set(tokenizer.added_tokens_decoder) | score_ids) - {0}
        self._unknown = str(tokenizer.unk_token)
        self._word_ids: dict[str, tuple[int, ...]] = {}
        self._texts = _IdTexts(self._backend, self.mask_id)
        self._starts = score_ids if _decodes_id_by_id(self._backend) else set()
        self._byte_ids = {token_id for token, token_id in vocabulary.items() if _BYTE_TOKEN.fullmatch(token)}

    @classmethod
    def load(cls, folder: Path) -> "SvsTokenizer":
        """Build the tokenizer of a checkpoint folder; tokens that it already has keep their ids.

        Raises CheckpointError if tokenizer.json is missing or broken, or if the boundary ids 101..104 are taken by
        something else.
        """
        tokenizer = _load_llama(Path(folder))
        vocabulary = tokenizer.get_vocab()
        tokenizer.add_tokens([token for token in SVS_TOKENS if token not in vocabulary])
        _check_boundaries(tokenizer, vocabulary, folder)
        return cls(tokenizer)

    def word_ids(self, word: str) -> tuple[int, ...]:
        """Ids of one lyric word, at least one; ids 0 (unknown pieces) are left out.

        Raises ClipFault(RESERVED_TOKEN) if the word spells a special or added token, ClipFault(UNKNOWN_TEXT) if
        nothing of it is known.
        """
        ids = self._word_ids.get(word)
        if ids is None:
            ids = self._encode(word)
            if len(self._word_ids) >= MAX_CACHED_WORDS:
                self._word_ids.clear()
            self._word_ids[word] = ids
        return ids

    def pitch_id(self, pitch: int) -> int:
        """Id of a MIDI pitch; KeyError outside 0..127."""
        return self._pitch_ids[pitch]

    def note_id(self, note: str) -> int:
        """Id of a note value token; KeyError if it is none of the twelve."""
        return self._note_ids[note]

    def bpm_id(self, bpm: int) -> int:
        """Id of a tempo; KeyError outside 0..255."""
        return self._bpm_ids[bpm]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids``, special tokens kept: equal to the tokenizer's own ``decode(skip_special_tokens=False)``.

        Ids that begin with a score token, as every prompt does, and hold no byte of a character are put together from
        the texts of single ids. That is exact: only bytes are joined with their neighbours, and only the very first
        space of the whole text is stripped.
        """
        if len(ids) and ids[0] in self._starts and self._byte_ids.isdisjoint(ids):
            return "".join(map(self._texts.__getitem__, ids))
        return self._backend.decode(list(ids), skip_special_tokens=False)

    @property
    def num_tokens(self) -> int:
        """Size of the vocabulary, score tokens included."""
        return len(self._tokenizer)

    @functools.cached_property
    def hash(self) -> str:
        """xxh3-128 in hex over all that decides ids and texts.

        Taken from the built tokenizer, with sorted keys; the post-processor, padding and truncation stay out, as they
        touch neither words nor texts, and their spelling changes between versions of transformers.
        """
        built = json.loads(self._backend.to_str())
        parts = {key: built[key] for key in ("added_tokens", "normalizer", "pre_tokenizer", "decoder", "model")}
        return xxhash.xxh3_128_hexdigest(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode())

    def save(self, folder: Path) -> None:
        """Write tokenizer.json and tokenizer_config.json, which AutoTokenizer and LlamaTokenizerFast load to the same ids.

        ``save_pretrained`` forgets ``legacy``; without it the loaded class would treat text behind an added token
        otherwise ("first" instead of "always" in its pre-tokenizer).
        """
        self._tokenizer.save_pretrained(str(folder))
        path = Path(folder) / _CONFIG_NAME
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        config["legacy"] = self._tokenizer.legacy
        path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def _encode(self, word: str) -> tuple[int, ...]:
        try:
            ids = self._backend.encode(word, add_special_tokens=False).ids
        except (TypeError, UnicodeError) as error:  # a lone surrogate
            raise ClipFault(Stage.PROMPT, FaultCode.UNKNOWN_TEXT, f"word {word!r} is not valid Unicode") from error
        if not self._reserved.isdisjoint(ids) or self._unknown in word:
            _refuse(FaultCode.RESERVED_TOKEN, word, "spells a token that has a meaning of its own")
        known = tuple(token_id for token_id in ids if token_id != 0)
        if not known or (word.strip() and not self._backend.decode(known, skip_special_tokens=False).strip()):
            _refuse(FaultCode.UNKNOWN_TEXT, word, "is unknown to the tokenizer")
        return known


class _IdTexts(dict[int, str]):
    """Text of one id as it stands within a prompt; filled when asked, never larger than the vocabulary."""

    def __init__(self, backend: Any, anchor: int) -> None:
        super().__init__()
        self._backend, self._anchor = backend, anchor

    def __missing__(self, token_id: int) -> str:
        # Behind another token: alone it would lose its leading space.
        anchored = self._backend.decode([self._anchor, token_id], skip_special_tokens=False)
        text = self[token_id] = anchored[len(MASK_TOKEN) :]
        return text


def _decodes_id_by_id(backend: Any) -> bool:
    decoder = json.loads(backend.decoder.__getstate__())
    steps = decoder.get("decoders", [decoder])
    return {step["type"] for step in steps} <= _DECODERS


def _refuse(code: FaultCode, word: str, what: str) -> NoReturn:
    raise ClipFault(Stage.PROMPT, code, f"word {word!r} {what}")


def _load_llama(folder: Path) -> "LlamaTokenizerFast":
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(
            f"{path} does not exist",
            why="the prompt's token ids come from the checkpoint's own tokenizer",
            fix="point encoder.path at a complete checkpoint folder (tokenizer.json and tokenizer_config.json)",
        )
    from transformers import LlamaTokenizerFast

    try:
        json.loads(path.read_bytes())
        return LlamaTokenizerFast.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # the Rust side raises bare Exception
        raise CheckpointError(
            f"{path} cannot be read as a Llama-style tokenizer: {error}",
            why="the prompt's token ids come from the checkpoint's own tokenizer",
            fix="copy the tokenizer files again from where the checkpoint came from",
        ) from error


def _check_boundaries(tokenizer: "LlamaTokenizerFast", vocabulary: dict[str, int], folder: Path) -> None:
    """Refuse a vocabulary in which an id of ``BOUNDARY_TOKENS`` provably means something else.

    A special token of another name is let pass: some checkpoints call these ids reserved tokens.
    """
    names = {token_id: token for token, token_id in vocabulary.items()}
    special = tokenizer.added_tokens_decoder
    for token, token_id in BOUNDARY_TOKENS.items():
        if vocabulary.get(token, token_id) != token_id:
            found = f"{token} has id {vocabulary[token]}"
        elif token_id not in names:
            found = f"it has only {len(vocabulary)} tokens"
        elif token not in vocabulary and token_id not in special:
            found = f"id {token_id} is the ordinary token {names[token_id]!r}"
        else:
            continue
        raise CheckpointError(
            f"{folder}: the tokenizer has no {token} at id {token_id}: {found}",
            why="models of this row format are trained with audio boundaries at the ids 101 to 104",
            fix="use the tokenizer that belongs to the checkpoint",
        )
