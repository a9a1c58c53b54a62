"""``Lineage``: the plans that made a dataset, by their fingerprints: the first one, and each that extended it.

One fingerprint stands for a lineage of one, which is what every dataset has that was never extended. Chunk ids are unique
within a lineage, so journals and shards of all its plans are read together.
"""

from collections.abc import Iterable, Mapping

from .records import JournalHeader

Lineage = str | tuple[str, ...]


def plans_of(lineage: Lineage) -> tuple[str, ...]:
    """Its fingerprints, oldest first; the last is the plan that a run of it works on."""
    return (lineage,) if isinstance(lineage, str) else lineage


def lineage_of(fingerprint: str, headers: Iterable[JournalHeader]) -> tuple[str, ...]:
    """The lineage that ends with ``fingerprint``, as the headers of its journals tell it."""
    extends: Mapping[str, tuple[str, ...]] = {header.fingerprint: header.extends for header in headers}
    return (*extends.get(fingerprint, ()), fingerprint)
