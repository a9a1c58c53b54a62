"""What has changed in the corpora since they were planned: read again, compared with the plan, shown or refused.

A file whose path, size or time is another is hashed, and counts as unchanged if its bytes are those of its row: so a
copied corpus is the same corpus, at the price of reading it once.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .audio.content import hash_audio
from .plan.clip_table import ClipTable
from .plan.compare import ClipState, Comparison, KnownClips, compare, is_relabelled
from .plan.plans import Plans
from .stored_facts import StoredFacts

HASH_THREADS = 32
"""As many as read headers: on a network disk a file costs latency first."""
NAMED = 3
"""Items that a message names of each kind."""


def known_clips(plan: Plans) -> KnownClips:
    """The clips of the stored plans, as the last one left them."""
    chunks = ((number, plan.chunk(number)) for number in plan.live)
    refused = ((clip.dataset_name, clip.item_name, clip.fault.code) for clip in plan.refused())
    return KnownClips.of(chunks, refused)


def find_changes(table: ClipTable, known: KnownClips, facts: StoredFacts) -> Comparison:
    """``compare``, and a look into every file that differs from outside and has a row to compare it with."""
    found = compare(table, known)
    touched = found.touched
    numbers = found.known[touched]
    same = _same_bytes(table, touched, known, numbers, facts)
    return found.settle(same, is_relabelled(table, touched, known, numbers))


def _same_bytes(
    table: ClipTable,
    touched: npt.NDArray[np.int64],
    known: KnownClips,
    numbers: npt.NDArray[np.int64],
    facts: StoredFacts,
) -> npt.NDArray[np.bool_]:
    if not len(touched):
        return np.zeros(0, np.bool_)
    expected = _hashes_then(known, numbers, facts)
    paths = table.gather(touched).column("audio_path").to_pylist()
    with ThreadPoolExecutor(HASH_THREADS, thread_name_prefix="hash") as pool:
        same = pool.map(lambda path, then: then is not None and hash_audio(path) == then, paths, expected)
        return np.fromiter(same, np.bool_, len(paths))


def _hashes_then(known: KnownClips, numbers: npt.NDArray[np.int64], facts: StoredFacts) -> list[str | None]:
    """Hash of the audio of each known clip of ``numbers``, as its row was made of; None without a row."""
    rows = np.bincount(known.chunk)
    by_chunk = {
        chunk: facts.audio_hashes(chunk, int(rows[chunk])) for chunk in np.unique(known.chunk[numbers]).tolist()
    }
    places = zip(known.chunk[numbers].tolist(), known.position[numbers].tolist(), strict=True)
    return [by_chunk[chunk][position] for chunk, position in places]


def changes_text(table: ClipTable, plan: Plans, known: KnownClips, found: Comparison) -> str:
    """The numbers, and some of the items that they stand for."""
    states = (("added", ClipState.NEW), ("annotation", ClipState.RELABELLED), ("audio", ClipState.TOUCHED))
    named = {what: _names_now(table, np.flatnonzero(found.state == state)) for what, state in states}
    named["gone"] = _names_then(plan, known, found.gone)
    lines = [f"    {what}: {names}" for what, names in named.items() if names]
    return "\n".join([found.text(), *lines])


def _names_now(table: ClipTable, positions: npt.NDArray[np.int64]) -> str:
    return _listing([table.gather(positions[:NAMED])] if len(positions) else [], len(positions))


def _names_then(plan: Plans, known: KnownClips, numbers: npt.NDArray[np.int64]) -> str:
    first = [(int(known.chunk[number]), int(known.position[number])) for number in numbers[:NAMED]]
    return _listing([plan.chunk(chunk).slice(position, 1) for chunk, position in first], len(numbers))


def _listing(clips: Sequence[pa.RecordBatch], count: int) -> str:
    names = [
        f"{dataset}/{item}"
        for batch in clips
        for dataset, item in zip(
            batch.column("dataset_name").to_pylist(), batch.column("item_name").to_pylist(), strict=True
        )
    ]
    return ", ".join(names) + (f" and {count - len(names):,} more" if count > len(names) else "")
