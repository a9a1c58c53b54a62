"""The tokens that a score adds to a text tokenizer, in the order in which their ids are handed out.

Released checkpoints have one embedding row per token, so the order and the number never change; ``<score_start>``,
``<score_end>`` and ``<REST>`` are in no prompt of this project, and keep their places all the same.
"""

from ...core.schema import AUDIO_END_ID, AUDIO_PROMPT_END_ID, AUDIO_PROMPT_START_ID, AUDIO_START_ID
from .note_value import NOTE_QUARTERS

PITCH_TOKENS = tuple(f"<P_{pitch}>" for pitch in range(128))
"""One per MIDI pitch; ``<P_0>`` is a rest."""

NOTE_TOKENS = tuple(NOTE_QUARTERS)
"""One per note value."""

BPM_TOKENS = tuple(f"<BPM_{bpm}>" for bpm in range(256))
"""One per whole tempo."""

MASK_TOKEN = "<SVS_MASK>"
"""Stands for bpm, pitch and note where a clip has words only."""

SVS_TOKENS = (*PITCH_TOKENS, *NOTE_TOKENS, *BPM_TOKENS, MASK_TOKEN, "<score_start>", "<score_end>", "<REST>")
"""All 400, in vocabulary order."""

BOUNDARY_TOKENS = {
    "<|audio_start|>": AUDIO_START_ID,
    "<|audio_end|>": AUDIO_END_ID,
    "<|audio_prompt_start|>": AUDIO_PROMPT_START_ID,
    "<|audio_prompt_end|>": AUDIO_PROMPT_END_ID,
}
"""Tokens that the checkpoint's own tokenizer holds, and the ids that models are trained with."""
