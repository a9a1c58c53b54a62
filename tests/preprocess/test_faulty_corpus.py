"""Every audio fault in one corpus, through the real command: docs/audio-faults.md says what must come of it."""

import ctypes
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from latentprep import run
from latentprep.core.errors import FaultCode
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.config_file import resolved_yaml
from latentprep.preprocess.rows.facts import decode_facts
from latentprep.writers.block import block_metadata

from .faulty_corpus import KINDS, MAX_DURATION, NUM_GOOD, change_after_the_plan, write_faulty_corpus

PAGE = Path(__file__).parents[2] / "docs" / "audio-faults.md"

Outcome = tuple[str, str, tuple[str, ...]]
"""(row or skip, stage, codes); a row has no stage."""


def table(heading: str, columns: int) -> dict[tuple[str, ...], Outcome]:
    """A table of the page: its first columns -> outcome, stage and codes."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"][2:]
    return {
        tuple(cell.strip("`") for cell in row[:columns]): (
            row[columns],
            row[columns + 1],
            tuple(re.findall(r"`(\w+)`", row[columns + 2])),
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class FaultyRun:
    """What the command did."""

    output_dir: Path
    planned: subprocess.CompletedProcess[str]
    done: subprocess.CompletedProcess[str]

    def outcomes(self) -> dict[str, Outcome]:
        return outcomes(self.output_dir)


def outcomes(output_dir: Path) -> dict[str, Outcome]:
    """By item. An item that comes twice is an error."""
    lines = [json.loads(line) for line in (output_dir / "skipped.jsonl").read_text().splitlines()]
    found: list[tuple[str, Outcome]] = [(line["item"], ("skip", line["stage"], (line["code"],))) for line in lines]
    found += [(item, ("row", "", warnings)) for item, warnings in rows_of(output_dir)]
    assert len(found) == len(dict(found))
    return dict(found)


def rows_of(output_dir: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Item and warnings of each row, as its block has them."""
    for shard in output_dir.glob("data-*.arrow"):
        for batch, metadata in pa.ipc.open_stream(shard.read_bytes()).iter_batches_with_custom_metadata():
            warnings = decode_facts(block_metadata(metadata).facts)["warnings"].to_pylist()
            yield from zip(batch["item_name"].to_pylist(), map(tuple, warnings), strict=True)


def config_of(root: Path, output_dir: Path, **audio: object) -> RunConfig:
    corpus = {"json_path": root / "annotations.json", "audio_root": root / "audio"}
    return RunConfig.model_validate(
        {
            "datasets": [{"name": "faulty", "type": "json_file", **corpus}],
            "encoder": {"name": "dummy"},
            "output_dir": output_dir,
            "device": "cpu",
            "workers": 2,
            "audio": {"max_duration": MAX_DURATION, **audio},
        }
    )


def obey_permissions() -> None:
    """Root reads everything: take the two capabilities for that from the command, as if somebody else had called it."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP; without root it fails, and isn't needed


def prep_svs(config_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("prep"), "svs", "--config", config_path, *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, preexec_fn=obey_permissions
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("faulty")
    write_faulty_corpus(root)
    return root


@pytest.fixture(scope="module")
def faulty_run(corpus: Path) -> FaultyRun:
    """The command, planned in one call and done in another, with two files changed in between."""
    (corpus / "prep.yaml").write_text(resolved_yaml(config_of(corpus, corpus / "out")))
    planned = prep_svs(corpus / "prep.yaml", "--dry-run")
    change_after_the_plan(corpus)
    return FaultyRun(corpus / "out", planned, prep_svs(corpus / "prep.yaml"))


def test_the_good_clips_are_rows_and_each_fault_has_the_outcome_that_the_page_promises(faulty_run: FaultyRun):
    """A fault costs its own row, and says why by a code that a script can count."""
    expected = {kind: outcome for (kind,), outcome in table("What happens to each", 1).items()}
    expected |= {f"good {i:02}": ("row", "", ()) for i in range(NUM_GOOD)}

    assert 0 == faulty_run.done.returncode, faulty_run.done.stderr
    assert expected == faulty_run.outcomes()


def test_the_page_has_every_kind_and_every_code():
    """A builder without a line, or a code without a builder, would be a promise that nobody made or nobody keeps."""
    lines = table("What happens to each", 1) | table("With other settings", 2)
    codes = [*FaultCode]
    of_audio = codes[codes.index(FaultCode.MISSING_AUDIO) : codes.index(FaultCode.DECODE_TIMEOUT)]

    assert {(kind,) for kind in KINDS} == {names for names in lines if len(names) == 1}
    assert {*map(str, of_audio)} == {code for kind, _, codes in lines.values() if kind == "skip" for code in codes}
    others = PAGE.read_text(encoding="utf-8").partition("## What is not a matter")[2]
    assert ["decode_timeout", "poison", "no_memory"] == re.findall(r"^- `(\w+)`", others, re.MULTILINE)


def test_the_terminal_shows_counts_and_nothing_else(faulty_run: FaultyRun):
    """A thousand bad files must not push the one line out of sight that matters; nor may C libraries draw over the bar."""
    planned, done = faulty_run.planned, faulty_run.done
    skipped = sum(kind == "skip" for kind, _, _ in faulty_run.outcomes().values())
    total = NUM_GOOD + len(KINDS)

    assert f"planned {total} = written {total - skipped} + skipped {skipped} + remaining 0" in done.stdout
    for text in (planned.stderr, done.stderr):
        lines = text.splitlines()
        assert [] == [line for line in lines if not line.startswith("prep: ")]
        assert len(set(lines)) == len(lines)
    for word in ("Traceback", "Error", "Xing", "libmpg123", "resync"):
        assert word not in planned.stderr + done.stderr + done.stdout


def test_what_libraries_print_is_kept_in_a_workers_log(faulty_run: FaultyRun):
    """And a log that nothing was written to is gone, with the file for stacks."""
    work = faulty_run.output_dir / ".prep"
    logs = [path.read_text() for path in work.glob("worker-*.log")]

    assert any("resync" in text for text in logs)
    assert "" not in logs
    assert [] == list(work.glob("stacks-*"))


def test_links_can_be_forbidden_and_other_folders_allowed(corpus: Path, faulty_run: FaultyRun):
    """Two settings decide what an annotation file may reach."""
    config = config_of(corpus, corpus / "out2", allow_symlinks=False, allow_outside_root=True)
    settings = {"audio.allow_symlinks: false", "audio.allow_outside_root: true"}
    expected = table("With other settings", 2)

    run(config)
    found = outcomes(corpus / "out2")

    assert settings == {setting for _, setting in expected}
    assert {kind: outcome for (kind, _), outcome in expected.items()} == {kind: found[kind] for kind, _ in expected}
