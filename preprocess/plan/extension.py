"""``Extension``: how a plan goes on from the one before it; a part of the later plan's file.

Chunk ids go on where the earlier plans' end, so that an id means one chunk in the whole dataset.
"""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Extension:
    """What an extending plan says of earlier ones."""

    base: str
    """Fingerprint of the plan that it extends."""
    first_chunk: int
    """Id of its own first chunk."""
    supersedes: tuple[int, ...]
    """Ids of earlier chunks that hold a changed or vanished clip."""
    copies: tuple[tuple[int, int], ...]
    """(own chunk, superseded chunk): the own one holds the clips of the other that are as they were."""

    def to_json(self) -> str:
        """JSON with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Extension":
        """The inverse of ``to_json``; raises ``ValueError``, ``KeyError`` or ``TypeError`` for anything else."""
        values = json.loads(text)
        return cls(
            base=values["base"],
            first_chunk=values["first_chunk"],
            supersedes=tuple(values["supersedes"]),
            copies=tuple((new, old) for new, old in values["copies"]),
        )
