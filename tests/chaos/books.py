"""``Books``: an account of what was committed, kept beside the runs, so that no fault can falsify it.

After every run and every damage the journals are read and what is new is entered. So it is known which chunks were
committed more than once, which ones a fault destroyed, and whether a run lost a block without any such fault.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from latentprep.core.paths import OutputPaths
from latentprep.preprocess.plan.plan import Plan
from latentprep.writers.journal import JournalFile, read_journal
from latentprep.writers.ledger import OpenShard, read_journals
from latentprep.writers.repair import read_good_block

Line = tuple[str, int, int | None, int]
"""(journal's name, chunk, shard's number, offset): one commit of one chunk by a worker."""


@dataclass(slots=True)
class Books:
    """Of one output folder."""

    paths: OutputPaths
    lines: set[Line] = field(default_factory=set)
    """Every commit ever seen."""
    kept: frozenset[int] = frozenset()
    """Chunks that a resume would not do again, as of the last look."""
    destroyed: Counter[int] = field(default_factory=Counter)
    """Chunk -> how often a fault destroyed its block."""

    def look(self, *, damaged: bool) -> list[int]:
        """Enter what is new; returns chunks that were committed and are gone.

        With ``damaged`` a fault may have destroyed blocks since the last look: they are entered as destroyed.
        """
        new = set(self._worker_lines()) - self.lines
        self.lines |= new
        before, self.kept = self.kept | {chunk for _, chunk, _, _ in new}, kept_chunks(self.paths)
        gone = sorted(before - self.kept)
        if damaged:
            self.destroyed.update(gone)
        return gone

    @property
    def commits(self) -> Counter[int]:
        """How often each chunk was committed."""
        return Counter(chunk for _, chunk, _, _ in self.lines)

    @property
    def incarnations(self) -> int:
        """Workers that came to write a journal."""
        return len(list(self.paths.journal_dir.glob("r*.jsonl")))

    def _worker_lines(self) -> Iterator[Line]:
        for path in self.paths.journal_dir.glob("*.jsonl"):
            file = read_journal(path)
            if not _is_salvage(file):
                yield from ((path.name, block.chunk, block.number, block.offset) for block in file.blocks)


def _is_salvage(file: JournalFile) -> bool:
    return file.header is not None and file.header.salvage


def kept_chunks(paths: OutputPaths) -> frozenset[int]:
    """Chunks whose rows are on disk and in a readable line: what the next run will find."""
    if not paths.plan.exists():
        return frozenset()
    journal = read_journals(paths, Plan.open(paths.plan).fingerprint)
    in_open = (chunk for shard in journal.open for chunk in _good_chunks(shard))
    return frozenset(journal.done) | frozenset(in_open)


def _good_chunks(shard: OpenShard) -> Iterator[int]:
    with open(shard.path, "rb") as file:
        for record in shard.records:
            if read_good_block(file.fileno(), record) is not None:
                yield record.chunk


def tallied(folder: Path) -> int:
    """Clips that all workers have begun to decode."""
    return sum(path.stat().st_size for path in folder.iterdir())
