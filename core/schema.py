"""The 23 columns of a row: names, order, Arrow types, and the Hugging Face features in the spelling that every
version of ``datasets`` reads.

``datasets`` 4 and newer write ``"_type": "List"``, which 3.x cannot open; ``"_type": "Sequence"`` opens in both
(tried with 3.6 and 5.2). docs/format.md is the page to this file; a test compares the two.
"""

import json
from typing import Any

import pyarrow as pa

FORMAT_VERSION = 1
"""Bumped on any change of what a row or a shard holds."""

AUDIO_START_ID = 101
AUDIO_END_ID = 102
AUDIO_PROMPT_START_ID = 103
AUDIO_PROMPT_END_ID = 104

_int32_list = pa.list_(pa.field("item", pa.int32()))
_int64_list = pa.list_(pa.field("item", pa.int64()))
_double_list = pa.list_(pa.field("item", pa.float64()))
_string_list = pa.list_(pa.field("item", pa.string()))
_latents = pa.list_(pa.field("item", pa.list_(pa.field("item", pa.list_(pa.field("item", pa.float16()))))))

COLUMNS: dict[str, pa.DataType] = {
    "packed_text_tokens": _int32_list,  # [L]
    "audio_feats": _latents,  # [L, P, D]
    "text_mask": _int32_list,  # [L]
    "audio_mask": _int32_list,  # [L]
    "loss_mask": _int32_list,  # [L]
    "labels": _int32_list,  # [L]
    "audio_duration": pa.float64(),
    "estimated_duration": pa.float64(),
    "text_token_count": pa.int64(),
    "total_length": pa.int64(),
    "item_name": pa.string(),
    "song_name": pa.string(),
    "song_folder": pa.string(),
    "dataset_name": pa.string(),
    "svs_prompt": pa.string(),
    "bpm": pa.int64(),
    "word": _string_list,
    "pitch": _int64_list,
    "pitch_dur": _double_list,
    "note": _string_list,
    "pitch2word": _int64_list,
    "word_dur": _double_list,
    "has_score": pa.bool_(),
}

ANNOTATION_COLUMNS = ("word", "pitch", "pitch_dur", "note", "pitch2word", "word_dur", "bpm", "has_score")
"""Columns that a row takes over from its clip unchanged."""

IDENTITY_COLUMNS = ("item_name", "song_name", "song_folder", "dataset_name")
"""Columns that say which clip a row is made of."""

_DTYPES = {pa.float16(): "float16", pa.float64(): "float64", pa.int32(): "int32", pa.int64(): "int64"}
_DTYPES |= {pa.string(): "string", pa.bool_(): "bool"}


def _feature(arrow_type: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(arrow_type):
        return {"feature": _feature(arrow_type.value_type), "_type": "Sequence"}
    return {"dtype": _DTYPES[arrow_type], "_type": "Value"}


def features() -> dict[str, Any]:
    """The Hugging Face features of a row, as dataset_info.json and the shards' schema metadata hold them."""
    return {name: _feature(arrow_type) for name, arrow_type in COLUMNS.items()}


def row_schema() -> pa.Schema:
    """Arrow schema of a shard, with the ``huggingface`` metadata that ``datasets`` looks for."""
    metadata = {"huggingface": json.dumps({"info": {"features": features()}})}
    return pa.schema([pa.field(name, arrow_type) for name, arrow_type in COLUMNS.items()], metadata=metadata)
