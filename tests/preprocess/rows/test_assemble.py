from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.core.schema import ANNOTATION_COLUMNS, COLUMNS, IDENTITY_COLUMNS, row_schema
from latentprep.core.units import LatentSpec
from latentprep.preprocess.rows.assemble import assemble
from tests.writers.builders import annotations

GOLDEN = Path(__file__).parents[2] / "golden" / "expected.parquet"
VOXCPM2 = LatentSpec(sample_rate=16_000, hop_length=640, patch_size=4, latent_dim=64)


def nested_rows(clips: pa.RecordBatch, prompts, counts, texts, durations, latents, spec: LatentSpec) -> pa.RecordBatch:
    """The plain way, one dict of nested lists a row, as the page on the format tells it."""
    rows = []
    zipped = zip(clips.to_pylist(), prompts, counts, texts, durations, latents, strict=True)
    for clip, prompt, count, text, duration, latent in zipped:
        k, n = len(prompt), len(latent) // spec.patch_size
        zero_patch = [[0.0] * spec.latent_dim] * spec.patch_size
        patches = latent.reshape(n, spec.patch_size, spec.latent_dim).tolist()
        rows.append(
            clip
            | {
                "packed_text_tokens": [*prompt.tolist(), *[0] * n, 102],
                "audio_feats": [*[zero_patch] * k, *patches, zero_patch],
                "text_mask": [*[1] * k, *[0] * n, 1],
                "audio_mask": [*[0] * k, *[1] * n, 0],
                "loss_mask": [*[0] * k, *[1] * n, 0],
                "labels": [*[0] * (k + n - 1), 1, 0],
                "audio_duration": len(latent) * spec.hop_length / spec.sample_rate,
                "estimated_duration": duration,
                "text_token_count": count,
                "total_length": k + n + 1,
                "svs_prompt": text,
            }
        )
    return pa.RecordBatch.from_arrays(
        [pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()], schema=row_schema()
    )


@st.composite
def clips(draw):
    """Arguments of ``assemble`` for 0 to 5 clips of a random geometry."""
    spec = LatentSpec(
        sample_rate=draw(st.sampled_from([16_000, 44_100])),
        hop_length=draw(st.integers(1, 700)),
        patch_size=draw(st.integers(1, 4)),
        latent_dim=draw(st.integers(1, 4)),
    )
    num = draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    frames = [draw(st.integers(1, 4)) * spec.patch_size for _ in range(num)]
    return (
        annotations(num, draw(st.integers(0, 1000))),
        [rng.integers(1, 1000, draw(st.integers(0, 5))).astype(np.int32) for _ in range(num)],
        draw(st.lists(st.integers(0, 9), min_size=num, max_size=num)),
        draw(st.lists(st.text(max_size=5), min_size=num, max_size=num)),
        draw(st.lists(st.floats(0, 100), min_size=num, max_size=num)),
        [rng.standard_normal((count, spec.latent_dim)).astype(np.float16) for count in frames],
        spec,
    )


@given(clips())
@settings(max_examples=60, deadline=None)
def test_offsets_and_nested_lists_give_equal_batches(arguments):
    """The fast way must not be another format."""
    batch = assemble(*arguments)

    assert nested_rows(*arguments).equals(batch)
    assert batch.schema.equals(row_schema(), check_metadata=True)
    batch.validate(full=True)


def golden_rows() -> pa.RecordBatch:
    return pq.read_table(GOLDEN).cast(row_schema()).combine_chunks().to_batches()[0]


def golden_arguments(batch: pa.RecordBatch):
    """What the rows were made of, taken out of them: prompt ids before the first patch, latents where audio is."""
    prompts, latents = [], []
    for row in batch.select(["packed_text_tokens", "audio_mask", "audio_feats"]).to_pylist():
        start, count = row["audio_mask"].index(1), sum(row["audio_mask"])
        prompts.append(np.array(row["packed_text_tokens"][:start], np.int32))
        latents.append(np.array(row["audio_feats"][start : start + count], np.float16).reshape(-1, VOXCPM2.latent_dim))
    taken = (batch.column(n).to_pylist() for n in ("text_token_count", "svs_prompt", "estimated_duration"))
    return batch.select([*IDENTITY_COLUMNS, *ANNOTATION_COLUMNS]), prompts, *taken, latents, VOXCPM2


def test_the_golden_rows_are_rebuilt_from_what_they_were_made_of():
    """The upstream tool's rows, column by column, to the bit."""
    golden = golden_rows()
    batch = assemble(*golden_arguments(golden))

    for name in COLUMNS:
        assert golden.column(name).equals(batch.column(name)), name


def test_the_order_of_the_annotation_columns_and_further_ones_do_not_matter():
    """The plan stores more about a clip than a row takes over."""
    clips, *rest = golden_arguments(golden_rows())
    shuffled = clips.select(clips.schema.names[::-1]).append_column("audio_path", pa.array(["x"] * clips.num_rows))

    assert assemble(clips, *rest).equals(assemble(shuffled, *rest))


def arguments(**changes):
    given = {
        "annotations": annotations(2),
        "prompts": [np.array([5, 101], np.int32)] * 2,
        "text_token_counts": [1, 1],
        "prompt_texts": ["a", "b"],
        "estimated_durations": [1.0, 2.0],
        "latents": [np.ones((8, 64), np.float16)] * 2,
        "spec": VOXCPM2,
    }
    return given | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt_texts": ["a"]}, "differ in number"),
        ({"latents": [np.ones((8, 64), np.float16)]}, "differ in number"),
        ({"latents": [np.ones((8, 64), np.float16), np.ones((7, 64), np.float16)]}, "clip 1"),
        ({"latents": [np.ones((0, 64), np.float16)] * 2}, "clip 0"),
        ({"latents": [np.ones((8, 32), np.float16)] * 2}, r"float16 \[8, 32\]"),
        ({"latents": [np.ones((8, 64), np.float32)] * 2}, "float32"),
        ({"prompt_texts": ["a", None]}, "svs_prompt holds 1 nulls"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, message):
    """A row that is one patch short would train, and train wrongly."""
    with pytest.raises(ValueError, match=message):
        assemble(**arguments(**changes))


def test_a_null_in_an_annotation_is_refused():
    clips = annotations(2)
    holey = clips.set_column(clips.schema.get_field_index("word"), "word", pa.array([["a"], [None]]))

    with pytest.raises(ValueError, match="word holds 1 nulls"):
        assemble(**arguments(annotations=holey))


def test_more_values_than_offsets_can_count_are_refused():
    """2^31 latents are 4 GiB: the offsets would wrap around without a word."""
    spec = LatentSpec(sample_rate=16_000, hop_length=640, patch_size=1, latent_dim=1 << 30)
    latents = [np.broadcast_to(np.float16(0), (1, 1 << 30))] * 2

    with pytest.raises(ValueError, match="32-bit offsets"):
        assemble(**arguments(latents=latents, spec=spec))
