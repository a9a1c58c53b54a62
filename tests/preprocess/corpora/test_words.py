"""Splitting transcriptions, and telling lyric from rests."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.corpora.words import APOSTROPHES, JOINERS, has_lyric, is_marker, split_words


@pytest.mark.parametrize(
    ("transcription", "words"),
    [
        ("走吧", ("走", "吧")),
        ("走 吧，\n走！", ("走", "吧", "走")),
        ("我 love you 吧", ("我", "love", "you", "吧")),
        ("我love你2次", ("我", "love", "你", "2", "次")),
        ("don't rock’n’roll", ("don't", "rock’n’roll")),
        ("'tis the singers' song", ("tis", "the", "singers", "song")),
        ("well-known e.g. 3.5", ("well", "known", "e", "g", "3", "5")),
        ("さくら サクラ ｻｸﾗ", ("さ", "く", "ら", "サ", "ク", "ラ", "ｻ", "ｸ", "ﾗ")),
        ("スーパー々", ("ス", "ー", "パ", "ー", "々")),
        ("か\u3099き", ("か\u3099", "き")),
        ("사랑해 너를", ("사", "랑", "해", "너", "를")),
        (
            unicodedata.normalize("NFD", "사랑"),
            (unicodedata.normalize("NFD", "사"), unicodedata.normalize("NFD", "랑")),
        ),
        ("Привет, мир", ("Привет", "мир")),
        ("naïve " + unicodedata.normalize("NFD", "naïve"), ("naïve", unicodedata.normalize("NFD", "naïve"))),
        ("नमस्ते दुनिया", ("नमस्ते", "दुनिया")),
        ("می\u200cروم", ("می\u200cروم",)),
        ("𠮷野家", ("𠮷", "野", "家")),
        ("AP 走 SP", ("AP", "走", "SP")),
        ("snake_case", ("snake", "case")),
        ("…!? \u3000", ()),
        ("", ()),
    ],
)
def test_a_transcription_is_split_by_script(transcription, words):
    """Upstream makes a word of every character, the blanks and commas included."""
    assert words == split_words(transcription)


alphabet = st.one_of(
    st.characters(codec="utf-8"),
    st.sampled_from("走さサ사ab1 'é,.-々ー" + APOSTROPHES + JOINERS),
    st.characters(min_codepoint=0x1100, max_codepoint=0x11FF),
    st.characters(min_codepoint=0x300, max_codepoint=0x36F),
)


def letters(text: str) -> list[str]:
    return [char for char in text if unicodedata.category(char)[0] in "LN"]


@given(st.text(alphabet, max_size=30))
def test_every_letter_lands_in_exactly_one_word(text):
    """What is lost here is sung in the audio and missing in the prompt."""
    words = split_words(text)

    assert letters(text) == [letter for word in words for letter in letters(word)]


@given(st.text(alphabet, max_size=30))
def test_words_are_pieces_of_the_text_in_its_order(text):
    """Nothing is normalized, changed or invented."""
    at = 0
    for word in split_words(text):
        at = text.index(word, at) + len(word)
        assert letters(word)


@given(st.text(alphabet, max_size=30))
def test_splitting_words_joined_by_blanks_gives_the_same_words(text):
    words = split_words(text)

    assert words == split_words(" ".join(words))


@pytest.mark.parametrize("word", ["AP", "SP", "", " ", "-", "_", "<AP>", "<anything at all>", " SP\n", "\u3000"])
def test_rests_and_markers_are_not_lyric(word):
    assert is_marker(word)
    assert not has_lyric([word, word])


@pytest.mark.parametrize("word", ["走", "la", "ap", "<a", "a>", "--", "7", "APSP"])
def test_anything_else_is_lyric(word):
    assert not is_marker(word)
    assert has_lyric(["AP", word])
