"""The tokens a score adds."""

from latentprep.preprocess.score.vocabulary import BOUNDARY_TOKENS, NOTE_TOKENS, SVS_TOKENS


def test_the_400_tokens_stand_in_the_order_that_checkpoints_were_trained_with() -> None:
    """Each has an embedding row at its place: an insertion would shift all that follow."""
    assert 400 == len(SVS_TOKENS) == len(set(SVS_TOKENS))
    assert ("<P_0>", "<P_127>") == (SVS_TOKENS[0], SVS_TOKENS[127])
    assert NOTE_TOKENS == SVS_TOKENS[128:140]
    assert ("<BPM_0>", "<BPM_255>") == (SVS_TOKENS[140], SVS_TOKENS[395])
    assert ("<SVS_MASK>", "<score_start>", "<score_end>", "<REST>") == SVS_TOKENS[396:]


def test_the_audio_boundaries_have_the_ids_of_the_row_format() -> None:
    """They are written into every row."""
    expected = {
        "<|audio_start|>": 101,
        "<|audio_end|>": 102,
        "<|audio_prompt_start|>": 103,
        "<|audio_prompt_end|>": 104,
    }
    assert expected == BOUNDARY_TOKENS
