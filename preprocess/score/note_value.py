"""Note values: the twelve tokens a score is written in, and how long each lasts.

Durations are counted in quarters, the unit of bpm. All twelve are dyadic fractions, so their sum is exact in a double
and only the tempo rounds: the order of the notes can't change ``estimated_duration``.
"""

from collections.abc import Sequence

_PLAIN_QUARTERS = {1: 4.0, 2: 2.0, 4: 1.0, 8: 0.5, 16: 0.25, 32: 0.125}

NOTE_QUARTERS: dict[str, float] = {f"<NOTE_{value}>": quarters for value, quarters in _PLAIN_QUARTERS.items()} | {
    f"<NOTE_DOT_{value}>": 1.5 * quarters for value, quarters in _PLAIN_QUARTERS.items()
}
"""Token -> quarters, in the order in which the vocabulary holds them (whole to 32nd, then the dotted ones)."""


def score_seconds(notes: Sequence[str], bpm: int) -> float:
    """Seconds that ``notes`` last at ``bpm`` quarters a minute: the column ``estimated_duration`` of a scored row.

    Quarters times the rounded seconds of one quarter. ``quarters * 60 / bpm`` differs in the last bit for four of the
    nine reference rows.

    Raises KeyError for a token that is not in ``NOTE_QUARTERS`` and ZeroDivisionError for bpm 0: a checked clip
    (preprocess/score/check.py) has neither.
    """
    return sum(NOTE_QUARTERS[note] for note in notes) * (60 / bpm)
