"""``folder_based``: one folder a song. Songs are read in threads and handed out in the order of their names.

A root may hold hundreds of thousands of songs on a file system where every open waits for a server, so groups of songs
are read in parallel: one future a song costs more than it hides, and a bounded window of groups keeps memory flat.
"""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from ...core.errors import CorpusError
from ..config import FolderCorpus, ScoreSettings
from .outcome import Outcome
from .song_folder import BrokenMetadata, read_song

THREADS = 16
"""Waits that overlap. Parsing holds the interpreter's lock, so on a local disk more threads gain nothing."""
GROUP_SONGS = 32
WINDOW_GROUPS = 4 * THREADS
"""Groups under way or finished and not yet handed out: about 2,000 songs."""
MAX_NAMED = 20
"""Broken files that one error lists."""


@dataclass(frozen=True, slots=True)
class _Group:
    items: list[Outcome]
    broken: list[str]


def read_folder_based(corpus: FolderCorpus, score: ScoreSettings) -> Iterator[Outcome]:
    """Clips of a ``folder_based`` corpus, songs by name, segments as annotated.

    Raises CorpusError after the last song if any metadata.json is not a JSON object, so that one run names them all.
    """
    broken: list[str] = []
    for group in _groups(corpus, score):
        yield from group.items
        broken.extend(group.broken)
    if broken:
        raise _broken_error(corpus, broken)


def song_folders(root: str) -> list[str]:
    """Names of the folders below ``root``, sorted; hidden ones and leftovers of archives are none."""
    with os.scandir(root) as entries:
        return sorted(
            entry.name for entry in entries if not entry.name.startswith((".", "__MACOSX")) and entry.is_dir()
        )


def _groups(corpus: FolderCorpus, score: ScoreSettings) -> Iterator[_Group]:
    names = song_folders(str(corpus.dataset_root))
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="songs")
    waiting: deque[Future[_Group]] = deque()
    try:
        for start in range(0, len(names), GROUP_SONGS):
            waiting.append(pool.submit(_read_group, corpus, names[start : start + GROUP_SONGS], score))
            if len(waiting) >= WINDOW_GROUPS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _read_group(corpus: FolderCorpus, names: list[str], score: ScoreSettings) -> _Group:
    group = _Group([], [])
    for name in names:
        try:
            group.items.extend(read_song(corpus, name, score))
        except BrokenMetadata as error:
            group.broken.append(str(error))
    return group


def _broken_error(corpus: FolderCorpus, broken: list[str]) -> CorpusError:
    lines = [f"  {line}" for line in broken[:MAX_NAMED]]
    if len(broken) > MAX_NAMED:
        lines.append(f"  and {len(broken) - MAX_NAMED} more")
    files = "1 metadata.json" if len(broken) == 1 else f"{len(broken)} metadata.json"
    return CorpusError(
        "\n".join([f"corpus {corpus.name!r}: {files} can't be read as a JSON object", *lines]),
        why="all segments of these songs would be missing",
        fix="correct or export them again, or move the song folders out of dataset_root",
    )
