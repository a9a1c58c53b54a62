"""The only place that knows what the files of an output folder are called.

OUT/
  data-r0-00000.arrow      finished shards: rank, number
  state.json  dataset_info.json  index.arrow  skipped.jsonl  provenance.json  README.md  report.html
  .prep/
    plan.arrow             the plan of the run; plan-2.arrow, ...: those that extended the dataset
    headers.bin            what audio headers said, so that a second scan opens no audio file
    plan.arrow.xxh3        its checksum
    journal/r0-<run>.jsonl one file per worker incarnation
    open/                  shards being written
    leftover/              shards of this dataset that no journal speaks of; nothing reads them
    events.jsonl           what the parent reported; events-<i>-of-<k>.jsonl: that of part i of k
    lock-<i>-of-<k>        who works on which part of the plan; a whole run is part 1 of 1
    ready-<run>            the tasks of one allocation may begin with their parts
    worker-r0-<run>.log    what a worker's libraries wrote to stderr; stacks-r0-<run>.txt: its threads at a crash or stall
"""

import re
from dataclasses import dataclass
from pathlib import Path

_SHARD = re.compile(r"data-r(\d+)-(\d{5,})\.arrow")
_LOCK = re.compile(r"lock-([1-9]\d*)-of-([1-9]\d*)")
_OPEN_SHARD = re.compile(r"(data-r\d+-\d{5,}\.arrow)\.([A-Za-z0-9_-]+)\.part")


@dataclass(frozen=True, order=True, slots=True)
class Part:
    """Part ``number`` (from 1) of ``count`` parts of a plan: what one task of a cluster does."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number} of {self.count}"

    @property
    def name(self) -> str:
        """For file names."""
        return f"{self.number}-of-{self.count}"


WHOLE = Part(1, 1)
"""What a run on a single machine does."""


def shard_name(rank: int, number: int) -> str:
    """File name of a finished shard."""
    return f"data-r{rank}-{number:05d}.arrow"


def parse_shard_name(name: str) -> tuple[int, int] | None:
    """(rank, number) of a shard's file name, or None if ``name`` is not one."""
    match = _SHARD.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def parse_open_shard_name(name: str) -> tuple[int, int, str] | None:
    """(rank, number, run id) of the name of a shard that is being written, or None if ``name`` is not one."""
    match = _OPEN_SHARD.fullmatch(name)
    shard = parse_shard_name(match[1]) if match else None
    return (*shard, match[2]) if match and shard else None


def parse_lock_name(name: str) -> Part | None:
    """The part whose lock has this file name, or None if ``name`` is not one."""
    match = _LOCK.fullmatch(name)
    return Part(int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class OutputPaths:
    """Paths below one output folder."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def dataset_info(self) -> Path:
        return self.root / "dataset_info.json"

    @property
    def index(self) -> Path:
        return self.root / "index.arrow"

    @property
    def skipped(self) -> Path:
        return self.root / "skipped.jsonl"

    @property
    def provenance(self) -> Path:
        return self.root / "provenance.json"

    @property
    def card(self) -> Path:
        return self.root / "README.md"

    @property
    def work(self) -> Path:
        return self.root / ".prep"

    @property
    def plan(self) -> Path:
        return self.work / "plan.arrow"

    def extended_plan(self, number: int) -> Path:
        """The ``number``-th plan of the dataset, counted from 1."""
        return self.plan if number == 1 else self.work / f"plan-{number}.arrow"

    @property
    def headers(self) -> Path:
        return self.work / "headers.bin"

    def reuse_index(self, part: Part = WHOLE) -> Path:
        return self.work / f"reuse-{part.name}.arrow"

    @property
    def journal_dir(self) -> Path:
        return self.work / "journal"

    @property
    def open_dir(self) -> Path:
        return self.work / "open"

    @property
    def leftover_dir(self) -> Path:
        return self.work / "leftover"

    def events(self, part: Part = WHOLE) -> Path:
        """What the parent of a part reported, over all its runs."""
        return self.work / ("events.jsonl" if part == WHOLE else f"events-{part.name}.jsonl")

    def ready(self, run: str) -> Path:
        """There when the tasks of one allocation may begin with their parts; ``run`` names the allocation."""
        return self.work / f"ready-{run}"

    def shard(self, rank: int, number: int) -> Path:
        """Final path of a shard."""
        return self.root / shard_name(rank, number)

    def open_shard(self, rank: int, number: int, run_id: str) -> Path:
        """Path of a shard that is being written; unique to rank, number and run."""
        return self.open_dir / f"{shard_name(rank, number)}.{run_id}.part"

    def journal(self, rank: int, run_id: str) -> Path:
        """Journal of one worker incarnation; ``run_id`` is unique to it."""
        return self.journal_dir / f"r{rank}-{run_id}.jsonl"

    def worker_log(self, rank: int, run_id: str) -> Path:
        """Standard error of one worker incarnation; deleted when empty."""
        return self.work / f"worker-r{rank}-{run_id}.log"

    def worker_stacks(self, rank: int, run_id: str) -> Path:
        """Stacks of one worker incarnation at a crash or a stall; deleted when empty."""
        return self.work / f"stacks-r{rank}-{run_id}.txt"

    def lock(self, part: Part = WHOLE) -> Path:
        """Lock of one part of the plan."""
        return self.work / f"lock-{part.name}"
