"""Clips, encoders, configurations and limits for the tests of the plan."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from latentprep.core.errors import Fault, FaultCode, Stage
from latentprep.core.units import LatentSpec
from latentprep.preprocess.audio.header import AudioHeader
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.corpora.clip import Clip, RefusedClip
from latentprep.preprocess.encode.protocol import EncoderInfo
from latentprep.preprocess.events import Event
from latentprep.preprocess.plan.limits import CutLimits
from latentprep.preprocess.plan.make import make_plan
from latentprep.preprocess.plan.plan import Plan
from latentprep.preprocess.plan.scan import Probe
from latentprep.preprocess.score.tokenizer import SvsTokenizer

TOKENIZER_FOLDER = Path(__file__).parents[3] / "preprocess/encode/tiny"
SPEC = LatentSpec(sample_rate=16000, hop_length=640, patch_size=4, latent_dim=64)
PATCH = SPEC.patch_samples


def header(**changes: Any) -> AudioHeader:
    """What a header says: 10 s of mono at 16 kHz, unless changed."""
    values = {"num_frames": 160_000, "sample_rate": 16_000, "channels": 1, "file_size": 1_000_000, "mtime_ns": 1}
    return AudioHeader(**values | changes)


def clip(item: str = "a", **changes: Any) -> Clip:
    """A scored clip of two words."""
    fields: dict[str, Any] = {
        "dataset_name": "choir",
        "item_name": item,
        "song_name": "song",
        "song_folder": "folder",
        "audio_path": f"audio/{item}.wav",
        "audio_root": "audio",
        "word": ("AP", "la"),
        "word_dur": (0.5, 0.25),
        "pitch": (0, 62),
        "note": ("<NOTE_4>", "<NOTE_8>"),
        "pitch2word": (0, 1),
        "bpm": 100,
        "has_score": True,
    }
    return Clip(**fields | changes)


def refused_clip(item: str = "bad", *, message: str = "no such file") -> RefusedClip:
    """A clip without audio."""
    fault = Fault(Stage.SCAN, FaultCode.MISSING_AUDIO, message)
    return RefusedClip(dataset_name="choir", item_name=item, audio_path=f"audio/{item}.wav", fault=fault)


def info(*, rate: float | None = None, max_batch_seconds: float = 32, max_whole_seconds: float = 60) -> EncoderInfo:
    """An encoder's facts, the dummy's unless a rate is given."""
    return EncoderInfo(
        name="dummy" if rate is None else "tiny",
        spec=SPEC,
        stated_rate=rate,
        max_batch_samples=int(max_batch_seconds * SPEC.sample_rate),
        max_whole_samples=int(max_whole_seconds * SPEC.sample_rate),
        weights_hash="0123",
        checkpoint="bundled",
    )


def config(out: Path = Path("out"), **changes: Any) -> RunConfig:
    """A run of one json_file corpus with the dummy encoder on the CPU."""
    corpus = {"type": "json_file", "name": "choir", "json_path": "choir.json", "audio_root": "audio"}
    values = {"datasets": [corpus], "encoder": {"name": "dummy"}, "output_dir": str(out), "device": "cpu"}
    return RunConfig.model_validate(values | changes)


def limits(**changes: Any) -> CutLimits:
    """Bounds of a CPU run with an encoder of unbounded rate."""
    values: dict[str, Any] = {
        "patch_samples": PATCH,
        "max_batch_clips": 15,
        "max_batch_samples": 32 * SPEC.sample_rate,
        "max_whole_samples": 60 * SPEC.sample_rate,
        "max_chunk_rows": 1024,
        "max_chunk_bytes": 32 << 20,
        "max_chunk_samples": None,
    }
    return CutLimits(**values | changes)


def by_item(seconds: Mapping[str, float], default: float = 10.0) -> Probe:
    """A probe that gives items these lengths."""
    return lambda c: header(num_frames=int(seconds.get(c.item_name, default) * 16000))


def plan_of(
    folder: Path,
    clips: Iterable[Clip | RefusedClip],
    *,
    probe: Probe = by_item({}),  # noqa: B008
    encoder: EncoderInfo | None = None,
    run: RunConfig | None = None,
    events: list[Event] | None = None,
) -> Plan:
    """Make and open a plan in ``folder``."""
    sink = (lambda event: None) if events is None else events.append
    tokenizer = SvsTokenizer.load(TOKENIZER_FOLDER)
    return make_plan(run or config(), encoder or info(), tokenizer, clips, probe=probe, work_dir=folder, on_event=sink)
