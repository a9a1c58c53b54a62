"""The rules of an annotation: what is read, what is refused, and with which code."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import ClipFault, FaultCode, Stage, WarningCode
from latentprep.preprocess.score.check import Annotation, Score, check_annotation, check_bpm, check_weak
from latentprep.preprocess.score.note_value import NOTE_QUARTERS


def annotation(**changes) -> Annotation:
    """Four words, five notes: the second of the third word is a melisma."""
    fields = {
        "word": ["AP", "走", "吧", "SP"],
        "pitch": [0, 62, 64, 65, 0],
        "note": ["<NOTE_DOT_32>", "<NOTE_8>", "<NOTE_DOT_8>", "<NOTE_16>", "<NOTE_8>"],
        "pitch2word": [0, 1, 2, 2, 3],
        "bpm": 100,
        "word_dur": [0.1, 0.3, 0.6, 0.3],
        "pitch_dur": [0.1, 0.3, 0.45, 0.15, 0.3],
    }
    return Annotation(**{**fields, **changes})


def fault_of(raw: Annotation, **options):
    with pytest.raises(ClipFault) as caught:
        check_annotation(raw, **options)
    return caught.value.fault


def replaced(field: str, at: int, value) -> Annotation:
    raw = annotation()
    values = list(getattr(raw, field))
    values[at] = value
    return annotation(**{field: values})


def test_a_right_score_passes_unchanged():
    score = check_annotation(annotation())

    assert (
        Score(
            word=("AP", "走", "吧", "SP"),
            word_dur=(0.1, 0.3, 0.6, 0.3),
            pitch=(0, 62, 64, 65, 0),
            pitch_dur=(0.1, 0.3, 0.45, 0.15, 0.3),
            note=("<NOTE_DOT_32>", "<NOTE_8>", "<NOTE_DOT_8>", "<NOTE_16>", "<NOTE_8>"),
            pitch2word=(0, 1, 2, 2, 3),
            bpm=100,
            has_score=True,
            warnings=(),
        )
        == score
    )


@pytest.mark.parametrize("absent", [None, []])
def test_words_without_any_score_field_are_a_weak_clip(absent):
    score = check_annotation(Annotation(word=["走", "吧"], pitch=absent, note=absent, pitch2word=absent, bpm="unknown"))

    assert Score(("走", "吧"), (), (), (), (), (), 0, False, ()) == score


def test_a_weak_clip_keeps_the_durations_of_its_words():
    score = check_annotation(Annotation(word=["走", "吧"], word_dur=[0.5, 1]))

    assert (0.5, 1.0) == score.word_dur


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"word": None}, FaultCode.MISSING_FIELD, "there is no word list"),
        ({"word": "走吧"}, FaultCode.BAD_ITEM, 'word is "走吧", expected a list'),
        ({"word": ["走", 5, "吧", "SP"]}, FaultCode.BAD_ITEM, "word[1] is 5, expected text"),
        ({"word": ["走", None, "吧", "SP"]}, FaultCode.BAD_ITEM, "word[1] is null, expected text"),
        ({"word": []}, FaultCode.NO_LYRIC, "no words, or only rests and markers"),
        ({"word": ["AP", " SP ", "<sil>", "-"]}, FaultCode.NO_LYRIC, "no words, or only rests and markers"),
        ({"pitch": {"0": 1}}, FaultCode.BAD_ITEM, 'pitch is {"0":1}, expected a list'),
        ({"note": []}, FaultCode.PARTIAL_SCORE, "pitch has 5, note 0, pitch2word 5"),
        ({"pitch": None, "note": None}, FaultCode.PARTIAL_SCORE, "pitch has 0, note 0, pitch2word 5"),
        ({"pitch": [0, 62]}, FaultCode.UNEQUAL_LISTS, "pitch has 2, note 5, pitch2word 5"),
        ({"word_dur": [0.1]}, FaultCode.UNEQUAL_LISTS, "word_dur has 1 entries for 4 words"),
        ({"pitch_dur": [0.1] * 6}, FaultCode.UNEQUAL_LISTS, "pitch_dur has 6 entries for 5 notes"),
        ({"word_dur": 0.4}, FaultCode.BAD_ITEM, "word_dur is 0.4, expected a list"),
        ({"bpm": None}, FaultCode.BAD_BPM, "there is no bpm"),
        ({"bpm": 0}, FaultCode.BAD_BPM, "bpm is 0, outside 1..255"),
        ({"bpm": -90}, FaultCode.BAD_BPM, "bpm is -90, outside 1..255"),
        ({"bpm": 256}, FaultCode.BAD_BPM, "bpm is 256, outside 1..255"),
        ({"bpm": 255.5}, FaultCode.BAD_BPM, "bpm is 255.5, outside 1..255"),
        ({"bpm": 0.4}, FaultCode.BAD_BPM, "bpm is 0.4, outside 1..255"),
        ({"bpm": True}, FaultCode.BAD_BPM, "bpm is true, not a number"),
        ({"bpm": False}, FaultCode.BAD_BPM, "bpm is false, not a number"),
        ({"bpm": "fast"}, FaultCode.BAD_BPM, 'bpm is "fast", not a number'),
        ({"bpm": "nan"}, FaultCode.BAD_BPM, 'bpm is "nan", not a number'),
        ({"bpm": "1_0"}, FaultCode.BAD_BPM, 'bpm is "1_0", not a number'),
        ({"bpm": "1e999"}, FaultCode.BAD_BPM, 'bpm is "1e999", not a number'),
        ({"bpm": [90]}, FaultCode.BAD_BPM, "bpm is [90], not a number"),
        ({"bpm": math.inf}, FaultCode.BAD_BPM, "not a number"),
        ({"bpm": math.nan}, FaultCode.BAD_BPM, "not a number"),
        ({"bpm": 10**400}, FaultCode.BAD_BPM, "not a number"),
        ({"word_dur": [10**400, 1, 1, 1]}, FaultCode.BAD_DURATION, "not a number of seconds"),
        ({"pitch2word": [0, 1, 2, 1, 3]}, FaultCode.BAD_PITCH2WORD, "pitch2word falls from 2 to 1 at note 3"),
        ({"pitch2word": [0, 1, 2, 2, 4]}, FaultCode.BAD_PITCH2WORD, "pitch2word[4] is 4, but there are 4 words"),
        ({"pitch": [10**400] * 5}, FaultCode.PITCH_RANGE, f"pitch[0] is 1{'0' * 56}..., outside 0..127"),
        ({"pitch2word": [0, 1, 2, 2, 10**99]}, FaultCode.BAD_PITCH2WORD, f"[4] is 1{'0' * 56}..., but there are 4"),
        ({"pitch2word": [-1, 1, 2, 2, 3]}, FaultCode.BAD_PITCH2WORD, "pitch2word[0] is -1, but there are 4 words"),
        ({"pitch2word": [0, 1, 1, 1, 3]}, FaultCode.WORD_WITHOUT_NOTE, 'word[2], "吧", has no note'),
        ({"pitch2word": [0, 1, 2, 2, 2]}, FaultCode.WORD_WITHOUT_NOTE, 'word[3], "SP", has no note'),
        ({"word": ["AP", "走", "", "SP"]}, FaultCode.EMPTY_WORD, "word[2] is '', but has notes"),
        ({"word": ["AP", "走", "\u3000 ", "SP"]}, FaultCode.EMPTY_WORD, "but has notes"),
    ],
)
def test_a_broken_rule_has_its_code_and_says_what_stands_there(changes, code, message):
    fault = fault_of(annotation(**changes))

    assert code == fault.code
    assert message in fault.message
    assert (Stage.READ if code in ("bad_item", "missing_field") else Stage.SCORE) == fault.stage


@pytest.mark.parametrize(
    ("field", "value", "code", "message"),
    [
        ("note", "<NOTE_64>", FaultCode.UNKNOWN_NOTE, 'note[1] is "<NOTE_64>", not one of the twelve'),
        ("note", "NOTE_8", FaultCode.UNKNOWN_NOTE, 'note[1] is "NOTE_8"'),
        ("note", 8, FaultCode.UNKNOWN_NOTE, "note[1] is 8"),
        ("note", None, FaultCode.UNKNOWN_NOTE, "note[1] is null"),
        ("note", ["<NOTE_8>"], FaultCode.UNKNOWN_NOTE, 'note[1] is ["<NOTE_8>"]'),
        ("pitch", 128, FaultCode.PITCH_RANGE, "pitch[1] is 128, outside 0..127"),
        ("pitch", -1, FaultCode.PITCH_RANGE, "pitch[1] is -1, outside 0..127"),
        ("pitch", 620, FaultCode.PITCH_RANGE, "pitch[1] is 620, outside 0..127"),
        ("pitch", 60.5, FaultCode.PITCH_RANGE, "pitch[1] is 60.5, not a whole number"),
        ("pitch", True, FaultCode.PITCH_RANGE, "pitch[1] is true, not a whole number"),
        ("pitch", "C4", FaultCode.PITCH_RANGE, 'pitch[1] is "C4", not a whole number'),
        ("pitch", None, FaultCode.PITCH_RANGE, "pitch[1] is null, not a whole number"),
        ("pitch", math.nan, FaultCode.PITCH_RANGE, "not a whole number"),
        ("pitch2word", 0.5, FaultCode.BAD_PITCH2WORD, "pitch2word[1] is 0.5, not a whole number"),
        ("pitch2word", True, FaultCode.BAD_PITCH2WORD, "pitch2word[1] is true, not a whole number"),
        ("word_dur", -0.1, FaultCode.BAD_DURATION, "word_dur[1] is -0.1, not a number of seconds"),
        ("word_dur", math.nan, FaultCode.BAD_DURATION, "word_dur[1] is"),
        ("pitch_dur", math.inf, FaultCode.BAD_DURATION, "pitch_dur[1] is"),
        ("pitch_dur", "long", FaultCode.BAD_DURATION, 'pitch_dur[1] is "long"'),
        ("pitch_dur", False, FaultCode.BAD_DURATION, "pitch_dur[1] is false"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place(field, value, code, message):
    fault = fault_of(replaced(field, 1, value))

    assert code == fault.code
    assert message in fault.message


def test_a_long_value_does_not_flood_the_list_of_skips():
    assert len(fault_of(annotation(bpm="x" * 10_000)).message) < 100


@pytest.mark.parametrize(
    ("value", "bpm", "warnings"),
    [
        (1, 1, ()),
        (255, 255, ()),
        (90.0, 90, ()),
        ("90", 90, (WarningCode.NUMERIC_STRING,)),
        (" 90.0 ", 90, (WarningCode.NUMERIC_STRING,)),
        (92.4, 92, (WarningCode.BPM_ROUNDED,)),
        (92.5, 93, (WarningCode.BPM_ROUNDED,)),
        (93.5, 94, (WarningCode.BPM_ROUNDED,)),
        ("92.6", 93, (WarningCode.NUMERIC_STRING, WarningCode.BPM_ROUNDED)),
        (0.5, 1, (WarningCode.BPM_ROUNDED,)),
        (255.4, 255, (WarningCode.BPM_ROUNDED,)),
        (0.9999999999999999, 1, (WarningCode.BPM_ROUNDED,)),
    ],
)
def test_a_tempo_is_rounded_half_up_and_counted(value, bpm, warnings):
    """Token, column and estimated duration all use this one number."""
    score = check_annotation(annotation(bpm=value))

    assert bpm == score.bpm
    assert warnings == score.warnings


def test_rounding_half_up_is_exact_just_below_the_half():
    """floor(x + 0.5) makes 1 of it."""
    with pytest.raises(ClipFault):
        check_bpm(0.49999999999999994, [])


def test_whole_numbers_may_be_written_as_floats_or_text():
    score = check_annotation(annotation(pitch=[0.0, "62", 64, "65.0", 0], pitch2word=["0", 1.0, 2, 2, 3]))

    assert (0, 62, 64, 65, 0) == score.pitch
    assert {int} == set(map(type, score.pitch + score.pitch2word))
    assert (WarningCode.NUMERIC_STRING,) == score.warnings


def test_durations_become_floats_and_may_be_left_out():
    score = check_annotation(annotation(word_dur=[0, "0.5", 1, 0.25], pitch_dur=None))

    assert (0.0, 0.5, 1.0, 0.25) == score.word_dur
    assert {float} == set(map(type, score.word_dur))
    assert () == score.pitch_dur
    assert (WarningCode.NUMERIC_STRING,) == score.warnings


def test_a_word_without_a_note_can_be_let_through_with_a_warning():
    """The row is then upstream's: the word stays in the column, not in the prompt."""
    score = check_annotation(annotation(pitch2word=[0, 1, 1, 1, 3]), word_without_note="warn")

    assert ("AP", "走", "吧", "SP") == score.word
    assert (WarningCode.WORD_WITHOUT_NOTE,) == score.warnings


def test_an_empty_word_without_notes_is_let_through_where_words_without_notes_are():
    raw = annotation(word=["AP", "走", "", "SP"], pitch2word=[0, 1, 1, 1, 3])

    assert ("AP", "走", "", "SP") == check_annotation(raw, word_without_note="warn").word
    assert FaultCode.WORD_WITHOUT_NOTE == fault_of(raw).code


def test_words_are_never_trimmed():
    """The column is the annotator's; what the tokenizer makes of a blank is its own matter."""
    score = check_annotation(annotation(word=["AP", " 走", "la la", "SP "]))

    assert ("AP", " 走", "la la", "SP ") == score.word


def test_an_empty_word_of_a_weak_clip_is_refused():
    fault = fault_of(Annotation(word=["走", " ", "吧"]))

    assert (FaultCode.EMPTY_WORD, "word[1] is ' ', which has no text to be sung") == (fault.code, fault.message)


def test_durations_of_notes_that_are_not_there_are_refused():
    assert FaultCode.UNEQUAL_LISTS == fault_of(Annotation(word=["走"], pitch_dur=[0.5])).code


def test_split_words_without_lyric_are_refused():
    with pytest.raises(ClipFault) as caught:
        check_weak(())

    assert FaultCode.NO_LYRIC == caught.value.fault.code


texts = st.text(st.characters(codec="utf-8", exclude_characters="<"), min_size=1, max_size=4).filter(
    lambda text: text.strip() not in ("", "AP", "SP", "-", "_")
)
seconds = st.floats(0, 1e6, allow_nan=False)


@st.composite
def annotations(draw) -> Annotation:
    """Any score that keeps all rules."""
    notes_per_word = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    count = sum(notes_per_word)
    word = [draw(st.sampled_from(["AP", "SP"]) | texts) for _ in notes_per_word]
    word[draw(st.integers(0, len(word) - 1))] = draw(texts)
    return Annotation(
        word=word,
        word_dur=draw(st.sampled_from([None, []]) | st.lists(seconds, min_size=len(word), max_size=len(word))),
        pitch=draw(st.lists(st.integers(0, 127), min_size=count, max_size=count)),
        pitch_dur=draw(st.sampled_from([None, []]) | st.lists(seconds, min_size=count, max_size=count)),
        note=draw(st.lists(st.sampled_from(list(NOTE_QUARTERS)), min_size=count, max_size=count)),
        pitch2word=[index for index, notes in enumerate(notes_per_word) for _ in range(notes)],
        bpm=draw(st.integers(1, 255)),
    )


@given(annotations())
def test_any_right_score_passes_unchanged(raw):
    score = check_annotation(raw)

    for field in ("word", "pitch", "note", "pitch2word"):
        assert getattr(raw, field) == list(getattr(score, field))
    for field in ("word_dur", "pitch_dur"):
        assert (getattr(raw, field) or []) == list(getattr(score, field))
    assert (raw.bpm, True, ()) == (score.bpm, score.has_score, score.warnings)


def _mutations(raw: Annotation, at: int) -> dict[FaultCode, list[dict[str, object]]]:
    """Every way of breaking one rule at note ``at``, by the code that must come of it."""
    count, words = len(raw.pitch), len(raw.word)
    word = raw.pitch2word[at]

    def put(field: str, value: object) -> dict[str, object]:
        values = list(getattr(raw, field))
        values[at] = value
        return {field: values}

    cut = [{field: getattr(raw, field)[:-1]} for field in ("pitch", "note", "pitch2word") if count > 1]
    added = [{field: [*getattr(raw, field), getattr(raw, field)[-1]]} for field in ("pitch", "note", "pitch2word")]
    empty = [{field: value} for field in ("pitch", "note", "pitch2word") for value in (None, [])]
    falling = [{"pitch2word": [1, *raw.pitch2word[1:-1], 0]}] if count > 1 and words > 1 else []
    blank = [{"word": [*raw.word[:word], "", *raw.word[word + 1 :], "la"], "pitch2word": [*raw.pitch2word]}]
    return {
        FaultCode.UNKNOWN_NOTE: [put("note", token) for token in ("<NOTE_3>", "", None, 4, "<note_4>")],
        FaultCode.PITCH_RANGE: [put("pitch", value) for value in (-1, 128, 60.5, None, True, "x")],
        FaultCode.BAD_PITCH2WORD: [*falling, put("pitch2word", words), put("pitch2word", -1), put("pitch2word", None)],
        FaultCode.UNEQUAL_LISTS: [*cut, *added, {"word_dur": [0.1] * (words + 1)}, {"pitch_dur": [0.1] * (count + 1)}],
        FaultCode.PARTIAL_SCORE: empty,
        FaultCode.BAD_BPM: [{"bpm": value} for value in (0, -1, 256, None, True, "x", 1e9)],
        FaultCode.BAD_DURATION: [{"word_dur": [-1.0] * words}, {"pitch_dur": [math.nan] * count}],
        FaultCode.WORD_WITHOUT_NOTE: [{"word": [*raw.word, "la"], "word_dur": None}],
        FaultCode.EMPTY_WORD: blank,
        FaultCode.NO_LYRIC: [{"word": ["AP"] * words}, {"word": []}],
        FaultCode.MISSING_FIELD: [{"word": None}],
    }


@given(annotations(), st.data())
def test_any_single_mutation_is_refused_with_its_code(raw, data):
    """Upstream guesses in every one of these cases, and the guess becomes a training example."""
    at = data.draw(st.integers(0, len(raw.pitch) - 1))
    for code, mutations in _mutations(raw, at).items():
        for changes in mutations:
            fields = {**msgspec.structs.asdict(raw), **changes}

            assert code == fault_of(Annotation(**fields)).code, changes


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["60", "<NOTE_8>", 1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(Annotation.__struct_fields__, anything)))
def test_no_annotation_however_wrong_raises_anything_but_a_fault(fields):
    """An exception of another kind would end the run of a million other clips."""
    try:
        score = check_annotation(Annotation(**fields))
    except ClipFault:
        return

    assert {str} == set(map(type, score.word))
    assert {int} >= set(map(type, (*score.pitch, *score.pitch2word, score.bpm)))
    assert {float} >= set(map(type, (*score.word_dur, *score.pitch_dur)))
