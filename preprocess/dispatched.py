"""``Dispatched``: what the workers of one run did, for the summary and for provenance.json."""

from dataclasses import dataclass
from datetime import datetime

from .events import StageSeconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispatched:
    """Of this run alone."""

    started: datetime
    todo: tuple[int, ...]
    """Chunks that it had to do."""
    wall_seconds: float
    """From the first worker's readiness to the last one's end; 0 if there was nothing to do."""
    stages: tuple[StageSeconds, ...]
    precision_error: float | None = None
    """Of latents, relative to strict float32, on probe clips: the worst worker's; None where none was measured."""
