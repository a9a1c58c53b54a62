"""Kill, stop and damage real runs of ``prep svs`` at random moments, and see that not a row is lost, doubled or changed.

    python -m tests.chaos.chaos --faults 200 --seconds 1800 --seed 1        (make chaos)

A corpus of short clips is encoded once undisturbed. Then, round by round, it is encoded into a fresh folder by runs that
are disturbed: workers and parents killed, stopped, asked to end, the disk filled, files damaged (faults.py has all
kinds, watch.py the moments). Each round goes on until a run ends with exit code 0; its rows are then read back and
compared. Every second round writes to a small tmpfs, where that can be mounted, so that a full disk is a real one.

What is drawn depends on the seed alone; what it hits, on timing: a repetition is not the same run. Exit code 1 if any
promise was broken; logs and the folder of a broken round are then kept.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .command import Command, Place
from .corpus import Corpus, write_corpus
from .disk import open_disk
from .report import Report, RoundResult
from .round import Round
from .rows import Summary, parse_summary

FAULTS_A_ROUND = 22
"""Enough for some runs to be ended early, few enough for many fresh folders."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How much chaos."""

    clips: int = 2000
    faults: int = 200
    """Stop at the end of the round in which so many were injected."""
    seconds: float = 1800.0
    """Begin no round after so many."""
    seed: int = 1
    clip_ms: float = 50.0
    """How long the disk takes for a clip: a worker with two decode threads does 40 clips a second."""
    faults_a_round: int = FAULTS_A_ROUND
    tmpfs: bool = True
    """Try to mount one for every second round."""


def chaos(settings: Settings, folder: Path, say: Callable[[str], object] = print) -> Report:
    """Run in ``folder``, which is made and holds what a broken round left."""
    rng = random.Random(settings.seed)
    place = _make_place(folder, settings)
    corpus = write_corpus(folder / "corpus", settings.clips, settings.seed)
    undisturbed = _undisturbed(corpus, folder / "undisturbed", place)
    report = Report(clips=settings.clips, digest=undisturbed.digest)
    began = time.monotonic()
    while report.faults.total() < settings.faults and (report.seconds < settings.seconds or not report.rounds):
        number = len(report.rounds)
        left = min(settings.faults_a_round, settings.faults - report.faults.total())
        with open_disk(folder / f"disk{number}", tmpfs=settings.tmpfs and number % 2 == 1) as disk:
            round_ = Round(corpus, undisturbed, place, disk, f"round{number}", random.Random(rng.random()))
            report.rounds.append(round_.play(left))
            if round_.result.objections:
                shutil.copytree(disk.root / round_.name, folder / "broken" / round_.name)
        report.seconds = time.monotonic() - began
        say(_line(number, report.rounds[-1], disk.tmpfs, report))
    return report


def _make_place(folder: Path, settings: Settings) -> Place:
    place = Place(logs=folder / "logs", tally=folder / "tally", clip_ms=settings.clip_ms)
    place.logs.mkdir(parents=True)
    place.tally.mkdir()
    return place


def _undisturbed(corpus: Corpus, output_dir: Path, place: Place) -> Summary:
    """The run that all others are compared with: one worker, no delay, no fault."""
    ended = Command(corpus, output_dir, 1, replace(place, clip_ms=0.0)).finish()
    if ended.exit_code != 0:
        raise SystemExit(f"the undisturbed run ended with {ended.exit_code}:\n{ended.log.read_text()}")
    return parse_summary(ended.output)


def _line(number: int, result: RoundResult, tmpfs: bool, report: Report) -> str:
    disk = "tmpfs" if tmpfs else "disk"
    text = (
        f"{report.seconds:6.0f} s  round {number} on {disk}: {result.faults.total()} faults in {result.runs} runs,"
        f" lost {result.lost}, twice {result.twice}, committed again {result.committed_again}"
        f" (destroyed {result.destroyed}); faults so far {report.faults.total()}"
    )
    return "\n".join([text, *(f"  OBJECTION: {objection}" for objection in result.objections)])


def main() -> int:
    """Parse options, run, print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Settings()
    for name in ("clips", "faults", "seconds", "seed", "clip_ms"):
        value = getattr(defaults, name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value, help=f"default {value}")
    options = vars(parser.parse_args())
    folder = Path(tempfile.mkdtemp(prefix="prep-chaos-"))
    print(f"in {folder}: {options}", flush=True)
    report = chaos(Settings(**options), folder / "chaos", lambda line: print(line, flush=True))
    print(f"\n{report.text()}")
    if report.objections:
        print(f"\nlogs and broken rounds: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
