"""How a sung score is spelled in the annotation files of the three kinds of corpora (docs/format.md)."""

import json
from pathlib import Path
from typing import Any

from .songs import Language
from .sung_score import BREATH, SILENCE, SungScore


def score_fields(score: SungScore) -> dict[str, Any]:
    """Words, notes and durations, without the bpm: that stands with a clip or with its song."""
    return {
        "word": list(score.word),
        "word_dur": [round(seconds, 6) for seconds in score.word_dur],
        "pitch": list(score.pitch),
        "pitch_dur": [round(seconds, 6) for seconds in score.pitch_dur],
        "note": list(score.note),
        "pitch2word": list(score.pitch2word),
    }


def transcription(score: SungScore, language: Language) -> str:
    """The lyric as running text, without rests; words are spaced in English only."""
    words = [word for word in score.word if word not in (BREATH, SILENCE)]
    return (" " if language == "en" else "").join(words)


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as UTF-8 JSON; makes missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
