"""The stored plan: round trip, fingerprint, damage."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from latentprep.core.errors import FaultCode, OutputError, Stage
from latentprep.preprocess.audio.header import AudioHeader
from latentprep.preprocess.corpora.clip import Clip
from latentprep.preprocess.plan.clip_table import CLIP_SCHEMA
from latentprep.preprocess.plan.identity import Identity
from latentprep.preprocess.plan.plan import CHUNK_SCHEMA, Plan
from latentprep.preprocess.score.tokenizer import SvsTokenizer

from .builders import SPEC, TOKENIZER_FOLDER, by_item, clip, config, header, info, plan_of, refused_clip

CLIPS = [clip(f"{number}") for number in range(80)]
SECONDS = {str(number): 1 + number % 7 for number in range(80)}


def _fingerprint(folder: Path, clips: list[Clip] = CLIPS, probe: Any = None, **changes: Any) -> str:
    folder.mkdir(exist_ok=True)
    return plan_of(folder, clips, probe=probe or by_item(SECONDS), **changes).fingerprint


def test_a_chunk_is_a_record_batch_of_the_clips_of_its_encode_batches(tmp_path: Path) -> None:
    """What a worker gets for a chunk id."""
    made = plan_of(tmp_path, CLIPS, probe=by_item(SECONDS), run=config(limits={"max_chunk_rows": 16}))
    plan = Plan.open(made.path)

    batches = []
    for number in range(plan.num_chunks):
        chunk = plan.chunk(number)
        assert CHUNK_SCHEMA == chunk.schema.remove_metadata()
        assert plan.chunk_rows[number] == chunk.num_rows
        assert plan.chunk_samples[number] == sum(chunk["num_samples"].to_pylist())
        assert {plan.chunk_dataset[number]} == set(chunk["dataset_name"].to_pylist())
        assert all(column.null_count == 0 for column in chunk.columns)
        batches += chunk["batch"].to_pylist()
    assert sorted(batches) == batches
    assert plan.chunks.batches.sum() == len(set(batches))
    assert 80 == len(batches)


def test_what_a_plan_says_about_itself_survives(tmp_path: Path) -> None:
    """A resume decides by it."""
    run = config(tmp_path / "out", max_samples=500)
    tokenizer_hash = SvsTokenizer.load(TOKENIZER_FOLDER).hash

    plan = Plan.open(plan_of(tmp_path, CLIPS, run=run).path)

    assert Identity.of(run, info(), tokenizer_hash, "cpu") == plan.identity
    assert SPEC == plan.spec
    assert run == type(run).model_validate(yaml.safe_load(plan.head.config_yaml))
    assert "choir" == plan.head.corpora_signature.parts[0].name
    assert 800.0 == plan.audio_seconds


def test_refused_clips_survive_with_their_message(tmp_path: Path) -> None:
    """They become lines of skipped.jsonl."""
    plan = plan_of(tmp_path, [clip(), refused_clip("x", message="gone, 感")])

    (refused,) = plan.refused()
    assert ("choir", "x", "audio/x.wav") == (refused.dataset_name, refused.item_name, refused.audio_path)
    assert (Stage.SCAN, FaultCode.MISSING_AUDIO, "gone, 感") == (
        refused.fault.stage,
        refused.fault.code,
        refused.fault.message,
    )
    assert (("choir", "missing_audio", 1),) == plan.head.refused_counts


def test_the_same_run_has_the_same_fingerprint(tmp_path: Path) -> None:
    """Also with other times on the files, other run-time settings, and in another folder."""
    first = _fingerprint(tmp_path / "a")

    def touched(c: Clip) -> AudioHeader:
        return header(num_frames=int(SECONDS[c.item_name] * 16000), mtime_ns=77, file_size=2_000_000)

    assert 32 == len(first)
    assert first == _fingerprint(tmp_path / "b")
    assert first == _fingerprint(tmp_path / "c", probe=touched)
    assert first == _fingerprint(tmp_path / "d", run=config(tmp_path, workers=5))


def test_the_fingerprint_changes_with_any_content(tmp_path: Path) -> None:
    """A word, a length, an order, a limit, a setting, a clip less, a refused clip."""
    changed = [*CLIPS[:40], clip("40", word=("AP", "lo")), *CLIPS[41:]]
    run = config(score={"word_without_note": "warn"})
    prints = {
        _fingerprint(tmp_path),
        _fingerprint(tmp_path, changed),
        _fingerprint(tmp_path, probe=by_item(SECONDS | {"3": 4.01})),
        _fingerprint(tmp_path, list(reversed(CLIPS))),
        _fingerprint(tmp_path, run=config(limits={"max_chunk_rows": 1000})),
        _fingerprint(tmp_path, run=run),
        _fingerprint(tmp_path, CLIPS[:-1]),
        _fingerprint(tmp_path, [*CLIPS, refused_clip()]),  # type: ignore[list-item]
    }

    assert 8 == len(prints)


def test_decoded_bytes_count_the_waveform_and_the_stored_samples(tmp_path: Path) -> None:
    """What a worker's byte budget is charged with: 4 bytes for each, and the stored ones in all channels."""
    plan = plan_of(tmp_path, [clip()], probe=lambda c: header(num_frames=48_000, sample_rate=48_000, channels=2))
    unknown = plan_of(tmp_path, [clip()], probe=lambda c: header(num_frames=None))

    assert [4 * (16_000 + 96_000)] == plan.decoded_bytes(plan.chunk(0)).tolist()
    assert [8_000_000] == unknown.decoded_bytes(unknown.chunk(0)).tolist()


def test_a_chunk_outside_the_plan_is_an_index_error(tmp_path: Path) -> None:
    """Record batches behind the chunks hold refused clips: never give one out as a chunk."""
    plan = plan_of(tmp_path, [clip(), refused_clip()])

    for number in (-1, plan.num_chunks):
        with pytest.raises(IndexError):
            plan.chunk(number)


def _foreign(path: Path) -> None:
    with pa.ipc.new_file(str(path), CLIP_SCHEMA):
        pass


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not an arrow file at all"),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(path.read_bytes().replace(b"latentprep.identity", b"somebody's identity")),
        _foreign,
    ],
    ids=["missing", "empty", "text", "cut", "no identity", "other arrow file"],
)
def test_a_damaged_or_foreign_file_is_an_error_with_a_way_out(tmp_path: Path, damage: Any) -> None:
    """Never a traceback of Arrow's, and never a plan with fewer chunks."""
    path = plan_of(tmp_path, CLIPS).path
    damage(path)

    with pytest.raises(OutputError, match=r"plan\.arrow can't be read as a plan") as caught:
        Plan.open(path)

    assert "--overwrite" in caught.value.fix


def test_a_plan_without_its_seal_is_no_plan(tmp_path: Path) -> None:
    """Arrow opens such a file without a word."""
    path = plan_of(tmp_path, CLIPS).path
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file)
        schema = reader.schema
        chunks = [reader.get_batch(number) for number in range(reader.num_record_batches - 1)]
    with pa.ipc.new_file(str(path), schema) as writer:
        for chunk in chunks:
            writer.write_batch(chunk)

    with pytest.raises(OutputError, match="can't be read as a plan"):
        Plan.open(path)


def test_a_new_plan_replaces_the_old_one_only_when_it_is_complete(tmp_path: Path) -> None:
    """A full disk during --rescan must leave the plan that the output belongs to."""
    old = plan_of(tmp_path, CLIPS).fingerprint

    with pytest.raises(RuntimeError):
        plan_of(tmp_path, (clip(str(1 / number)) if number else _fail() for number in (2, 1, 0)))

    assert old == Plan.open(tmp_path / "plan.arrow").fingerprint


def _fail() -> Clip:
    raise RuntimeError("the corpus broke off")
