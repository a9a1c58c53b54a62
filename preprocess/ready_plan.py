"""The plan of a run: the stored one if it is this run's, a new one if there is none, a refusal if it is another's."""

from collections.abc import Callable
from dataclasses import replace

from ..core.errors import ConfigError, OutputError
from ..core.paths import OutputPaths
from ..writers.ledger import read_journals
from . import events
from .audio.header import AudioHeader, read_header
from .audio.probe import probe
from .changes import changes_text, find_changes, known_clips
from .config import AudioSettings, RunConfig
from .corpora.clip import Clip
from .corpora.registry import read_corpora
from .encode.protocol import DeviceKind, EncoderInfo
from .encode.registry import tokenizer_folder
from .plan.identity import Identity, differences
from .plan.make import make_plan, read_clips
from .plan.plan import Plan
from .plan.signature import changed_corpora, corpora_signature
from .score.tokenizer import SvsTokenizer
from .stored_facts import StoredFacts


def check_sample_rate(config: RunConfig, info: EncoderInfo) -> None:
    """The sample rate is the checkpoint's. Raises ConfigError if the configuration says otherwise."""
    if config.sample_rate is not None and config.sample_rate != info.spec.sample_rate:
        raise ConfigError(
            f"sample_rate is {config.sample_rate} Hz, but the VAE of {info.checkpoint} takes {info.spec.sample_rate} Hz",
            why="audio at another rate would be encoded at a wrong pitch and speed, without an error",
            fix=f"leave sample_rate out, or set it to {info.spec.sample_rate}",
        )


def ready_plan(
    config: RunConfig,
    info: EncoderInfo,
    device: DeviceKind,
    paths: OutputPaths,
    on_event: events.EventSink,
    *,
    rescan: bool = False,
) -> tuple[Plan, bool]:
    """The plan of this run, and whether it was there before.

    A stored plan is taken without reading the corpora when their signature (paths, sizes and times of annotation
    files and song folders) is unchanged. Otherwise, and with ``rescan``, they are read again, and the plan stands if
    no clip was added, changed, or is gone.

    Raises OutputError if the output folder belongs to a run with another identity or with other clips.
    """
    tokenizer = SvsTokenizer.load(tokenizer_folder(config.encoder))
    identity = Identity.of(config, info, tokenizer.hash, device)
    if not paths.plan.exists():
        clips = read_corpora(config, on_event)
        look_at = _probe(config.audio)
        return make_plan(config, info, tokenizer, clips, probe=look_at, work_dir=paths.work, on_event=on_event), False
    stored = Plan.open(paths.plan)
    _refuse_other_identity(paths, stored.identity, identity)
    changed = changed_corpora(stored.head.corpora_signature, corpora_signature(config))
    if changed or rescan:
        reason = f", since {'; '.join(changed)}" if changed else ""
        on_event(events.Notice("info", f"reading the corpora again{reason}"))
        _refuse_other_clips(config, info, tokenizer, paths, stored, on_event)
    return stored, True


def _refuse_other_identity(paths: OutputPaths, old: Identity, new: Identity) -> None:
    lines = differences(old, new)
    if lines:
        raise OutputError(
            f"{paths.root} holds a run with other settings:\n    " + "\n    ".join(lines),
            why="rows of both would be mixed in one dataset",
            fix="use another output_dir, restore the settings, or start anew with --overwrite",
        )


def _refuse_other_clips(
    config: RunConfig,
    info: EncoderInfo,
    tokenizer: SvsTokenizer,
    paths: OutputPaths,
    plan: Plan,
    on_event: events.EventSink,
) -> None:
    clips, look_at = read_corpora(config, on_event), _probe(config.audio)
    with read_clips(info, tokenizer, clips, probe=look_at, work_dir=paths.work, on_event=on_event) as table:
        known = known_clips(plan)
        facts = StoredFacts(paths.root, read_journals(paths, plan.fingerprint).done)
        found = find_changes(table, known, facts)
        if found.is_equal:
            on_event(events.Notice("info", f"the plan stands: {found.text()}"))
            return
        raise OutputError(
            f"the corpora have changed since {paths.root} was planned: {changes_text(table, plan, known, found)}",
            why="a plan is fixed: its chunks, done or not, name the clips of that time",
            fix="restore the corpora, use another output_dir, or start anew with --overwrite",
        )


def _probe(settings: AudioSettings) -> Callable[[Clip], AudioHeader]:
    def look_at(clip: Clip) -> AudioHeader:
        warnings = probe(clip.audio_path, clip.audio_root, settings)
        return replace(read_header(clip.audio_path), warnings=warnings)

    return look_at
