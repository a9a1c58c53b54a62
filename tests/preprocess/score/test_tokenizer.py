"""The text tokenizer with score tokens."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import CheckpointError, ClipFault, FaultCode, Stage
from latentprep.preprocess.score import tokenizer as tokenizer_module
from latentprep.preprocess.score.tokenizer import SvsTokenizer
from latentprep.preprocess.score.vocabulary import SVS_TOKENS

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "checkpoint"
TINY = ROOT / "preprocess" / "encode" / "tiny"

TOKENIZERS = {folder: SvsTokenizer.load(folder) for folder in (GOLDEN, TINY)}
both = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=["golden", "tiny"])


def _own_decode(tokenizer: SvsTokenizer, ids: list[int]) -> str:
    text = tokenizer._tokenizer.decode(ids, skip_special_tokens=False)
    assert isinstance(text, str)
    return text


def _fault(tokenizer: SvsTokenizer, word: str) -> FaultCode:
    with pytest.raises(ClipFault) as caught:
        tokenizer.word_ids(word)
    assert Stage.PROMPT == caught.value.fault.stage
    return caught.value.fault.code


def _copy(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of the tiny tokenizer with a changed tokenizer.json."""
    content = json.loads((TINY / "tokenizer.json").read_text())
    change(content)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (folder / "tokenizer_config.json").write_bytes((TINY / "tokenizer_config.json").read_bytes())
    return folder


def test_new_tokens_follow_the_vocabulary_in_order() -> None:
    """The golden vocabulary has 438 tokens; the first pitch comes next."""
    tokenizer = TOKENIZERS[GOLDEN]

    assert [438, 498, 565] == [tokenizer.pitch_id(pitch) for pitch in (0, 60, 127)]
    assert [566, 577] == [tokenizer.note_id(note) for note in ("<NOTE_1>", "<NOTE_DOT_32>")]
    assert [578, 833, 834] == [tokenizer.bpm_id(0), tokenizer.bpm_id(255), tokenizer.mask_id]


def test_tokens_that_are_there_already_keep_their_ids(tmp_path: Path) -> None:
    """A released checkpoint's tokenizer holds them; adding them twice would point behind its embeddings."""
    TOKENIZERS[TINY].save(tmp_path)

    again = SvsTokenizer.load(tmp_path)

    assert len(TOKENIZERS[TINY]._tokenizer) == len(again._tokenizer)
    assert TOKENIZERS[TINY].mask_id == again.mask_id


@pytest.mark.parametrize("pitch", [-1, 128])
def test_a_pitch_outside_midi_is_a_key_error(pitch: int) -> None:
    """A table indexed from its end would turn -1 into pitch 127."""
    with pytest.raises(KeyError):
        TOKENIZERS[TINY].pitch_id(pitch)


@both
@given(text=st.text(min_size=1, max_size=12).filter(lambda text: "▁" not in text and "<" not in text))
def test_any_text_has_ids_without_unknown_that_decode_back(tokenizer: SvsTokenizer, text: str) -> None:
    """Byte fallback covers all of Unicode. One leading space is the tokenizer's own; ▁ is how it writes a space."""
    ids = tokenizer.word_ids(text)

    assert 0 not in ids
    assert text.removeprefix(" ") == tokenizer.decode(ids)
    assert tuple(tokenizer._tokenizer.encode(text, add_special_tokens=False)) == ids


@both
@given(data=st.data())
def test_decoding_from_cached_texts_equals_the_tokenizers_own(tokenizer: SvsTokenizer, data: st.DataObject) -> None:
    """The column svs_prompt is compared with ==, so a shortcut has to be exact, bytes and spaces included."""
    size = len(tokenizer._tokenizer)
    ids = data.draw(st.lists(st.integers(0, size - 1), max_size=12))
    score = data.draw(st.lists(st.integers(size - len(SVS_TOKENS), size - 1), max_size=2))

    assert _own_decode(tokenizer, score + ids) == tokenizer.decode(score + ids)


@both
@given(words=st.lists(st.text(max_size=4), max_size=6))
def test_decoding_words_between_score_tokens_is_exact(tokenizer: SvsTokenizer, words: list[str]) -> None:
    """The same law on the ids that prompts are made of."""
    ids = [tokenizer.mask_id]
    for word in words:
        ids += [*tokenizer._tokenizer.encode(word, add_special_tokens=False), tokenizer.pitch_id(60)]

    assert _own_decode(tokenizer, ids) == tokenizer.decode(ids)


@both
@pytest.mark.parametrize("word", ["<|audio_end|>", "</s>", "a</s>b", "<P_60>", "x<SVS_MASK>", "<unk>", "<REST>"])
def test_a_word_that_spells_a_token_is_refused(tokenizer: SvsTokenizer, word: str) -> None:
    """It would end the audio, or change a note, in the middle of a lyric."""
    assert FaultCode.RESERVED_TOKEN == _fault(tokenizer, word)


@pytest.mark.parametrize("word", ["", "\ud800"])
def test_a_word_without_any_known_text_is_refused(word: str) -> None:
    """Its notes would hang on the word before."""
    assert FaultCode.UNKNOWN_TEXT == _fault(TOKENIZERS[TINY], word)


def test_without_byte_fallback_an_unknown_character_is_refused_and_a_known_one_is_not(tmp_path: Path) -> None:
    """Such a tokenizer drops what it doesn't know, without a word."""

    def drop_bytes(content: dict[str, Any]) -> None:
        vocab = content["model"]["vocab"]
        content["model"]["vocab"] = {f"x{i}" if t.startswith("<0x") else t: i for t, i in vocab.items()}

    tokenizer = SvsTokenizer.load(_copy(tmp_path, drop_bytes))

    assert FaultCode.UNKNOWN_TEXT == _fault(tokenizer, "鑡")
    assert TOKENIZERS[TINY].word_ids("爱") == tokenizer.word_ids("爱鑡")


def test_a_full_word_cache_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays flat over any number of words."""
    monkeypatch.setattr(tokenizer_module, "MAX_CACHED_WORDS", 8)
    tokenizer = SvsTokenizer.load(TINY)

    ids = [tokenizer.word_ids(f"w{number}") for number in range(100)]

    assert len(tokenizer._word_ids) <= 8
    assert ids == [tokenizer.word_ids(f"w{number}") for number in range(100)]


def test_a_missing_tokenizer_file_is_a_checkpoint_error(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(CheckpointError, match=r"tokenizer\.json does not exist"):
        SvsTokenizer.load(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 3}'])
def test_a_broken_tokenizer_file_is_a_checkpoint_error(tmp_path: Path, content: str) -> None:
    """Half a copied file is the common cause."""
    (tmp_path / "tokenizer.json").write_text(content)

    with pytest.raises(CheckpointError, match="cannot be read"):
        SvsTokenizer.load(tmp_path)


def test_a_boundary_at_another_id_is_a_checkpoint_error(tmp_path: Path) -> None:
    """Rows would hold ids that the model reads as something else."""

    def swap(content: dict[str, Any]) -> None:
        vocab, added = content["model"]["vocab"], content["added_tokens"]
        vocab["<|audio_end|>"], vocab["<|audio_prompt_end|>"] = 104, 102
        added[102]["content"], added[104]["content"] = added[104]["content"], added[102]["content"]

    with pytest.raises(CheckpointError, match=r"no <\|audio_end\|> at id 102: <\|audio_end\|> has id 104"):
        SvsTokenizer.load(_copy(tmp_path, swap))


def test_an_ordinary_token_at_a_boundary_id_is_a_checkpoint_error(tmp_path: Path) -> None:
    """A plain Llama tokenizer has byte tokens there."""

    def rename(content: dict[str, Any]) -> None:
        vocab = content["model"]["vocab"]
        content["model"]["vocab"] = {"plain" if i == 101 else t: i for t, i in vocab.items()}
        del content["added_tokens"][101]

    with pytest.raises(CheckpointError, match="id 101 is the ordinary token 'plain'"):
        SvsTokenizer.load(_copy(tmp_path, rename))


def test_the_hash_tells_vocabularies_apart_and_is_equal_in_another_process() -> None:
    """It belongs to the plan's identity, which outlives the process."""
    code = (
        "import sys; from pathlib import Path; from latentprep.preprocess.score.tokenizer import SvsTokenizer;"
        f"print(SvsTokenizer.load(Path({str(TINY)!r})).hash, 'torch' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert f"{TOKENIZERS[TINY].hash} False" == process.stdout.strip()
    assert TOKENIZERS[GOLDEN].hash != TOKENIZERS[TINY].hash
    assert 32 == len(TOKENIZERS[TINY].hash)


@both
def test_a_saved_folder_loads_to_the_same_ids_texts_and_hash(tokenizer: SvsTokenizer, tmp_path: Path) -> None:
    """A trainer loads it with AutoTokenizer, without this project."""
    from transformers import AutoTokenizer, LlamaTokenizerFast

    tokenizer.save(tmp_path)

    text = "<BPM_100> AP<P_0><NOTE_DOT_32> 感<P_62><NOTE_8> 鑡<P_64><NOTE_DOT_8> love<P_1><NOTE_2><|audio_start|>"
    ids = tokenizer._tokenizer.encode(text, add_special_tokens=False)
    for loaded in (AutoTokenizer.from_pretrained(tmp_path), LlamaTokenizerFast.from_pretrained(tmp_path)):
        assert ids == loaded.encode(text, add_special_tokens=False)
        assert text == loaded.decode(ids, skip_special_tokens=False)
    assert tokenizer.hash == SvsTokenizer.load(tmp_path).hash


def test_the_bundled_tokenizer_is_what_its_script_builds(tmp_path: Path) -> None:
    """Edits belong into the script."""
    subprocess.run([sys.executable, ROOT / "examples" / "build_tiny_tokenizer.py", tmp_path], check=True)

    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / name).read_bytes() == (TINY / name).read_bytes()


@pytest.mark.parametrize("word", ["AP", "SP"])
def test_the_bundled_tokenizer_knows_rests_as_one_token(word: str) -> None:
    """They are the most frequent words of any corpus."""
    assert 1 == len(TOKENIZERS[TINY].word_ids(word))
