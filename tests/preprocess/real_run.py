"""``RealRun``: ``prep svs`` as a process of its own, that tests watch, signal and kill."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.config_file import resolved_yaml

PREP = Path(sys.executable).with_name("prep")
PATIENCE_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """A run that has ended."""

    code: int
    out: str
    err: str
    seconds: float
    """From its start."""

    @property
    def digest(self) -> str:
        """Of the dataset, by the summary."""
        return json.loads(self.out)["digest"]


class RealRun:
    """A started run. As a context manager it leaves no process behind."""

    def __init__(self, config: RunConfig, *options: object, env: Mapping[str, str] = {}, own_session: bool = True):
        self._folder = TemporaryDirectory(prefix="real-run-")  # not beside the output, where the disk may be full
        config_path = Path(self._folder.name) / "prep.yaml"
        config_path.write_text(resolved_yaml(config), encoding="utf-8")
        self.output_dir = config.output_dir
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [PREP, "svs", "--config", config_path, "--json", *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
            start_new_session=own_session,
        )

    def __enter__(self) -> "RealRun":
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def end(self, timeout: float = 120.0) -> Ended:
        """Wait for its end."""
        out, err = self._process.communicate(timeout=timeout)
        return Ended(code=self._process.returncode, out=out, err=err, seconds=time.monotonic() - self._began)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def send_to_group(self, number: signal.Signals) -> None:
        """As Ctrl-C and scancel do."""
        os.killpg(self.pid, number)

    def workers(self) -> list[int]:
        """Processes of its workers, living ones only."""
        return [pid for pid in children(self.pid) if "spawn_main" in command_line(pid)]

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """What it has reported so far."""
        return read_events(self.output_dir, kind)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for something to be seen while it runs."""
        wait_until(lambda: condition() or not self.running)
        assert condition(), f"it ended before: {self.end().err}"


def finished(config: RunConfig, *options: object, env: Mapping[str, str] = {}) -> Ended:
    """Run it to its end."""
    with RealRun(config, *options, env=env) as run:
        return run.end()


def read_events(output_dir: Path, kind: str = "") -> list[dict[str, Any]]:
    """Of all its parts."""
    paths = sorted((output_dir / ".prep").glob("events*.jsonl"))
    lines = [line for path in paths for line in path.read_bytes().split(b"\n")[:-1]]
    return [event for event in map(json.loads, lines) if not kind or event["event"] == kind]


def skipped(output_dir: Path) -> dict[str, str]:
    """Code by file name of every clip without a row."""
    lines = (output_dir / "skipped.jsonl").read_text().splitlines()
    return {Path(entry["path"]).name: entry["code"] for entry in map(json.loads, lines)}


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Its living children: zombies don't count."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split() if is_alive(int(child))]
        except OSError:
            continue
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
