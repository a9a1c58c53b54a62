"""The plan of a run: the stored one if it is this run's, a new one if there is none, a refusal if it is another's."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path

from ..core.errors import OutputError
from ..core.paths import OutputPaths
from ..writers.ledger import read_journals
from . import events
from .audio.header import AudioHeader, read_header
from .audio.probe import probe
from .changes import changes_text, find_changes, known_clips
from .config import AudioSettings
from .corpora.clip import Clip
from .corpora.registry import read_corpora
from .encode.compile_choice import kept_form
from .encode.registry import tokenizer_folder
from .plan.checksum import is_damaged
from .plan.extend import extend_plan
from .plan.header_cache import HeaderCache
from .plan.identity import Identity, differences
from .plan.make import make_plan, read_clips
from .plan.plans import Plans
from .plan.signature import changed_corpora, corpora_signature
from .score.tokenizer import SvsTokenizer
from .setup import RunSetup
from .stored_facts import StoredFacts
from .supersede import is_complete


def ready_plans(
    setup: RunSetup,
    on_event: events.EventSink,
    *,
    rescan: bool = False,
    extend: bool = False,
) -> tuple[Plans, bool]:
    """The plan of this run, with those that it extends, and whether it was there before.

    A stored plan is taken without reading the corpora when their signature (paths, sizes and times of annotation
    files and song folders) is unchanged. Otherwise, with ``rescan`` and with ``extend`` they are read again, and the
    plan stands if no clip was added, changed, or is gone. If it doesn't, ``extend`` plans what is new, provided that
    the dataset is finished; else the earlier run is finished first. A damaged plan is made anew out of the corpora;
    whether it is the same one is for ``repair`` to see.

    Raises OutputError if the output folder belongs to a run with another identity or with other clips.
    """
    config, info, paths = setup.config, setup.info, setup.paths
    tokenizer = SvsTokenizer.load(tokenizer_folder(config.encoder))
    _put_damaged_plan_aside(paths, on_event)
    if not paths.plan.exists():
        if extend:
            _refuse_without_plan(paths)
        clips = read_corpora(config, on_event)
        with HeaderCache(paths.headers) as headers:
            look_at = _probe(config.audio, headers)
            make_plan(config, info, tokenizer, clips, probe=look_at, work_dir=paths.work, on_event=on_event)
        return Plans.open(paths), False
    stored = stored_plans(setup, tokenizer)
    journal = read_journals(paths, stored.fingerprints)
    if extend and not is_complete(stored, journal):
        text = "an earlier run is not finished; it goes on first, then --extend looks for changes the next time"
        on_event(events.Notice("warning", text))
        return stored, True
    signature = corpora_signature(config)
    changed = changed_corpora(stored.head.corpora_signature, signature)
    if not (changed or rescan or extend):
        return stored, True
    reason = f", since {'; '.join(changed)}" if changed else ""
    on_event(events.Notice("info", f"reading the corpora again{reason}"))
    clips = read_corpora(config, on_event)
    with (
        HeaderCache(paths.headers) as headers,
        read_clips(
            info,
            tokenizer,
            clips,
            probe=_probe(config.audio, headers),
            work_dir=paths.work,
            on_event=on_event,
        ) as table,
    ):
        known = known_clips(stored)
        found = find_changes(table, known, StoredFacts(paths.root, journal.done))
        if found.is_equal:
            on_event(events.Notice("info", f"the plan stands: {found.text()}"))
            return stored, True
        text = changes_text(table, stored, known, found)
        if not extend:
            raise _other_clips(paths, text, finished=is_complete(stored, journal))
        on_event(events.Notice("info", f"extending {paths.root}: {text}"))
        return extend_plan(config, info, paths, stored, table, known, found, signature), True


def stored_plans(setup: RunSetup, tokenizer: SvsTokenizer | None = None) -> Plans:
    """The plan that lies in the output folder; the corpora are not looked at.

    Raises OutputError if there is none, or if it is of a run with another identity.
    """
    config, info = setup.config, setup.info
    if not setup.paths.plan.exists():
        raise OutputError(
            f"there is no plan in {setup.paths.root}",
            why="parts are parts of a plan, which is made once, before they begin",
            fix="make it with `prep svs --plan-only` and the same configuration",
        )
    if damaged := [path for path in _plan_files(setup.paths) if is_damaged(path)]:
        raise OutputError(
            f"{damaged[0]} is damaged: its bytes are not those that were written",
            why="its parts would encode other clips than were planned",
            fix="give `prep svs --plan-only` with the same configuration, which makes it anew",
        )
    stored = Plans.open(setup.paths)
    tokenizer = tokenizer or SvsTokenizer.load(tokenizer_folder(config.encoder))
    form = kept_form(config.encoder, info, stored.identity.form)
    identity = Identity.of(config, info, tokenizer.hash, setup.devices.kind, form)
    _refuse_other_identity(setup.paths, stored.identity, identity)
    return stored


def _plan_files(paths: OutputPaths) -> list[Path]:
    """All plans of the dataset, oldest first."""
    return list(takewhile(Path.exists, (paths.extended_plan(number) for number in count(1))))


def _put_damaged_plan_aside(paths: OutputPaths, on_event: events.EventSink) -> None:
    files = _plan_files(paths)
    damaged = [path for path in files if is_damaged(path)]
    if damaged and len(files) > 1:
        raise OutputError(
            f"{damaged[0]} is damaged: its bytes are not those that were written",
            why="a dataset that was extended has several plans, and what the corpora were then can't be read again",
            fix=f"restore that file, or make a new dataset with --reuse {paths.root} and another output_dir",
        )
    for path in damaged:
        path.rename(path.with_name(path.name + ".damaged"))
        on_event(events.Notice("warning", f"{path.name} is damaged and put aside; it is made anew from the corpora"))


def _refuse_without_plan(paths: OutputPaths) -> None:
    if paths.provenance.exists():
        raise OutputError(
            f"{paths.root} can't be extended: its {paths.work.name} is gone",
            why="only the plan and the journal in there say which clip lies in which block",
            fix=f"make a new dataset with --reuse {paths.root} and another output_dir, which encodes only what is new;"
            f" or, with the corpora as they were, give the command without --extend: it makes {paths.work.name} anew",
        )


def _refuse_other_identity(paths: OutputPaths, old: Identity, new: Identity) -> None:
    lines = differences(old, new)
    if lines:
        raise OutputError(
            f"{paths.root} holds a run with other settings:\n    " + "\n    ".join(lines),
            why="rows of both would be mixed in one dataset",
            fix="use another output_dir, restore the settings, or start anew with --overwrite",
        )


def _other_clips(paths: OutputPaths, text: str, *, finished: bool) -> OutputError:
    way = "take the changes up with --extend" if finished else "let this run finish with the corpora as they were"
    return OutputError(
        f"the corpora have changed since {paths.root} was planned: {text}",
        why="a plan is fixed: its chunks, done or not, name the clips of that time",
        fix=f"{way}, restore the corpora, use another output_dir, or start anew with --overwrite",
    )


def _probe(settings: AudioSettings, headers: HeaderCache) -> Callable[[Clip], AudioHeader]:
    """Looks at a clip's file from outside, and opens it if its header isn't known."""

    def look_at(clip: Clip) -> AudioHeader:
        found = probe(clip.audio_path, clip.audio_root, settings)
        header = headers.find(clip.audio_path, found.file_size, found.mtime_ns)
        if header is None:
            header = read_header(clip.audio_path)
            headers.add(clip.audio_path, header)
        return replace(header, warnings=found.warnings) if found.warnings else header

    return look_at
