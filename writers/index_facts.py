"""From columns of a block to what the index says of its rows, and the guards for blocks of other tools."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..core.units import LatentSpec
from .index_file import PLAIN_ROW_FACTS

_NEEDED = ("total_length", "audio_duration", "dataset_name", "song_name", "item_name")
_MASK, _SCORED, _LATENTS = "audio_mask", "has_score", "audio_feats"


def needed_columns(schema: pa.Schema, spec: LatentSpec | None) -> tuple[str, ...]:
    """Columns that ``row_facts`` takes. Raises ValueError if ``schema`` lacks one.

    With the geometry of the latents a duration tells their frames; without it, 1 % of a row's bytes are read to count.
    """
    missing = [name for name in (*_NEEDED, _MASK, _LATENTS) if name not in schema.names]
    if missing:
        raise ValueError(f"its rows have no column {', '.join(missing)}")
    return (*_NEEDED, *(() if spec else (_MASK,)), *((_SCORED,) if _SCORED in schema.names else ()))


def row_facts(columns: Mapping[str, pa.Array], patch_size: int, spec: LatentSpec | None) -> pa.RecordBatch:
    """What the index says of the rows of one block. Raises ValueError for nulls and for lengths that can't be."""
    nulls = [name for name, column in columns.items() if column.null_count]
    if nulls:
        raise ValueError(f"column {nulls[0]} holds nulls")
    seconds = columns["audio_duration"].cast(pa.float64()).to_numpy()
    patches = _patches_of_seconds(seconds, spec) if spec else _patches_of_mask(columns[_MASK])
    tokens = columns["total_length"].cast(pa.int64()).to_numpy()
    if (tokens < 1).any() or (patches > tokens).any() or not np.isfinite(seconds).all():
        raise ValueError("a row's length, patches and duration contradict each other")
    scored = columns.get(_SCORED)
    facts = {
        "tokens": pa.array(tokens.astype(np.uint32)),
        "frames": pa.array((patches * patch_size).astype(np.uint32)),
        "seconds": pa.array(seconds.astype(np.float32)),
        "has_score": scored if scored is not None else pa.array(np.ones(len(tokens), np.bool_)),
        "corpus": columns["dataset_name"].cast(pa.string()),
        "song": columns["song_name"].cast(pa.string()),
        "item": columns["item_name"].cast(pa.string()),
    }
    return pa.RecordBatch.from_arrays([facts[name] for name in PLAIN_ROW_FACTS.names], schema=PLAIN_ROW_FACTS)


def latent_shape(batch: pa.RecordBatch) -> tuple[int, int]:
    """(patch size, latent dim) of a block's rows. Raises ValueError if they have none."""
    patches = batch.column(_LATENTS).flatten()
    if not len(patches):
        raise ValueError("its rows have no latents")
    frames = patches.flatten()
    return len(frames) // len(patches), len(frames.flatten()) // max(1, len(frames))


def _patches_of_seconds(seconds: npt.NDArray[np.float64], spec: LatentSpec) -> npt.NDArray[np.int64]:
    return np.rint(seconds * spec.frame_rate / spec.patch_size).astype(np.int64)


def _patches_of_mask(mask: pa.Array) -> npt.NDArray[np.int64]:
    """[R] ones of each row."""
    bounds = mask.offsets.to_numpy().astype(np.int64)
    total = np.concatenate([[0], np.cumsum(mask.flatten().to_numpy(), dtype=np.int64)])
    return np.diff(total[bounds - bounds[0]])
