"""``Clip``: one annotated audio segment of a corpus, parsed; and ``RefusedClip``: one that broke a rule.

Readers make these at the edge; after that every field exists and has the type that it says. A clip with words only
("weak") has empty ``pitch``, ``note`` and ``pitch2word`` and bpm 0, as its row will (docs/format.md).
"""

from dataclasses import dataclass

from ...core.errors import Fault, WarningCode


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """One annotated audio segment."""

    dataset_name: str
    item_name: str
    song_name: str
    song_folder: str
    audio_path: str
    """Path to open, as the configuration spells its root: not resolved, relative to the working folder if that is."""
    audio_root: str
    """Folder that ``audio_path`` may not leave (unless the configuration allows it)."""
    word: tuple[str, ...]
    """Lyric words as annotated, rests (AP, SP) included."""
    word_dur: tuple[float, ...] = ()
    """Seconds per word; may be empty."""
    pitch: tuple[int, ...] = ()
    """MIDI pitch per note, 0 = rest."""
    pitch_dur: tuple[float, ...] = ()
    """Seconds per note; may be empty."""
    note: tuple[str, ...] = ()
    """Note value token per note, e.g. ``<NOTE_DOT_8>``."""
    pitch2word: tuple[int, ...] = ()
    """Index of each note's word, not falling."""
    bpm: int = 0
    """Beats (quarters) per minute; 0 for a weak clip."""
    has_score: bool = False
    warnings: tuple[WarningCode, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedClip:
    """An item of a corpus that will have no row, and why."""

    dataset_name: str
    item_name: str
    audio_path: str
    """Path of the audio, or of the annotation if there is none."""
    fault: Fault
