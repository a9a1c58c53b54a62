import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from latentprep import run
from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.core.schema import row_schema
from latentprep.preprocess.score.note_value import NOTE_QUARTERS
from latentprep.writers.block import BlockMetadata
from latentprep.writers.ledger import read_journals
from latentprep.writers.shard import ShardLimits, ShardWriter
from latentprep.writers.verify import find_damage
from latentprep.writers.verify_report import DamageCode, DamagedShard, Problem, VerifyReport
from latentprep.writers.verify_score import NOTE_VALUES
from tests.preprocess.runs import golden_config

from .builders import FINGERPRINT, WIDE
from .damages import (
    BLOCK,
    CHUNK,
    FOLDER_DAMAGES,
    JOURNAL_DAMAGES,
    LAST_PATCH,
    OTHER_SHARD,
    SHARD,
    SHARD_DAMAGES,
    edit,
    flip,
    in_column,
    remove,
    value_offset,
)
from .datasets import block_metadata, finished_dataset, right_rows, write_metadata

PAGE = Path(__file__).parents[2] / "docs" / "verify.md"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that nothing is wrong with; not to be changed."""
    return finished_dataset(tmp_path_factory.mktemp("good")).root


@pytest.fixture
def paths(good: Path, tmp_path: Path) -> OutputPaths:
    """A copy of it, to be damaged."""
    shutil.copytree(good, tmp_path / "out")
    return OutputPaths(tmp_path / "out")


def codes(report: VerifyReport) -> list[str]:
    """Each once, in the order of the report."""
    return list(dict.fromkeys(str(problem.code) for problem in report.problems))


def table_rows(head: str) -> dict[str, list[list[str]]]:
    """Codes by damage of the tables of docs/verify.md that begin with ``head``."""
    text = PAGE.read_text(encoding="utf-8")
    tables = [part.partition("\n\n")[0] for part in text.split(head)[1:]]
    lines = [line.strip("| ").split(" | ") for table in tables for line in table.splitlines()[2:]]
    return {name: [re.findall(r"`(\w+)`", cell) for cell in cells] for name, *cells in lines}


IN_TABLE = table_rows("| damage | with `.prep` | without `.prep` | `--quick` |")
IN_JOURNAL_TABLE = table_rows("| damage | full | `--quick` |")


@pytest.mark.parametrize("keeps_work", [True, False], ids=["with .prep", "without .prep"])
@pytest.mark.parametrize("quick", [True, False], ids=["quick", "full"])
def test_a_good_dataset_has_no_problems(keeps_work: bool, quick: bool, paths: OutputPaths):
    """A checker that cries wolf is switched off."""
    if not keeps_work:
        shutil.rmtree(paths.work)

    report = find_damage(paths, quick=quick)

    assert () == report.problems == report.damaged == report.damaged_chunks
    assert (3, 6, 18, True) == (report.num_shards, report.num_blocks, report.num_rows, report.finished)
    assert sum(path.stat().st_size for path in paths.root.glob("data-*")) == report.num_bytes
    assert ("journal" if keeps_work else "provenance") == report.checksums


def test_the_digest_is_counted_from_the_rows(paths: OutputPaths):
    """It must not be copied from the journal: it is what proves that two datasets are equal."""
    expected = read_journals(paths, FINGERPRINT).digests
    shutil.rmtree(paths.work)

    assert expected == find_damage(paths).digests


@pytest.mark.parametrize("name", [*SHARD_DAMAGES, *FOLDER_DAMAGES])
def test_every_damage_is_found_with_and_without_the_journal(name: str, paths: OutputPaths, good: Path, tmp_path: Path):
    """docs/verify.md promises the codes; a full check overlooks none of these damages."""
    damage = (SHARD_DAMAGES | FOLDER_DAMAGES)[name]
    bare = OutputPaths(tmp_path / "bare")
    shutil.copytree(good, bare.root, ignore=shutil.ignore_patterns(".prep"))
    damage(paths)
    damage(bare)
    full, without, quick = find_damage(paths), find_damage(bare), find_damage(paths, quick=True)

    assert IN_TABLE[name] == [codes(full), codes(without), codes(quick)]
    assert full.problems
    assert without.problems


@pytest.mark.parametrize("name", JOURNAL_DAMAGES)
def test_every_damage_of_a_journal_is_found(name: str, paths: OutputPaths):
    """What only the journal knows is lost with it."""
    JOURNAL_DAMAGES[name](paths)
    full = find_damage(paths)

    assert IN_JOURNAL_TABLE[name] == [codes(full), codes(find_damage(paths, quick=True))]
    assert full.problems


def test_the_page_lists_exactly_these_damages_and_codes():
    """A damage that is in the page and not in the test is a promise that nobody keeps."""
    text = PAGE.read_text(encoding="utf-8").partition("| code | meaning |\n|---|---|\n")[2]

    assert [*SHARD_DAMAGES, *FOLDER_DAMAGES] == list(IN_TABLE)
    assert list(JOURNAL_DAMAGES) == list(IN_JOURNAL_TABLE)
    assert [str(code) for code in DamageCode] == re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)


IN_BLOCK = [name for name in SHARD_DAMAGES if not re.match(r"a byte of the|bytes behind|cut", name)]


@pytest.mark.parametrize("name", IN_BLOCK)
def test_damage_in_a_block_is_narrowed_to_its_chunk(name: str, paths: OutputPaths):
    """Only that chunk is worth encoding again."""
    SHARD_DAMAGES[name](paths)
    report = find_damage(paths)

    assert {(SHARD, BLOCK)} == {(problem.shard, problem.block) for problem in report.problems}
    assert (DamagedShard(name=SHARD, chunks=(CHUNK,)),) == report.damaged
    assert (CHUNK,) == report.damaged_chunks


@pytest.mark.parametrize(
    ("name", "column", "buffer", "byte", "row"),
    [
        ("a token id: negative", "packed_text_tokens", 3, 0, 0),
        ("a label", "labels", 3, 0, 0),
        ("a latent: infinite", "audio_feats", 7, LAST_PATCH, 2),
        ("a latent of the prompt", "audio_feats", 7, 0, 0),
        ("audio_duration", "audio_duration", 1, 0, 0),
        ("text_token_count", "text_token_count", 1, 0, 0),
        ("a pitch out of range", "pitch", 3, 0, 0),
        ("a note value", "note", 4, 0, 0),
        ("a word's seconds", "word_dur", 3, 0, 0),
    ],
)
def test_a_value_is_named_with_its_row_and_byte(
    name: str, column: str, buffer: int, byte: int, row: int, paths: OutputPaths
):
    """To look at it with a hex editor, or to see that it is one bad sector."""
    expected = value_offset(paths, column, buffer, byte)
    SHARD_DAMAGES[name](paths)
    of_rows = [problem for problem in find_damage(paths).problems if problem.row is not None]

    assert (BLOCK, row, expected, 1) == (
        of_rows[0].block,
        of_rows[0].row,
        of_rows[0].byte_offset,
        of_rows[0].num_rows,
    )


def test_a_padding_byte_is_named(paths: OutputPaths):
    """No value is wrong; only the byte itself can be named."""
    SHARD_DAMAGES["a padding byte between buffers"](paths)
    problem = next(problem for problem in find_damage(paths).problems if problem.code == DamageCode.PADDING)

    assert value_offset(paths, "has_score", 1, 0) + 3 == problem.byte_offset


@pytest.mark.parametrize("keeps_work", [True, False], ids=["with .prep", "without .prep"])
def test_no_single_flip_gets_through_or_crashes_the_check(keeps_work: bool, paths: OutputPaths):
    """Anything may stand in a damaged file: offsets that point outside, lengths of exabytes, no UTF-8."""
    if not keeps_work:
        shutil.rmtree(paths.work)
    shard = paths.root / SHARD
    for offset in np.random.default_rng(7).integers(0, shard.stat().st_size, 60).tolist():
        bits = 1 << offset % 8
        flip(shard, offset, bits)
        report = find_damage(paths, threads=1)
        flip(shard, offset, bits)

        assert [SHARD] == [damaged.name for damaged in report.damaged], offset
        assert report.problems, offset
    assert () == find_damage(paths).problems


def test_exchanged_names_need_no_encoding(paths: OutputPaths):
    """Renaming is the cure, and the report says which way."""
    FOLDER_DAMAGES["two shards' names exchanged"](paths)
    report = find_damage(paths)

    assert {SHARD: OTHER_SHARD, OTHER_SHARD: SHARD} == {shard.name: shard.content_of for shard in report.damaged}
    assert () == report.damaged_chunks


def test_a_missing_shard_takes_all_of_its_chunks_along(paths: OutputPaths):
    remove(SHARD)(paths)
    report = find_damage(paths)

    assert (DamagedShard(name=SHARD, chunks=(2, 3)),) == report.damaged


def test_a_cut_shard_keeps_the_blocks_before_the_cut(paths: OutputPaths):
    """They are still what was written, and need no encoding."""
    SHARD_DAMAGES["cut in mid block"](paths)
    report = find_damage(paths)

    assert (DamagedShard(name=SHARD, chunks=(CHUNK,)),) == report.damaged
    missing = next(problem for problem in report.problems if problem.code == DamageCode.BLOCK_MISSING)
    assert (SHARD, BLOCK, "the block is cut off") == (missing.shard, missing.block, missing.message)


def test_where_only_the_shards_hash_is_known_all_of_its_chunks_are_suspect(paths: OutputPaths):
    """Without the journal nobody knows which block a silent flip is in."""
    shutil.rmtree(paths.work)
    SHARD_DAMAGES["a latent: another value"](paths)

    assert (2, 3) == find_damage(paths).damaged_chunks


def test_a_shard_that_was_encoded_again_is_not_missed(paths: OutputPaths):
    """The journal still has the lines of the lost one, but its chunks are done elsewhere."""
    remove(SHARD)(paths)
    limits = ShardLimits(max_rows=6, max_bytes=1 << 40)
    with ShardWriter(paths, 0, "run2", FINGERPRINT, limits) as writer:
        for chunk in (2, 3):
            batch, facts = right_rows(chunk)
            writer.write(batch, block_metadata(chunk, facts), warnings={"loud": 1})
    write_metadata(paths)

    assert () == find_damage(paths).problems


def test_what_an_unfinished_run_has_committed_is_checked(tmp_path: Path):
    """A night's work is worth a look before the next night."""
    paths = OutputPaths(tmp_path)
    writer = ShardWriter(paths, 0, "run1", FINGERPRINT, WIDE)
    for chunk in range(2):
        batch, facts = right_rows(chunk)
        writer.write(batch, block_metadata(chunk, facts))
    writer.abandon()
    before = find_damage(paths)
    part = next(paths.open_dir.iterdir())
    flip(part, part.stat().st_size - 50)
    after = find_damage(paths)

    assert ((), False, 6) == (before.problems, before.finished, before.num_rows)
    assert [DamageCode.BLOCK_BYTES] == [problem.code for problem in after.problems][:1]
    assert (1,) == after.damaged_chunks


def test_the_same_item_in_two_rows_is_found(tmp_path: Path):
    """A trainer would see it twice an epoch; both rows are named."""
    paths = OutputPaths(tmp_path)
    batch, facts = right_rows(5)
    with ShardWriter(paths, 0, "run1", FINGERPRINT, WIDE) as writer:
        writer.write(batch, block_metadata(0, facts))
        writer.write(batch.slice(1, 2), block_metadata(1))
    write_metadata(paths)
    problem = next(problem for problem in find_damage(paths).problems if problem.code == DamageCode.DUPLICATE_ITEM)

    assert (1, 0, 2) == (problem.block, problem.row, problem.num_rows)
    assert problem.message.startswith("合唱/item-5-1 is also row 1 of block 0 of data-r0-00000.arrow")


def wrong_row(paths: OutputPaths, **columns: pa.Array) -> Problem:
    """The first problem of a dataset of one block, written with these columns in place of the right ones."""
    batch, facts = right_rows(1)
    for name, array in columns.items():
        batch = batch.set_column(batch.schema.get_field_index(name), row_schema().field(name), array)
    batch = pa.RecordBatch.from_arrays(batch.columns, schema=row_schema())
    with ShardWriter(paths, 0, "run1", FINGERPRINT, WIDE) as writer:
        writer.write(batch, block_metadata(0, facts))
    write_metadata(paths)
    report = find_damage(paths)

    assert () == report.damaged_chunks
    return report.problems[0]


def test_what_was_written_wrong_is_found_and_not_encoded_again(tmp_path: Path):
    """The checksum is right, so the same code would write the same row: encoding again would never end."""
    problem = wrong_row(OutputPaths(tmp_path), bpm=pa.array([999, 100, 0], pa.int64()))

    assert (DamageCode.ROW_SCORE, "bpm is 999, not one of 1..255") == (problem.code, problem.message)


def test_latents_that_are_all_zero_are_found(tmp_path: Path):
    """A VAE that returns zeros trains a model of silence."""
    batch, _ = right_rows(1)
    feats = batch.column("audio_feats")
    values = feats.values.values.values.to_numpy().copy()
    values[: len(feats[0]) * 6] = 0
    patches = pa.ListArray.from_arrays(feats.values.values.offsets, pa.array(values))
    zero = pa.ListArray.from_arrays(feats.offsets, pa.ListArray.from_arrays(feats.values.offsets, patches))
    problem = wrong_row(OutputPaths(tmp_path), audio_feats=zero)

    assert (DamageCode.LATENT_ZERO, 0) == (problem.code, problem.row)


def test_an_edited_spec_shows_in_the_rows(paths: OutputPaths):
    """Somebody who corrects the patch size by hand is told that the shards say otherwise."""
    edit("provenance.json", lambda content: content["encoder"].update(patch_size=4))(paths)

    assert ["row_shape", "row_duration"] == codes(find_damage(paths))


def test_without_any_checksum_the_report_says_so(paths: OutputPaths):
    """And what breaks a rule is still found."""
    shutil.rmtree(paths.work)
    paths.provenance.unlink()
    in_column("labels", 3, 0, 0x01)(paths)
    report = find_damage(paths)

    assert "none" == report.checksums
    assert ["row_label", "provenance"] == codes(report)


def test_a_folder_of_something_else_is_refused(tmp_path: Path):
    (tmp_path / "photo.jpg").write_bytes(b"")

    with pytest.raises(OutputError, match="is not an output folder of prep"):
        find_damage(OutputPaths(tmp_path))


def test_progress_ends_with_all_bytes(paths: OutputPaths):
    """A bar that stops at 97 % looks like a hang."""
    seen: list[tuple[int, int]] = []
    report = find_damage(paths, on_progress=lambda done, total: seen.append((done, total)))

    assert (report.num_bytes, report.num_bytes) == seen[-1]
    assert sorted(seen) == seen


def test_the_note_values_are_those_that_the_preprocessing_knows():
    """They stand twice, since writers don't import the preprocessing."""
    assert set(NOTE_QUARTERS) == set(NOTE_VALUES)


def test_a_block_of_another_plan_is_found(tmp_path: Path):
    """Two runs' blocks in one dataset would be rows of two encoders."""
    paths = OutputPaths(tmp_path)
    with ShardWriter(paths, 0, "run1", FINGERPRINT, WIDE) as writer:
        writer.write(right_rows(0)[0], BlockMetadata(chunk=0, fingerprint="another"))
    problem = find_damage(paths).problems[0]

    assert (DamageCode.BLOCK_IDENTITY, f"it is of plan another, {FINGERPRINT} belongs here") == (
        problem.code,
        problem.message,
    )


@pytest.mark.slow
def test_a_run_as_it_is_made_has_no_problems(tmp_path: Path):
    """The rules here and the code that makes rows must not drift apart."""
    run(golden_config(tmp_path / "out", encoder={"name": "dummy"}, shards={"max_rows": 4}))
    report = find_damage(OutputPaths(tmp_path / "out"))

    assert ((), 11, 3) == (report.problems, report.num_rows, report.num_shards)
