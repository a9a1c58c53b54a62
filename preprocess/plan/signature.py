"""Whether corpora changed since they were read, told from the file system alone.

A corpus' signature is a hash over (path, size, mtime) of its annotation files and, for song folders, over the folders'
own times, which change when an entry comes or goes. Audio files are not looked at: a file that was changed in place is
noticed when it is opened (its size and time stand in the plan). 10,000 song folders take about 0.5 s on a local disk,
where reading them again takes minutes.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash

from ..config import Corpus, FolderCorpus, RunConfig
from ..corpora.folder_based import song_folders


@dataclass(frozen=True, slots=True)
class CorpusSignature:
    """One corpus as it lies on disk."""

    name: str
    num_files: int
    """Annotation files and song folders."""
    digest: str


@dataclass(frozen=True, slots=True)
class CorporaSignature:
    """All corpora of a run, in its order. Two runs may share a plan if these are equal."""

    parts: tuple[CorpusSignature, ...]

    def to_json(self) -> str:
        return json.dumps([[part.name, part.num_files, part.digest] for part in self.parts], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "CorporaSignature":
        return cls(tuple(CorpusSignature(name, count, digest) for name, count, digest in json.loads(text)))


def corpora_signature(config: RunConfig) -> CorporaSignature:
    """Look at the corpora of a run. A missing file is a value like any other: the reader will name it."""
    return CorporaSignature(tuple(_signature(corpus) for corpus in config.datasets))


def changed_corpora(old: CorporaSignature, new: CorporaSignature) -> list[str]:
    """One line for each corpus that is not as it was. Both list the same corpora: their identity is checked first."""
    pairs = zip(old.parts, new.parts, strict=True)
    return [f"corpus {after.name}: {_change(before, after)}" for before, after in pairs if before != after]


def _change(before: CorpusSignature, after: CorpusSignature) -> str:
    if before.num_files == after.num_files:
        return "an annotation file or song folder has another size or time"
    return f"{before.num_files} annotation files and song folders before, {after.num_files} now"


def _signature(corpus: Corpus) -> CorpusSignature:
    digest, count = xxhash.xxh3_128(), 0
    for line in _folder_facts(corpus.dataset_root) if isinstance(corpus, FolderCorpus) else [_fact(corpus.json_path)]:
        digest.update(os.fsencode(line + "\n"))
        count += 1
    return CorpusSignature(corpus.name, count, digest.hexdigest())


def _folder_facts(root: Path) -> Iterator[str]:
    """Facts of ``root``, of the song folders in it and of the JSON files in those, sorted by path."""
    yield _fact(root)
    for song in _names(root, song_folders):
        folder = root / song
        yield _fact(folder)
        yield from (_fact(folder / name) for name in sorted(_names(folder, os.listdir)) if name.endswith(".json"))


def _names(folder: Path, listed: Callable[[str], list[str]]) -> list[str]:
    """What ``listed`` finds there; nothing if the folder can't be opened."""
    try:
        return listed(str(folder))
    except OSError:
        return []


def _fact(path: Path) -> str:
    try:
        facts = path.stat()
    except OSError as error:
        return f"{path}\t{error.errno}"
    size = -1 if path.is_dir() else facts.st_size
    return f"{path}\t{size}\t{facts.st_mtime_ns}"
