"""``Round``: one output folder. The command is given again and again, disturbed each time, until it ends with 0."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from latentprep.core.paths import OutputPaths

from .books import Books, tallied
from .command import Command, Ended, Place, verify
from .corpus import Corpus
from .disk import Disk
from .faults import DAMAGE, ENDING, LIVE_DAMAGE, SURVIVED, Fault, Injector, damage
from .report import RoundResult
from .rows import Summary, parse_summary, read_rows
from .verdict import objection
from .watch import Moment, Watch

MAX_RUNS = 60
"""A round that does not end in so many runs makes no headway."""
MAX_WORKERS = 3
MAX_SURVIVED = 6
"""Faults of one run that it has to get over, at most."""
MAX_DAMAGE = 3
"""Damaged files between two runs, at most."""
QUIET = 0.1
"""Share of runs that nothing ends early."""
MOMENTS = {Moment.LOADING: 1.0, Moment.ANY: 4.0, Moment.COMMIT: 3.0, Moment.ROTATION: 1.5, Moment.END: 0.5}
"""How often each moment is drawn for a fault of a run."""
EARLY = 0.15
"""Share of runs whose first fault comes while the parent starts."""
LEFT_ALONE = {"shard_extra"}
"""A shard whose journal was destroyed is encoded again, and its file stays beside the dataset: nobody vouches for it."""

Drawn = TypeVar("Drawn")


@dataclass(slots=True)
class Round:
    """State of one round; ``play`` is what is called."""

    corpus: Corpus
    undisturbed: Summary
    place: Place
    disk: Disk
    name: str
    rng: random.Random
    result: RoundResult = field(default_factory=RoundResult)

    def play(self, max_faults: int) -> RoundResult:
        """Run until done, with at most about ``max_faults`` faults, then compare with the undisturbed run."""
        paths = OutputPaths(self.disk.root / self.name)
        books, before = Books(paths), tallied(self.place.tally)
        while self.result.runs < MAX_RUNS:
            disturbed = self.result.faults.total() < max_faults
            ended, faults = self._run(paths, disturbed=disturbed)
            self.disk.free()
            self._judge(ended, faults)
            gone = books.look(damaged=bool(faults.keys() & LIVE_DAMAGE))
            if gone and not faults.keys() & LIVE_DAMAGE:
                self.result.objections.append(f"committed and gone after {ended.log.name}: chunks {gone}")
            if ended.exit_code == 0:
                self._compare(paths, parse_summary(ended.output))
                break
            if disturbed and self._damage(paths):
                books.look(damaged=True)
        else:
            self.result.objections.append(f"not done after {MAX_RUNS} runs")
        self._account(books, tallied(self.place.tally) - before)
        return self.result

    def _run(self, paths: OutputPaths, *, disturbed: bool) -> tuple[Ended, Counter[Fault]]:
        command = Command(self.corpus, paths.root, self.rng.randint(1, MAX_WORKERS), self.place)
        self.result.runs += 1
        injected: Counter[Fault] = Counter()
        if disturbed:
            injector = Injector(command, Watch(command, self.rng), self.disk, self.rng)
            for moment, fault in self._script():
                if not injector.watch.wait(moment):
                    break
                if injector.inject(fault):
                    injected[fault] += 1
                    self.result.moments[moment] += 1
        ended = command.finish()
        self.result.faults += injected
        self.result.exit_codes[ended.exit_code] += 1
        return ended, injected

    def _script(self) -> list[tuple[Moment, Fault]]:
        """Faults of one run in order, each with its moment."""
        faults = [self._draw(SURVIVED) for _ in range(self.rng.randint(1, MAX_SURVIVED))]
        if self.rng.random() >= QUIET:
            faults.append(self._draw(ENDING))
        moments = [self._draw(MOMENTS) for _ in faults]
        if self.rng.random() < EARLY:
            moments[:1], faults = [Moment.START][: len(moments)], faults[-1:] + faults[1:]
        return list(zip(moments, faults, strict=True))

    def _draw(self, weights: Mapping[Drawn, float]) -> Drawn:
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def _judge(self, ended: Ended, faults: Counter[Fault]) -> None:
        log = ended.log.read_text(encoding="utf-8", errors="replace")
        if (text := objection(ended, faults, log)) is not None:
            injected = ", ".join(f"{fault} x{count}" for fault, count in faults.items())
            self.result.objections.append(f"{ended.log.name}: {text}; faults: {injected or 'none'}\n{log[-6000:]}")

    def _damage(self, paths: OutputPaths) -> int:
        """Damage some files of a folder that no run works in; returns how many."""
        kinds = [self._draw(DAMAGE) for _ in range(self.rng.randint(0, MAX_DAMAGE))]
        done = [kind for kind in kinds if damage(kind, paths.root, self.rng)]
        self.result.faults.update(done)
        return len(done)

    def _compare(self, paths: OutputPaths, summary: Summary) -> None:
        rows = read_rows(paths.root, self.corpus.items)
        self.result.lost, self.result.twice = len(rows.lost), len(rows.twice)
        self.result.rows, self.result.chunks = summary.written, summary.num_chunks
        if summary != self.undisturbed:
            self.result.objections.append(f"summary {summary}, undisturbed {self.undisturbed}")
        if rows.digest != self.undisturbed.digest:
            self.result.other_digest = 1
            self.result.objections.append(f"digest of the rows {rows.digest}, undisturbed {self.undisturbed.digest}")
        if rows.lost or rows.twice:
            self.result.objections.append(f"lost {rows.lost[:5]}, twice {rows.twice[:5]}")
        if found := verify(paths.root).keys() - LEFT_ALONE:
            self.result.objections.append(f"prep verify finds {sorted(found)}")
        if left := [path.name for path in paths.open_dir.glob("*")]:
            self.result.objections.append(f"left in .prep/open: {left}")

    def _account(self, books: Books, decoded: int) -> None:
        commits, result = books.commits, self.result
        result.incarnations = books.incarnations
        result.committed_again = commits.total() - len(commits)
        result.destroyed = books.destroyed.total()
        result.decoded_again = decoded - result.rows
        unexplained = [chunk for chunk, count in commits.items() if count > 1 + books.destroyed[chunk]]
        if unexplained:
            result.objections.append(f"committed again without need: chunks {sorted(unexplained)}")
        if result.decoded_again > result.may_be_decoded_again:
            result.objections.append(
                f"{result.decoded_again} clips decoded again, at most {result.may_be_decoded_again}"
            )
