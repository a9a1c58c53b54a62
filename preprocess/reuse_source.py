"""From which dataset a run may take latents: the checks of ``--reuse OLD_OUT`` and the index that its workers read.

Refused before any worker starts: a folder that is no finished dataset, the run's own folder, and a dataset whose latents
were made otherwise. That its shards are whole is `prep verify`'s business: here only what is read is looked at.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from ..core.errors import OutputError, UsageError
from ..core.paths import WHOLE, OutputPaths, Part
from ..writers.atomic import disk_errors
from ..writers.ledger import Journal
from ..writers.provenance import read_provenance
from ..writers.verify_state import read_state
from .config import RunConfig
from .events import EventSink, Notice
from .latent_settings import latent_differences
from .plan.identity import Scalar
from .plan.plans import Plans
from .reuse_index import BlockPlace, dataset_blocks, write_reuse_index


def check_reuse(source: Path, output_dir: Path, wanted: Mapping[str, Scalar]) -> None:
    """Refuse a dataset whose latents are not what this run would make, ``wanted`` (see ``latent_settings``).

    Raises OutputError, and UsageError for the run's own folder.
    """
    if source.resolve() == output_dir.resolve():
        raise UsageError(
            f"--reuse names the output folder itself, {source}",
            why="latents are taken from another, finished dataset",
            fix="name the older one; for new clips in this one there is --extend",
        )
    lines = latent_differences(_settings_of(OutputPaths(source)), wanted)
    if lines:
        raise OutputError(
            f"the latents of {source} were made with other settings:\n    " + "\n    ".join(lines),
            why="latents of two kinds in one dataset can't be told apart later",
            fix="restore the settings, or leave --reuse out: then everything is encoded",
        )


def with_form_of_source(config: RunConfig, source: Path) -> RunConfig:
    """With ``compile: auto`` the encoder runs as it did for the dataset whose latents are reused.

    Raises OutputError if that dataset isn't finished.
    """
    if config.encoder.compile != "auto" or source.resolve() == config.output_dir.resolve():
        return config  # the second is refused by check_reuse
    compiled = _settings_of(OutputPaths(source)).get("encoder.compiled") == "compiled"
    encoder = config.encoder.model_copy(update={"compile": "always" if compiled else "never"})
    return config.model_copy(update={"encoder": encoder})


def _settings_of(paths: OutputPaths) -> Mapping[str, Scalar]:
    try:
        settings = read_provenance(paths.provenance).latents
    except OSError as error:
        raise _unfinished(paths, f"{paths.provenance} can't be read: {error.strerror}") from error
    if not settings:
        raise _unfinished(paths, f"{paths.provenance.name} doesn't say how its latents were made")
    return settings


def _unfinished(paths: OutputPaths, what: str) -> OutputError:
    return OutputError(
        f"latents can't be reused from {paths.root}: {what}",
        why="only of a finished dataset is it known how they were made",
        fix="let its own run finish, or leave --reuse out",
    )


@contextmanager
def reuse_index(
    source: Path | None, own: Sequence[BlockPlace], paths: OutputPaths, on_event: EventSink, part: Part = WHOLE
) -> Iterator[Path | None]:
    """The stored index of ``own`` blocks and of a finished dataset, to be removed at the end of the context; None if
    there is neither.

    Raises OutputError if the dataset isn't finished or can't be read, DiskError if the disk refuses.
    """
    if source is None and not own:
        yield None
        return
    blocks = own if source is None else chain(own, _blocks_of(OutputPaths(source)))
    path = paths.reuse_index(part)
    with disk_errors(path):
        known = write_reuse_index(path, blocks)
    where = " and ".join(str(folder) for folder in (paths.root if own else None, source) if folder is not None)
    on_event(Notice("info", f"latents are reused where audio files are among the {known:,} of {where}"))
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _blocks_of(paths: OutputPaths) -> Iterator[BlockPlace]:
    state = read_state(paths, [])
    if state is None:
        raise _unfinished(paths, f"it has no readable {paths.state.name}")
    return dataset_blocks(paths.root.absolute() / name for name in state.names)


def own_blocks(paths: OutputPaths, plans: Plans, journal: Journal) -> list[BlockPlace]:
    """The blocks of a dataset that is being extended: a clip that was only relabelled need not be encoded again."""
    if len(plans.parts) == 1:
        return []
    return [
        BlockPlace(paths.root.absolute() / block.shard, block.record.offset)
        for block in journal.done.values()
        if block.record.rows
    ]
