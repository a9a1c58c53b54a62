"""``CutLimits``: the bounds on encode batches and chunks, as plain numbers; the *shape* of a plan.

Made once from the configuration and the encoder's constants, stored in the plan, and taken from there by a resume. They
never come from a measurement, from free memory or from the number of workers: a plan must not depend on those.
"""

import json
from dataclasses import asdict, dataclass

from ..config import LimitSettings
from ..encode.protocol import DeviceKind, EncoderInfo

CHUNK_WORK_SECONDS = 60
"""What a chunk may take at the encoder's stated rate: the work that a kill can cost."""

MAX_BATCH_CLIPS: dict[DeviceKind, int] = {"cpu": 15, "cuda": 128}
"""Clips per encoder call unless the configuration says less. A CPU's compiled graph for 2 to 15 clips is another one
than from 16 on (measured), with other bits; a GPU is bounded by samples long before 128 clips of usual length."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CutLimits:
    """Bounds on batches and chunks; only a single clip that is larger than a bound may exceed it."""

    patch_samples: int
    """Audio samples per patch: what each clip is padded to."""
    max_batch_clips: int
    max_batch_samples: int
    """Padded samples of one encoder call."""
    max_whole_samples: int
    """A clip of more samples is encoded in windows, alone."""
    max_chunk_rows: int
    max_chunk_bytes: int
    max_chunk_samples: int | None
    """Audio samples of a chunk; None = no bound (an encoder of unbounded rate)."""

    @classmethod
    def of(cls, settings: LimitSettings, info: EncoderInfo, device: DeviceKind) -> "CutLimits":
        """The limits of a run: the encoder's constants, lowered by what the configuration says."""
        rate = info.stated_rate
        return cls(
            patch_samples=info.spec.patch_samples,
            max_batch_clips=min(settings.max_batch_clips or MAX_BATCH_CLIPS[device], MAX_BATCH_CLIPS[device]),
            max_batch_samples=min(settings.max_batch_samples or info.max_batch_samples, info.max_batch_samples),
            max_whole_samples=info.max_whole_samples,
            max_chunk_rows=settings.max_chunk_rows,
            max_chunk_bytes=settings.max_chunk_bytes,
            max_chunk_samples=None if rate is None else int(CHUNK_WORK_SECONDS * rate * info.spec.sample_rate),
        )

    def to_json(self) -> str:
        """JSON with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "CutLimits":
        """The inverse of ``to_json``; raises ``ValueError`` or ``TypeError`` for anything else."""
        return cls(**json.loads(text))
