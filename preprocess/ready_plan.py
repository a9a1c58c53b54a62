"""The plan of a run: the stored one if it is this run's, a new one if there is none, a refusal if it is another's."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..core.errors import ConfigError, OutputError
from ..core.paths import OutputPaths
from . import events
from .audio.header import AudioHeader, read_header
from .audio.probe import probe
from .config import AudioSettings, RunConfig
from .corpora.clip import Clip
from .corpora.registry import read_corpora
from .encode.protocol import DeviceKind, EncoderInfo
from .encode.registry import tokenizer_folder
from .plan.identity import Identity, differences
from .plan.make import make_plan
from .plan.plan import Plan
from .plan.signature import changed_corpora, corpora_signature
from .score.tokenizer import SvsTokenizer


def check_sample_rate(config: RunConfig, info: EncoderInfo) -> None:
    """The sample rate is the checkpoint's. Raises ConfigError if the configuration says otherwise."""
    if config.sample_rate is not None and config.sample_rate != info.spec.sample_rate:
        raise ConfigError(
            f"sample_rate is {config.sample_rate} Hz, but the VAE of {info.checkpoint} takes {info.spec.sample_rate} Hz",
            why="audio at another rate would be encoded at a wrong pitch and speed, without an error",
            fix=f"leave sample_rate out, or set it to {info.spec.sample_rate}",
        )


def ready_plan(
    config: RunConfig, info: EncoderInfo, device: DeviceKind, paths: OutputPaths, on_event: events.EventSink
) -> tuple[Plan, bool]:
    """The plan of this run, and whether it was there before.

    A stored plan is taken without reading the corpora when their signature (paths, sizes and times of annotation
    files and song folders) is unchanged. Otherwise they are read again, and the plan stands if it comes out equal.

    Raises OutputError if the output folder belongs to a run with another identity or with other clips.
    """
    tokenizer = SvsTokenizer.load(tokenizer_folder(config.encoder))
    identity = Identity.of(config, info, tokenizer.hash, device)
    if not paths.plan.exists():
        return _make(config, info, tokenizer, paths.work, on_event), False
    stored = Plan.open(paths.plan)
    _refuse_other_identity(paths, stored.identity, identity)
    changed = changed_corpora(stored.head.corpora_signature, corpora_signature(config))
    if changed:
        on_event(events.Notice("info", f"reading the corpora again, since {'; '.join(changed)}"))
        _refuse_other_clips(paths, stored, _make_aside(config, info, tokenizer, paths, on_event), changed)
    return stored, True


def _make(
    config: RunConfig,
    info: EncoderInfo,
    tokenizer: SvsTokenizer,
    work_dir: Path,
    on_event: events.EventSink,
) -> Plan:
    clips = read_corpora(config, on_event)
    return make_plan(config, info, tokenizer, clips, probe=_probe(config.audio), work_dir=work_dir, on_event=on_event)


def _make_aside(
    config: RunConfig,
    info: EncoderInfo,
    tokenizer: SvsTokenizer,
    paths: OutputPaths,
    on_event: events.EventSink,
) -> Plan:
    folder = paths.work / "replan"
    folder.mkdir(exist_ok=True)
    return _make(config, info, tokenizer, folder, on_event)


def _refuse_other_identity(paths: OutputPaths, old: Identity, new: Identity) -> None:
    lines = differences(old, new)
    if lines:
        raise OutputError(
            f"{paths.root} holds a run with other settings:\n    " + "\n    ".join(lines),
            why="rows of both would be mixed in one dataset",
            fix="use another output_dir, restore the settings, or start anew with --overwrite",
        )


def _refuse_other_clips(paths: OutputPaths, old: Plan, new: Plan, changed: list[str]) -> None:
    if old.fingerprint == new.fingerprint:
        return
    raise OutputError(
        f"the corpora have changed since {paths.root} was planned: {'; '.join(changed)}\n"
        f"    planned then: {old.num_clips} clips and {old.num_refused} refused;"
        f" now: {new.num_clips} clips and {new.num_refused} refused",
        why="a plan is fixed: its chunks, done or not, name the clips of that time",
        fix="restore the corpora, use another output_dir, or start anew with --overwrite",
    )


def _probe(settings: AudioSettings) -> Callable[[Clip], AudioHeader]:
    def look_at(clip: Clip) -> AudioHeader:
        warnings = probe(clip.audio_path, clip.audio_root, settings)
        return replace(read_header(clip.audio_path), warnings=warnings)

    return look_at
