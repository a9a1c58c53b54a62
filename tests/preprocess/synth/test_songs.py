"""Invented scores obey the rules that the readers enforce, and last as long as asked."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.preprocess.score.note_value import NOTE_QUARTERS
from latentprep.preprocess.synth.lyrics import LINES
from latentprep.preprocess.synth.songs import LANGUAGES, Language, random_score
from latentprep.preprocess.synth.syllable import Onset, Syllable, Vowel, syllable_of

_LANGUAGES = st.sampled_from(LANGUAGES)


@given(st.integers(0, 2**32), _LANGUAGES, st.floats(0.1, 20.0))
@settings(max_examples=60, deadline=None)
def test_every_score_is_consistent(seed: int, language: Language, seconds: float):
    """A score that the pipeline refuses would turn a demo clip into a fault."""
    score = random_score(np.random.default_rng(seed), language, seconds=seconds, compass=(50, 70))

    assert len(score.pitch) == len(score.note) == len(score.pitch2word) == len(score.pitch_dur)
    assert len(score.word) == len(score.word_dur)
    assert set(range(len(score.word))) == set(score.pitch2word)
    assert sorted(score.pitch2word) == list(score.pitch2word)
    assert set(score.note) <= set(NOTE_QUARTERS)
    assert all(pitch == 0 or 50 <= pitch <= 70 for pitch in score.pitch)
    assert 1 <= score.bpm <= 255
    assert all(score.word)
    assert any(score.pitch)


@given(st.integers(0, 2**32), _LANGUAGES, st.floats(0.1, 20.0))
@settings(max_examples=60, deadline=None)
def test_durations_are_the_note_values_and_add_up_to_the_length_asked_for(
    seed: int, language: Language, seconds: float
):
    """Half a 64th note at 60 bpm is 31 ms; a score may not be shorter than a 32nd."""
    score = random_score(np.random.default_rng(seed), language, seconds=seconds)

    assert score.seconds == pytest.approx(max(seconds, 7.5 / score.bpm), abs=0.0316)
    assert score.seconds == pytest.approx(sum(score.pitch_dur))
    assert score.seconds == pytest.approx(sum(score.word_dur))
    assert [60 / score.bpm * NOTE_QUARTERS[note] for note in score.note] == pytest.approx(list(score.pitch_dur))


@given(st.integers(0, 2**32), _LANGUAGES, st.floats(0.5, 20.0))
@settings(max_examples=30, deadline=None)
def test_notes_follow_each_other_without_gap(seed: int, language: Language, seconds: float):
    """The voice places sounds by these times."""
    score = random_score(np.random.default_rng(seed), language, seconds=seconds)
    notes = list(score.notes())

    assert notes[0].start == 0.0
    assert [note.end for note in notes[:-1]] == [note.start for note in notes[1:]]
    assert score.seconds == pytest.approx(notes[-1].end)


def test_all_twelve_note_values_melisma_and_both_rests_occur():
    """What never occurs in the test corpora is never tested."""
    rng = np.random.default_rng(0)
    scores = [random_score(rng, language, seconds=10.0) for language in LANGUAGES for _ in range(20)]
    values = Counter(note for score in scores for note in score.note)
    words = Counter(word for score in scores for word in score.word)

    assert set(NOTE_QUARTERS) == set(values)
    assert min(words["AP"], words["SP"]) >= 10
    assert sum(len(score.pitch) - len(score.word) for score in scores) > 100


def test_the_same_seed_writes_the_same_song():
    """Corpora are reproducible by their seed."""
    one, other, another = (random_score(np.random.default_rng(s), "ja", seconds=5.0) for s in (7, 7, 8))

    assert one == other
    assert one != another


def test_a_word_is_sung_on_its_own_syllable():
    """Kana and Latin words by their sound, so that a listener can follow the lyric."""
    assert Syllable(Onset.PLOSIVE, Vowel.A) == syllable_of("か")
    assert Syllable(Onset.NASAL, Vowel.O) == syllable_of("ノ")
    assert Syllable(Onset.SIBILANT, Vowel.E) == syllable_of("seventh")
    assert Syllable(Onset.NONE, Vowel.U) == syllable_of("umbrella")
    assert syllable_of("雪") == syllable_of("雪")
    assert len({syllable_of(character) for character in "纸船停在第七级台阶茶杯里住着"}) > 6


def test_no_word_of_the_lyrics_is_empty_or_a_marker():
    """Such words are faults or rests to the readers."""
    words = {word for lines in LINES.values() for line in lines for word in line}

    assert set(LANGUAGES) == set(LINES)
    assert not words & {"", "AP", "SP", "-", "_"}
    assert all(word == word.strip() and "<" not in word for word in words)
