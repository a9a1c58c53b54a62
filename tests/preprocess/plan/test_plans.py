"""Several plans of one dataset, as if they were one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.plan.compare import KnownClips, compare
from latentprep.preprocess.plan.extend import extend_plan
from latentprep.preprocess.plan.make import read_clips
from latentprep.preprocess.plan.plan import Plan
from latentprep.preprocess.plan.plans import Plans
from latentprep.preprocess.score.tokenizer import SvsTokenizer

from .builders import TOKENIZER_FOLDER, by_item, clip, config, info, plan_of, refused_clip


def extended(paths: OutputPaths, plans: Plans, items: list[str]) -> Plans:
    """The plans when the corpus holds ``items``."""
    tokenizer = SvsTokenizer.load(TOKENIZER_FOLDER)
    clips = [clip(item) for item in items]
    with read_clips(
        info(), tokenizer, clips, probe=by_item({}), work_dir=paths.work, on_event=lambda event: None
    ) as table:
        known = KnownClips.of(((chunk, plans.chunk(chunk)) for chunk in plans.live), ())
        signature = plans.head.corpora_signature
        return extend_plan(config(), info(), paths, plans, table, known, compare(table, known), signature)


@pytest.fixture
def paths(tmp_path: Path) -> OutputPaths:
    """A folder with a plan of 20 clips in chunks of at most 4."""
    run = config(limits={"max_chunk_rows": 4})
    paths = OutputPaths(tmp_path)
    paths.work.mkdir()
    plan_of(paths.work, [*(clip(f"{number}") for number in range(20)), refused_clip()], run=run)
    return paths


def items(plans: Plans) -> list[str]:
    return sorted(name for chunk in plans.live for name in plans.chunk(chunk)["item_name"].to_pylist())


def test_one_plan_is_itself(paths: OutputPaths):
    """The usual case must not cost or mean anything else."""
    plan, plans = Plan.open(paths.plan), Plans.open(paths)

    assert (plan.fingerprint,) == plans.fingerprints
    assert tuple(range(plan.num_chunks)) == plans.live
    assert (plan.num_clips, plan.num_refused, plan.num_chunks) == (plans.num_clips, plans.num_refused, plans.num_chunks)
    assert plan.audio_seconds == plans.audio_seconds
    assert plan.chunk(3).equals(plans.chunk(3))
    assert plan.chunk_dataset == plans.chunk_dataset


def test_ids_run_on_through_all_plans(paths: OutputPaths):
    first = Plans.open(paths)
    names = [str(number) for number in range(20)]

    second = extended(paths, first, [*names[1:], "new"])
    third = extended(paths, second, [*names[2:], "new", "newer"])

    assert sorted([*names[2:], "new", "newer"]) == items(third)
    assert 3 == len(set(third.fingerprints))
    assert third.num_chunks == sum(part.num_chunks for part in third.parts)
    assert 20 == third.num_clips
    assert third.superseded >= second.superseded
    for chunk in range(third.num_chunks):
        part = next(i for i, plan in enumerate(third.parts) if chunk < sum(p.num_chunks for p in third.parts[: i + 1]))
        assert third.fingerprints[part] == third.fingerprint_of(chunk)
        assert third.chunks.rows[chunk] == third.chunk(chunk).num_rows
    np.testing.assert_array_equal(third.chunk_samples, np.concatenate([part.chunk_samples for part in third.parts]))


def test_an_extension_is_a_function_of_what_it_extends(paths: OutputPaths):
    """The same clips over another base are another plan: its chunk ids mean something else."""
    names = [str(number) for number in range(20)]
    first = extended(paths, Plans.open(paths), [*names, "new"]).fingerprint
    paths.extended_plan(2).unlink()
    again = extended(paths, Plans.open(paths), [*names, "new"]).fingerprint
    extended_twice = extended(paths, Plans.open(paths), names[:-1])

    assert first == again
    assert first != extended_twice.fingerprint


def test_a_plan_that_extends_another_one_is_refused(paths: OutputPaths):
    """A plan file copied from another folder."""
    names = [str(number) for number in range(20)]
    second = extended(paths, Plans.open(paths), [*names, "new"])
    extension = second.head.extension
    assert extension is not None
    second.last.head = replace(second.head, extension=replace(extension, base="0" * 32))

    with pytest.raises(OutputError, match="does not extend"):
        Plans(second.parts)


def test_an_unknown_chunk_is_an_index_error(paths: OutputPaths):
    plans = Plans.open(paths)

    with pytest.raises(IndexError):
        plans.chunk(plans.num_chunks)
