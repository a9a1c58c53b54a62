"""What makes two runs the same run: a flat list of named values, compared on resume, hashed into the plan's seed.

Identity is what decides the content of rows: corpora and their options, the encoder's weights and geometry, precision,
kind of device, tokenizer, what is accepted, ``max_samples``, the row format. Paths count as the configuration spells
them, so that a project folder may move as a whole; which files lie there is the corpora signature's business.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import xxhash

from ...core.schema import FORMAT_VERSION
from ..config import RunConfig
from ..encode.compile_choice import Form
from ..encode.protocol import DeviceKind, EncoderInfo

Scalar = str | int | float | bool | None

_ABSENT = "(not set)"


@dataclass(frozen=True)
class Identity:
    """Dotted names and their values, e.g. ``datasets.0.name``: "choir". Two runs are one if these are equal."""

    values: Mapping[str, Scalar]

    @classmethod
    def of(
        cls, config: RunConfig, info: EncoderInfo, tokenizer_hash: str, device: DeviceKind, form: Form = "eager"
    ) -> "Identity":
        """The identity of a run whose encoder runs in ``form``: a compiled one makes other bits."""
        settings = config.model_dump(mode="json", include={"datasets", "audio", "score", "max_samples"})
        encoder = {
            "name": info.name,
            "weights": info.weights_hash,
            "precision": effective_precision(config, device),
            "compiled": form,
            "sample_rate": info.spec.sample_rate,
            "hop_length": info.spec.hop_length,
            "patch_size": info.spec.patch_size,
            "latent_dim": info.spec.latent_dim,
        }
        run = {"row_format": FORMAT_VERSION, "device": device, "tokenizer": tokenizer_hash, "encoder": encoder}
        return cls(_flat(run | settings))

    def to_json(self) -> str:
        """JSON with sorted keys: equal identities have equal texts."""
        return json.dumps(dict(self.values), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Identity":
        """The inverse of ``to_json``."""
        return cls(json.loads(text))

    @property
    def form(self) -> Form:
        """How the encoder runs."""
        return "compiled" if self.values.get("encoder.compiled") == "compiled" else "eager"

    @cached_property
    def seed(self) -> int:
        """64 bits that order what has no order in the plan."""
        return xxhash.xxh3_64_intdigest(self.to_json().encode())


def effective_precision(config: RunConfig, device: DeviceKind) -> str:
    """The precision that a run really computes in: a CPU knows float32 only."""
    return "float32" if device == "cpu" else config.encoder.precision


def differences(old: Identity, new: Identity) -> list[str]:
    """One line for people for each value that differs: its name, the old and the new value."""
    names = sorted(old.values.keys() | new.values.keys())
    pairs = [(name, old.values.get(name, _ABSENT), new.values.get(name, _ABSENT)) for name in names]
    return [
        f"{_label(name, old, new)}: was {before!r}, is {after!r}" for name, before, after in pairs if before != after
    ]


def _label(name: str, old: Identity, new: Identity) -> str:
    """``datasets.0.audio_root`` with the corpus' name, since nobody counts corpora from 0."""
    if not name.startswith("datasets."):
        return name
    key = ".".join([*name.split(".")[:2], "name"])
    corpus = new.values.get(key, old.values.get(key))
    return f"{name} (corpus {corpus})"


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Scalar]:
    values: dict[str, Scalar] = {}
    for key, value in tree.items():
        if isinstance(value, list | tuple):
            value = {str(number): item for number, item in enumerate(value)}
        if isinstance(value, Mapping):
            values |= _flat(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values
