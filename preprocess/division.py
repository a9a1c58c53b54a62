"""How a plan is divided into parts, one for each task of a cluster: a pure function, so no task has to be told.

Of each run of K neighbours in the plan every part gets one, so that all parts hold as many large and small chunks. Which
one is drawn anew for each run of neighbours and each K: what a dead part of 8 left undone is then spread over all parts
of a later 4, where a plain ``position % K`` would give it to a single one.
"""

from collections.abc import Sequence

import xxhash

from ..core.errors import UsageError
from ..core.paths import Part

MAX_PARTS = 100_000
"""More tasks than any scheduler takes in one array."""


def parse_part(text: str) -> Part:
    """``"3/8"`` as part 3 of 8. Raises UsageError for anything else."""
    number, slash, count = text.partition("/")
    if slash and _is_number(number) and _is_number(count) and 1 <= int(number) <= int(count) <= MAX_PARTS:
        return Part(number=int(number), count=int(count))
    raise UsageError(f"{text!r} names no part of a plan", fix="write I/K, e.g. 3/8 for the third of eight parts")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PARTS))


def chunks_of(part: Part, live: Sequence[int]) -> tuple[int, ...]:
    """The chunks of a part, in plan order; ``live`` are all of the plan. Parts differ by one chunk at most."""
    return tuple(chunk for position, chunk in enumerate(live) if _owner(position, part.count) == part.number)


def _owner(position: int, count: int) -> int:
    """Number of the part that has the chunk at this position."""
    group, place = divmod(position, count)
    turn = xxhash.xxh3_64_intdigest(f"{group}/{count}".encode())
    return (place + turn) % count + 1
