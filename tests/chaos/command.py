"""``Command``: one run of the real ``prep svs`` as a process group of its own, watched by a clock."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .corpus import Corpus
from .processes import kill_all, marked, send, state, trackers_of, wait_gone, workers_of
from .slow_disk import CLIP_MS, HOOK, TALLY_FOLDER

ROOT = Path(__file__).parents[2]
PREP = Path(sys.executable).with_name("prep")
RUN_S = 240.0
"""Deadline of a run; one without faults takes some 15 s."""
ORPHANS_S = 10.0
"""How long workers may outlive their parent."""
STACKS_S = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a run writes what is not its dataset."""

    logs: Path
    """Standard output and error of every run."""
    tally: Path
    """One file a worker process, one byte a clip that it decoded."""
    clip_ms: float
    """How long a clip takes to be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a run ended."""

    exit_code: int
    hung: bool
    """It did not end by itself before the deadline."""
    orphans: int
    """Workers that outlived it."""
    log: Path
    """Its standard error; after a hang also the stacks of its threads."""
    output: str


class Command:
    """A started ``prep svs``."""

    def __init__(self, corpus: Corpus, output_dir: Path, workers: int, place: Place) -> None:
        self._mark = f"CHAOS_RUN={uuid.uuid4().hex}"
        name = f"{output_dir.name}-{len(list(place.logs.iterdir())) // 2:02d}"
        self.output_dir = output_dir
        self.log = place.logs / f"{name}.err"
        self._out = place.logs / f"{name}.out"
        options = ["--config", corpus.config_path, "--out", output_dir, "--device", "cpu", "--workers", str(workers)]
        self._process = subprocess.Popen(
            [PREP, "svs", *options, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=self._environment(place),
            cwd=place.logs,
        )
        # Through pipes: a limit on the size of files must not hit what the run says.
        self._copiers = [_copy(self._process.stderr, self.log), _copy(self._process.stdout, self._out)]
        self._deadline = time.monotonic() + RUN_S

    def _environment(self, place: Place) -> dict[str, str]:
        key, _, value = self._mark.partition("=")
        return {
            **os.environ,
            key: value,
            "PREP_TEST_DECODE_HOOK": HOOK,
            TALLY_FOLDER: str(place.tally),
            CLIP_MS: str(place.clip_ms),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
            "PYTHONFAULTHANDLER": "1",
            "TMPDIR": str(place.logs.parent),
        }

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def overdue(self) -> bool:
        return time.monotonic() > self._deadline

    def workers(self) -> list[int]:
        return workers_of(self.pid)

    def trackers(self) -> list[int]:
        return trackers_of(self.pid)

    def everyone(self) -> list[int]:
        """The parent and all that it has started."""
        return marked(self._mark)

    def signal_group(self, number: int) -> None:
        """As Ctrl-C and scancel do."""
        if self.running:
            os.killpg(self.pid, number)

    def finish(self) -> Ended:
        """Wait for its end. A run that hangs shows its stacks in the log, and is killed."""
        hung = False
        try:
            self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            hung = True
            self._dump_stacks()
        orphans = wait_gone(self._mark, ORPHANS_S)
        kill_all(orphans)
        code = self._process.wait()
        for copier in self._copiers:
            copier.join()
        return Ended(
            exit_code=code,
            hung=hung,
            orphans=0 if hung else len(orphans),
            log=self.log,
            output=self._out.read_text(encoding="utf-8"),
        )

    def _dump_stacks(self) -> None:
        """SIGABRT: faulthandler writes the stacks, of workers into the files that they keep for that."""
        pids = [*self.workers(), self.pid]
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"\nhangs; states {[state(pid) for pid in pids]}; stacks:\n")
        for pid in pids:
            send(pid, signal.SIGCONT)
            send(pid, signal.SIGABRT)
        time.sleep(STACKS_S)
        with self.log.open("a", encoding="utf-8") as log:
            for path in sorted(self.output_dir.glob(".prep/**/*stacks*")):
                if path.is_file() and (text := path.read_text(errors="replace")):
                    log.write(f"{path.name}:\n{text}\n")
        kill_all(self.everyone())


def verify(output_dir: Path) -> dict[str, int]:
    """The damage that ``prep verify`` finds in a finished folder, by code. Raises ValueError if it fails itself."""
    command = [PREP, "verify", "--json", output_dir]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    return json.loads(done.stdout)["counts"]


def _copy(source: IO[bytes] | None, target: Path) -> threading.Thread:
    assert source is not None
    file = target.open("wb", buffering=0)

    def copy() -> None:
        with source, file:
            shutil.copyfileobj(source, file, 1)

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread
