"""What a chaos run found: counts of faults, of lost and doubled rows, of work done twice; and its text."""

from collections import Counter
from dataclasses import dataclass, field

from .corpus import CHUNK_ROWS
from .faults import DAMAGE, ENDING, LIVE_DAMAGE, SURVIVED, Fault

MAX_IN_FLIGHT = 6
"""Chunks that a worker may hold at its death: two begun by its decode threads, one that waits for room before the write
thread, two in its queue, one on its way to the disk."""


@dataclass(slots=True)
class RoundResult:
    """One output folder, from the first run to exit code 0."""

    faults: Counter[Fault] = field(default_factory=Counter)
    moments: Counter[str] = field(default_factory=Counter)
    exit_codes: Counter[int] = field(default_factory=Counter)
    runs: int = 0
    incarnations: int = 0
    """Workers that became ready."""
    chunks: int = 0
    rows: int = 0
    lost: int = 0
    twice: int = 0
    other_digest: int = 0
    """1 if its digest is not that of the undisturbed run."""
    committed_again: int = 0
    """Commits of chunks that had been committed before."""
    destroyed: int = 0
    """Committed blocks that a fault destroyed."""
    decoded_again: int = 0
    """Clips decoded more than once, counted each time."""
    objections: list[str] = field(default_factory=list)

    @property
    def may_be_committed_again(self) -> int:
        return self.destroyed

    @property
    def may_be_decoded_again(self) -> int:
        """Clips: those of the chunks in flight at the end of each worker, and those of destroyed blocks."""
        return (self.incarnations * MAX_IN_FLIGHT + self.destroyed) * CHUNK_ROWS


@dataclass(slots=True)
class Report:
    """All rounds."""

    clips: int
    digest: str
    """Of the undisturbed run."""
    rounds: list[RoundResult] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def faults(self) -> Counter[Fault]:
        return sum((result.faults for result in self.rounds), Counter())

    @property
    def objections(self) -> list[str]:
        """Everything that must not be; empty if all promises were kept."""
        return [f"round {number}: {text}" for number, result in enumerate(self.rounds) for text in result.objections]

    def total(self, name: str) -> int:
        return sum(getattr(result, name) for result in self.rounds)

    def text(self) -> str:
        """The report, for people."""
        return "\n".join([*self._faults(), "", *self._ends(), "", *self._rows(), "", *self._twice()])

    def _faults(self) -> list[str]:
        faults = self.faults
        lines = [f"{faults.total()} faults in {self.seconds:.0f} s, {len(self.rounds)} rounds of {self.clips} clips"]
        groups = {
            "the run goes on": [fault for fault in SURVIVED if fault not in LIVE_DAMAGE],
            "the run ends": list(ENDING),
            "files damaged under a run": list(LIVE_DAMAGE & SURVIVED.keys()),
            "files damaged between runs": list(DAMAGE),
        }
        for name, kinds in groups.items():
            lines += ["", f"  {name}", *(f"  {faults[kind]:6d}  {kind}" for kind in sorted(kinds))]
        moments = sum((result.moments for result in self.rounds), Counter())
        lines += [
            "",
            "  moments of faults in a run",
            *(f"  {count:6d}  {name}" for name, count in moments.most_common()),
        ]
        return lines

    def _ends(self) -> list[str]:
        codes = sum((result.exit_codes for result in self.rounds), Counter())
        ends = ", ".join(f"{code} ({count})" for code, count in sorted(codes.items()))
        return [f"runs {self.total('runs')}, workers that became ready {self.total('incarnations')}; exit codes {ends}"]

    def _rows(self) -> list[str]:
        equal = len(self.rounds) - self.total("other_digest")
        return [
            f"rows lost     {self.total('lost')}",
            f"rows twice    {self.total('twice')}",
            f"digest equal  {equal} of {len(self.rounds)} rounds ({self.digest})",
            f"objections    {len(self.objections)}",
            *(f"  {text}" for text in self.objections),
        ]

    def _twice(self) -> list[str]:
        chunks = self.total("chunks")
        again, workers = self.total("decoded_again"), self.total("incarnations")
        return [
            f"committed again  {self.total('committed_again')} chunks of {chunks};"
            f" faults destroyed {self.total('destroyed')} committed blocks",
            f"decoded again    {again} clips of {self.total('rows')}: {again / CHUNK_ROWS / max(1, workers):.1f} chunks"
            f" for each of {workers} workers (a worker holds at most {MAX_IN_FLIGHT})",
        ]
