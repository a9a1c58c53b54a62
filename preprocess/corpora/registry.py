"""Every kind of corpus and its reader; and ``read_corpora``, all items of a run in one fixed order.

A reader yields its own items; what concerns all of them is here: duplicates, the limit on clips, empty corpora.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import CorpusError, FaultCode
from ..config import Corpus, FolderCorpus, RunConfig
from ..events import CorpusRead, EventSink, Reading
from .clip import Clip, RefusedClip
from .folder_based import read_folder_based
from .json_file import read_json_file
from .name_set import NameSet
from .outcome import Outcome, Reader, fault
from .weak_json_file import read_weak_json_file

READERS: dict[str, Reader] = {
    "json_file": read_json_file,
    "folder_based": read_folder_based,
    "weak_json_file": read_weak_json_file,
}


def read_corpora(config: RunConfig, on_event: EventSink) -> Iterator[Outcome]:
    """All items in the order of the configuration, the corpora's own order within; the same on every run.

    ``max_samples`` ends it after that many clips; refused items don't count.

    Raises CorpusError at once if a file or folder of any corpus is missing, and while reading if an annotation file is
    not what it is declared to be or a corpus has no clip.
    """
    check_sources(config.datasets)
    return _read_all(config, on_event)


def check_sources(corpora: tuple[Corpus, ...]) -> None:
    """Raise CorpusError that names every annotation file and folder that isn't there."""
    missing = [line for corpus in corpora for line in _missing(corpus)]
    if missing:
        here = f"relative paths start at the current folder, {Path.cwd()}"
        raise CorpusError("\n".join(missing), fix=f"correct the configuration; {here}")


def _missing(corpus: Corpus) -> Iterator[str]:
    if isinstance(corpus, FolderCorpus):
        folders = {"dataset_root": corpus.dataset_root}
    else:
        folders = {"audio_root": corpus.audio_root}
        if not corpus.json_path.is_file():
            yield f"corpus {corpus.name!r}: json_path {str(corpus.json_path)!r} is no file"
    for key, path in folders.items():
        if not path.is_dir():
            yield f"corpus {corpus.name!r}: {key} {str(path)!r} is no folder"


@dataclass(slots=True)
class _Tally:
    """What has come of one corpus so far."""

    names: NameSet = field(default_factory=NameSet)
    """Of all items."""
    clips: int = 0
    refused: Counter[FaultCode] = field(default_factory=Counter)
    first_refused: RefusedClip | None = None

    def take(self, item: Outcome) -> Outcome:
        """Count an item. The second of a name is refused, whatever the first became."""
        if not self.names.add(item.item_name):
            item = _duplicate(item)
        if isinstance(item, Clip):
            self.clips += 1
        else:
            self.refused[item.fault.code] += 1
            self.first_refused = self.first_refused or item
        return item


def _duplicate(item: Outcome) -> RefusedClip:
    return RefusedClip(
        dataset_name=item.dataset_name,
        item_name=item.item_name,
        audio_path=item.audio_path,
        fault=fault(FaultCode.DUPLICATE_ITEM, "an item of this name came before in the same corpus"),
    )


def _read_all(config: RunConfig, on_event: EventSink) -> Iterator[Outcome]:
    left = config.max_samples
    for corpus in config.datasets:
        if left == 0:
            return
        on_event(Reading(corpus.name))
        tally = _Tally()
        for item in READERS[corpus.type](corpus, config.score):
            yield tally.take(item)
            if tally.clips == left:
                break
        on_event(CorpusRead(corpus.name, tally.clips, tally.refused.total()))
        if tally.clips == 0:
            raise _no_clip(corpus, tally)
        left = None if left is None else left - tally.clips


def _no_clip(corpus: Corpus, tally: _Tally) -> CorpusError:
    source = corpus.dataset_root if isinstance(corpus, FolderCorpus) else corpus.json_path
    if tally.first_refused is None:
        fix = "point dataset_root at the folder that holds the song folders" if isinstance(corpus, FolderCorpus) else ""
        return CorpusError(f"corpus {corpus.name!r}: no items in {source}", fix=fix)
    codes = ", ".join(f"{count} {code}" for code, count in tally.refused.most_common())
    first = tally.first_refused
    return CorpusError(
        f"corpus {corpus.name!r}: none of the {tally.refused.total()} items of {source} can be used ({codes})",
        why=f"the first, {first.item_name}: {first.fault.message}",
    )
