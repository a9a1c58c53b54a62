"""A finished dataset is damaged, and the same command makes it whole: real runs, real files, the dummy encoder."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest

from latentprep import run
from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.config_file import resolved_yaml
from latentprep.preprocess.events import ChunkDone, Event, Notice, RunSummary
from latentprep.writers.block import END_MARK, decode_block
from latentprep.writers.ipc_message import RECORD_BATCH, MessageHeader, walk_headers
from latentprep.writers.verify import find_damage

from .corpus_changes import BulkCorpus
from .runs import bulk_config

NUM_CLIPS = 24
SILENT = 3
"""A clip without a row, so that a repair has a reason to keep."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunConfig, RunSummary]:
    """Several shards of several blocks each; one clip is no audio, and one annotation is refused."""
    folder = tmp_path_factory.mktemp("whole")
    config = bulk_config(
        folder, NUM_CLIPS, limits={"max_chunk_rows": 2}, shards={"max_rows": 6}, workers=1, seconds=(0.5, 1.0)
    )
    spoil_corpus(folder / "corpus")
    return config, run(config)


def spoil_corpus(corpus: Path) -> None:
    annotation = next(corpus.rglob("*.json"))
    clips = json.loads(annotation.read_text())
    audio = next(corpus.rglob(clips[SILENT]["wav_fn"]))
    audio.write_bytes(audio.read_bytes()[:44] + b"\0" * 32)
    clips[5]["bpm"] = 0
    annotation.write_text(json.dumps(clips))


@pytest.fixture
def copy(whole: tuple[RunConfig, RunSummary], tmp_path: Path) -> RunConfig:
    """A copy of the finished dataset, to be damaged."""
    config, _ = whole
    shutil.copytree(config.output_dir, tmp_path / "out")
    return config.model_copy(update={"output_dir": tmp_path / "out"})


def shards(config: RunConfig) -> list[Path]:
    return sorted(config.output_dir.glob("data-*.arrow"))


def headers(path: Path) -> list[MessageHeader]:
    """The blocks of a shard."""
    data = path.read_bytes()
    found = walk_headers(lambda offset, length: data[offset : offset + length], len(data))
    return [header for header in found if header.kind == RECORD_BATCH]


def block_bytes(config: RunConfig) -> dict[int, bytes]:
    """The bytes of every block, by chunk."""
    found: dict[int, bytes] = {}
    for path in shards(config):
        data = path.read_bytes()
        for header in headers(path):
            block = data[header.offset : header.end]
            found[decode_block(block)[1].chunk] = block
    return found


def flip(path: Path, offset: int) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def repaired(config: RunConfig, **options: bool) -> tuple[RunSummary, list[int], list[str]]:
    """Run again; the summary, the chunks that were encoded, and what was said."""
    heard: list[Event] = []
    summary = run(config, heard.append, **options)
    encoded = sorted(event.chunk_id for event in heard if isinstance(event, ChunkDone))
    return summary, encoded, [event.text for event in heard if isinstance(event, Notice)]


def assert_whole(config: RunConfig, summary: RunSummary, reference: RunSummary) -> None:
    """The same rows, the same account, nothing found by a full verification, and no file left over."""
    assert (reference.digest, reference.content_digest) == (summary.digest, summary.content_digest)
    assert (reference.planned, reference.written, 0) == (summary.planned, summary.written, summary.remaining)
    assert dict(reference.skipped) == dict(summary.skipped)
    assert dict(reference.warnings) == dict(summary.warnings)
    assert () == find_damage(OutputPaths(config.output_dir)).problems
    assert reference.written == datasets.load_from_disk(str(config.output_dir)).num_rows
    assert [] == [path.name for path in config.output_dir.iterdir() if path.suffix in {".moved", ".part"}]


Damage = Callable[[list[Path]], None]

MIDDLE = 1
"""The shard that is damaged."""


def flip_in_block(number: int) -> Damage:
    def damage(there: list[Path]) -> None:
        flip(there[MIDDLE], headers(there[MIDDLE])[number].end - 40)

    return damage


def flip_in_header(there: list[Path]) -> None:
    flip(there[MIDDLE], headers(there[MIDDLE])[1].offset)


def cut_in_last_block(there: list[Path]) -> None:
    os.truncate(there[MIDDLE], headers(there[MIDDLE])[-1].end - 10)


def cut_end_mark(there: list[Path]) -> None:
    os.truncate(there[MIDDLE], there[MIDDLE].stat().st_size - len(END_MARK))


def append(there: list[Path]) -> None:
    with open(there[MIDDLE], "ab") as file:
        file.write(b"\0" * 64)


def exchange(there: list[Path]) -> None:
    spare = there[0].with_name("spare")
    there[0].rename(spare)
    there[1].rename(there[0])
    spare.rename(there[1])


DAMAGES: dict[str, tuple[Damage, list[int] | None]] = {
    "a byte of the first block": (flip_in_block(0), [0]),
    "a byte of a middle block": (flip_in_block(1), [1]),
    "a byte of a block's header": (flip_in_header, [1]),
    "a byte of the schema message": (lambda there: flip(there[MIDDLE], 300), []),
    "the length of the schema message": (lambda there: flip(there[MIDDLE], 5), []),
    "the end mark": (lambda there: flip(there[MIDDLE], there[MIDDLE].stat().st_size - 1), []),
    "cut in the last block": (cut_in_last_block, [-1]),
    "cut before the end mark": (cut_end_mark, []),
    "bytes behind the end mark": (append, []),
    "cut to nothing": (lambda there: os.truncate(there[MIDDLE], 0), None),
    "a shard is missing": (lambda there: there[MIDDLE].unlink(), None),
    "names exchanged": (exchange, []),
    "renamed": (lambda there: there[MIDDLE].rename(there[MIDDLE].with_name("data-r0-00077.arrow")) and None, []),
}
"""What is done, and which blocks of the damaged shard are lost (None: all)."""

WITHOUT_PREP = [
    "a byte of a middle block",
    "the length of the schema message",
    "cut before the end mark",
    "a shard is missing",
    "names exchanged",
    "renamed",
]


def chunks_of(path: Path) -> list[int]:
    data = path.read_bytes()
    return [decode_block(data[header.offset : header.end])[1].chunk for header in headers(path)]


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_costs_the_damaged_chunks_alone(name: str, copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """A flipped bit in ten terabytes must not cost a week of encoding."""
    damage, blocks = DAMAGES[name]
    there, before = shards(copy), block_bytes(copy)
    chunks = chunks_of(there[MIDDLE])
    lost = sorted(chunks if blocks is None else [chunks[block] for block in blocks])
    damage(there)

    summary, encoded, _ = repaired(copy)

    assert lost == encoded
    assert_whole(copy, summary, whole[1])
    after = block_bytes(copy)
    assert {chunk: before[chunk] for chunk in before if chunk not in lost} == {
        chunk: after[chunk] for chunk in after if chunk not in lost
    }


@pytest.mark.parametrize("name", WITHOUT_PREP)
def test_damage_without_prep_costs_the_damaged_shards(name: str, copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """.prep may be deleted: the journal is made anew, and damage is known by shard."""
    damage, blocks = DAMAGES[name]
    there = shards(copy)
    lost = sorted(chunks_of(there[MIDDLE]) if blocks != [] else [])
    damage(there)
    shutil.rmtree(copy.output_dir / ".prep")

    summary, encoded, _ = repaired(copy)

    assert lost == encoded
    assert_whole(copy, summary, whole[1])


@pytest.mark.parametrize("name", ["state.json", "dataset_info.json", "provenance.json", "skipped.jsonl"])
@pytest.mark.parametrize("way", ["deleted", "spoilt"])
def test_metadata_is_written_anew(name: str, way: str, copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """Metadata is what the journal says; nothing is encoded for it."""
    path = copy.output_dir / name
    path.unlink() if way == "deleted" else path.write_text("{")

    summary, encoded, _ = repaired(copy)

    assert [] == encoded
    assert_whole(copy, summary, whole[1])


def test_edited_provenance_is_written_anew(copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """The journal is believed, not the file that anyone may edit."""
    path = copy.output_dir / "provenance.json"
    content = json.loads(path.read_text())
    content["fingerprint"] = "ffff"
    content["shards"][1]["xxh3"] = "0" * 32
    path.write_text(json.dumps(content))

    summary, encoded, _ = repaired(copy)

    assert [] == encoded
    assert_whole(copy, summary, whole[1])


def test_a_foreign_shard_is_named_and_left_alone(copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """Somebody's file is not ours to delete, and its rows are not the dataset's."""
    foreign = copy.output_dir / "data-r7-00000.arrow"
    foreign.write_bytes(shards(copy)[0].read_bytes().replace(whole[1].fingerprint.encode(), b"e" * 32))

    summary, encoded, said = repaired(copy)

    assert [] == encoded
    assert whole[1].digest == summary.digest
    assert foreign.exists()
    assert any(foreign.name in text for text in said)
    assert ["shard_extra"] == [str(problem.code) for problem in find_damage(OutputPaths(copy.output_dir)).problems]


def test_a_shard_whose_journal_was_lost_is_moved_out_of_the_way(copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """Its chunks are encoded again; whoever reads data-*.arrow would find their rows twice, and verify damage for ever."""
    unfinish(copy)
    for journal in (copy.output_dir / ".prep/journal").iterdir():
        flip(journal, 5)
    old = {path.name: path.read_bytes() for path in shards(copy)}

    summary, encoded, said = repaired(copy)

    assert whole[1].num_chunks == len(encoded)
    assert_whole(copy, summary, whole[1])
    leftover = copy.output_dir / ".prep/leftover"
    assert old == {path.name: path.read_bytes() for path in leftover.iterdir()}
    assert any("its journal was lost" in text for text in said)


def unfinish(config: RunConfig) -> None:
    """As if the run had been killed before its metadata was written."""
    for name in ("state.json", "dataset_info.json", "provenance.json", "README.md", "skipped.jsonl"):
        (config.output_dir / name).unlink()


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("damage", ["a path", "cut", "gone"])
def test_a_damaged_plan_is_made_anew(damage: str, finished: bool, copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """A flipped bit in a path would skip that clip as missing, with exit code 0; one elsewhere would kill workers."""
    plan = copy.output_dir / ".prep/plan.arrow"
    if damage == "gone":
        plan.unlink()
    elif damage == "cut":
        os.truncate(plan, plan.stat().st_size // 2)
    else:
        flip(plan, plan.read_bytes().rindex(b".wav") - 1)
    if not finished:
        unfinish(copy)
        shards(copy)[MIDDLE].unlink()

    summary, encoded, _ = repaired(copy)

    assert (0 if finished else 3) == len(encoded)
    assert_whole(copy, summary, whole[1])


def test_an_unfinished_run_whose_plan_is_gone_and_cannot_be_made_again_is_not_touched(
    copy: RunConfig, whole: tuple[RunConfig, RunSummary]
):
    """Its shards would stay beside those of another plan."""
    unfinish(copy)
    (copy.output_dir / ".prep/plan.arrow").unlink()
    before = {path.name: path.read_bytes() for path in shards(copy)}

    with pytest.raises(OutputError, match="holds an unfinished run of plan"):
        run(copy.model_copy(update={"max_samples": 10}))

    assert before == {path.name: path.read_bytes() for path in shards(copy)}
    assert [] == repaired(copy)[1]


def test_a_whole_dataset_stays_as_it_is(copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """The check of a finished dataset writes no shard."""
    before = {path.name: path.stat().st_mtime_ns for path in shards(copy)}

    summary, encoded, _ = repaired(copy)

    assert [] == encoded
    assert before == {path.name: path.stat().st_mtime_ns for path in shards(copy)}
    assert_whole(copy, summary, whole[1])


def test_without_check_a_flipped_bit_is_left(copy: RunConfig):
    """--no-check is for who knows that the bytes are right and has no hour to read them."""
    flip_in_block(1)(shards(copy))

    _, encoded, _ = repaired(copy, check=False)

    assert [] == encoded
    assert () != find_damage(OutputPaths(copy.output_dir)).problems


def test_without_check_a_cut_shard_is_still_repaired(copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """Sizes cost nothing to look at."""
    there = shards(copy)
    lost = chunks_of(there[MIDDLE])[-1:]
    cut_in_last_block(there)

    summary, encoded, _ = repaired(copy, check=False)

    assert lost == encoded
    assert_whole(copy, summary, whole[1])


@pytest.mark.parametrize("line", [0, 2])
def test_a_damaged_journal_line_costs_its_chunk_at_most(
    line: int, copy: RunConfig, whole: tuple[RunConfig, RunSummary]
):
    """A journal without its first line is made anew from the shards; a lost line is a lost chunk."""
    journal = next((copy.output_dir / ".prep/journal").glob("*.jsonl"))
    lines = journal.read_bytes().split(b"\n")
    flip(journal, sum(len(text) + 1 for text in lines[:line]) + 60)

    summary, encoded, _ = repaired(copy)

    assert (0 if line == 0 else 1) == len(encoded)
    assert_whole(copy, summary, whole[1])


def test_without_prep_nothing_is_encoded(copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """Chunks, rows, skipped clips and warnings come back out of shards and skipped.jsonl."""
    shutil.rmtree(copy.output_dir / ".prep")
    skipped = (copy.output_dir / "skipped.jsonl").read_bytes()

    summary, encoded, _ = repaired(copy)

    assert [] == encoded
    assert skipped == (copy.output_dir / "skipped.jsonl").read_bytes()
    assert_whole(copy, summary, whole[1])


def test_without_prep_a_chunk_without_rows_is_done(tmp_path: Path):
    """It has no block; skipped.jsonl has the reason of each of its clips, and that is all there is to know."""
    config = bulk_config(tmp_path, 8, limits={"max_chunk_rows": 1}, workers=1, seconds=(0.5, 1.0))
    spoil_corpus(tmp_path / "corpus")
    reference = run(config)
    shutil.rmtree(config.output_dir / ".prep")

    summary, encoded, _ = repaired(config)

    assert (1, 7) == (summary.num_chunks - len(block_bytes(config)), summary.num_chunks)
    assert [] == encoded
    assert_whole(config, summary, reference)


def test_without_prep_and_skipped_only_chunks_with_skipped_clips_are_encoded(
    copy: RunConfig, whole: tuple[RunConfig, RunSummary]
):
    """A reason that is lost is found again by decoding the clip, so the account stays exact."""
    shutil.rmtree(copy.output_dir / ".prep")
    (copy.output_dir / "skipped.jsonl").unlink()

    summary, encoded, _ = repaired(copy)

    assert 1 == len(encoded)
    assert_whole(copy, summary, whole[1])


def test_without_prep_another_plan_is_refused(copy: RunConfig, whole: tuple[RunConfig, RunSummary]):
    """Chunk ids of another plan mean other clips; nothing may be touched."""
    shutil.rmtree(copy.output_dir / ".prep")
    before = {path.name: path.read_bytes() for path in copy.output_dir.iterdir() if path.is_file()}
    other = copy.model_copy(update={"max_samples": 10})

    with pytest.raises(OutputError, match="other settings than then: max_samples"):
        run(other)

    assert before == {path.name: path.read_bytes() for path in copy.output_dir.iterdir() if path.is_file()}
    assert [] == repaired(copy)[1]


@pytest.fixture
def extended(tmp_path: Path) -> tuple[RunConfig, RunSummary]:
    """A dataset of two plans."""
    config = bulk_config(
        tmp_path, 16, limits={"max_chunk_rows": 2}, shards={"max_rows": 6}, workers=1, seconds=(0.5, 1)
    )
    run(config)
    corpus = BulkCorpus(config)
    corpus.add("new#song#1")
    corpus.relabel(1)
    return config, run(config, extend=True)


def test_an_extended_dataset_is_repaired(extended: tuple[RunConfig, RunSummary]):
    """Blocks of an older plan are as good as those of the last one."""
    config, reference = extended
    there = shards(config)
    lost = chunks_of(there[MIDDLE])[1:2]
    flip_in_block(1)(there)

    summary, encoded, _ = repaired(config)

    assert lost == encoded
    assert_whole(config, summary, reference)


def test_an_extended_dataset_without_prep_is_not_touched(extended: tuple[RunConfig, RunSummary]):
    """One plan over the corpora of now has other chunks; the dataset itself can be used as it is."""
    config, _ = extended
    shutil.rmtree(config.output_dir / ".prep")
    before = {path.name: path.read_bytes() for path in config.output_dir.iterdir() if path.is_file()}

    with pytest.raises(OutputError, match="extended"):
        run(config)

    assert before == {path.name: path.read_bytes() for path in config.output_dir.iterdir() if path.is_file()}


KILLER = """
import os, signal, sys
from pathlib import Path
from latentprep.preprocess.config_file import load_config
from latentprep.preprocess.events import ChunkDone
from latentprep.preprocess.run import run
from latentprep.writers import journal, misplaced, part

calls = 0
def die_at(wanted):
    global calls
    calls += 1
    if calls == wanted:
        os.kill(os.getpid(), signal.SIGKILL)

def dying(real):
    def call(*arguments, **options):
        die_at(int(sys.argv[2]))
        return real(*arguments, **options)
    return call

def on_event(event):
    if sys.argv[2] == "-1" and isinstance(event, ChunkDone):
        die_at(1)

if __name__ == "__main__":  # before every step of the parent that changes a file: lines, renames, metadata, deletions
    journal.JournalWriter.append = dying(journal.JournalWriter.append)
    misplaced.rename_noreplace, part.rename_noreplace = dying(part.rename_noreplace), dying(part.rename_noreplace)
    os.replace, Path.unlink = dying(os.replace), dying(Path.unlink)
    run(load_config(Path(sys.argv[1]), ()).config, on_event)
"""


def killed_run(config: RunConfig, folder: Path, step: int) -> bool:
    """Run until kill -9 before the parent's change number ``step`` (-1: when a chunk is done); whether it came to it."""
    script, settings = folder / "killer.py", folder / "prep.yaml"
    script.write_text(KILLER)
    settings.write_text(resolved_yaml(config))
    command = [sys.executable, str(script), str(settings), str(step)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


OFTEN = (5, 14, -1)
STEPS = (*OFTEN, *(pytest.param(step, marks=pytest.mark.slow) for step in (2, 8, 11, 16, 18, 21, 24, 30)))


@pytest.mark.parametrize("step", STEPS)
def test_a_repair_may_be_killed_at_any_moment(
    step: int, copy: RunConfig, whole: tuple[RunConfig, RunSummary], tmp_path: Path
):
    """Promise 2: the dataset stays loadable all the while, and the same command goes on."""
    flip_in_block(1)(shards(copy))

    killed_run(copy, tmp_path, step)

    assert whole[1].written == datasets.load_from_disk(str(copy.output_dir)).num_rows
    summary, _, _ = repaired(copy)
    assert_whole(copy, summary, whole[1])


@pytest.mark.parametrize("step", STEPS)
def test_a_repair_without_prep_may_be_killed_at_any_moment(
    step: int, copy: RunConfig, whole: tuple[RunConfig, RunSummary], tmp_path: Path
):
    """Names are exchanged, a block is damaged, and the journal is made anew: the most steps that a repair can have."""
    shutil.rmtree(copy.output_dir / ".prep")
    there = shards(copy)
    flip_in_block(1)([there[2], there[3]])
    exchange(there)

    killed_run(copy, tmp_path, step)

    summary, _, _ = repaired(copy)
    assert_whole(copy, summary, whole[1])
