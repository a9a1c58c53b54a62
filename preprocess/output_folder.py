"""What an output folder holds before a run: nothing, a run of ours, or somebody else's work that must not be touched."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import OutputError
from ..core.paths import OutputPaths, parse_shard_name
from ..writers.atomic import DISK_ERRNOS, disk_errors

_SCRATCH = ("planning-*", "replan", "plan.arrow.*.part", "reuse-*.arrow")
_SIGNS = ("ready-*",)
_LOGS = ("stacks-*.txt", "worker-*.log")


def check_output(paths: OutputPaths) -> None:
    """Refuse a folder whose dataset isn't a run of ours; --overwrite is never meant for such a one, either.

    Raises OutputError.
    """
    try:
        is_file = paths.root.exists() and not paths.root.is_dir()
    except OSError as error:  # a name too long, a loop of links
        raise _cannot_be_made(paths, error) from error
    if is_file:
        raise OutputError(f"output_dir {paths.root} is a file", fix="name another folder")
    if paths.provenance.exists() or (paths.plan.exists() and paths.state.exists()):
        return
    foreign = [paths.card.name] if paths.card.exists() else []  # ours comes after provenance.json
    if not paths.plan.exists():
        foreign = [*(path.name for path in _dataset_files(paths)), *foreign]
    if foreign:
        raise OutputError(
            f"{paths.root} holds {_listing(foreign)}, but no provenance.json of ours",
            why="somebody else's files would be taken for ours, or overwritten",
            fix="name another output_dir, or move these files away",
        )


@contextlib.contextmanager
def output_folder(paths: OutputPaths) -> Iterator[None]:
    """Make the folder and its working folder; take them away again if neither a plan nor headers came to lie there.

    Raises OutputError if they can't be made, DiskError if the disk refuses them, or anything written inside (the plan,
    a worker's board): a full disk is exit code 75 wherever it shows first.
    """
    existed = paths.root.exists()
    _create(paths)
    try:
        with disk_errors(paths.root):
            yield
    except BaseException:
        if not existed and not (paths.plan.exists() or paths.headers.exists()):
            shutil.rmtree(paths.root, ignore_errors=True)
        raise


def _create(paths: OutputPaths) -> None:
    with disk_errors(paths.root):
        try:
            paths.work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno in DISK_ERRNOS:
                raise
            raise _cannot_be_made(paths, error) from error


def _cannot_be_made(paths: OutputPaths, error: OSError) -> OutputError:
    text = f"output_dir {paths.root} can't be made: {error.strerror}"
    return OutputError(text, why="the dataset and what a resume needs lie there", fix="name another output_dir")


def describe_output(paths: OutputPaths) -> str | None:
    """What ``clear_output`` will delete, for people; None if there is nothing of ours."""
    files = list(_dataset_files(paths))
    shards = [path for path in files if parse_shard_name(path.name)]
    if not files and not paths.plan.exists():
        return None
    gigabytes = sum(path.stat().st_size for path in shards) / 1e9
    noun = "shard" if len(shards) == 1 else "shards"
    return f"{len(shards)} {noun} ({gigabytes:.3g} GB), metadata, plan and journals in {paths.root}"


def clear_output(paths: OutputPaths) -> None:
    """Delete a run of ours; other files in the folder stay.

    The lock stays: it is held by who calls this. So do the audio's headers, which are the same for the next plan.
    """
    for path in _dataset_files(paths):
        path.unlink()
    for path in list(paths.work.iterdir()):
        if path.name.startswith("lock-") or path == paths.headers:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def sweep(paths: OutputPaths, *, keep_signs: bool = False) -> None:
    """Delete what killed runs left in the working folder: spills of plans half made, empty logs, signs to begin.

    The caller holds the locks of all parts. Shards and journals are the business of ``writers/salvage.py``.
    """
    for pattern in _SCRATCH if keep_signs else (*_SCRATCH, *_SIGNS):
        for path in paths.work.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    for pattern in _LOGS:
        for path in paths.work.glob(pattern):
            if path.stat().st_size == 0:
                path.unlink()


def _dataset_files(paths: OutputPaths) -> Iterator[Path]:
    metadata = (paths.state, paths.dataset_info, paths.index, paths.skipped, paths.provenance)
    yield from sorted(path for path in paths.root.glob("data-*.arrow"))
    yield from (path for path in metadata if path.exists())
    if paths.provenance.exists() and paths.card.exists():
        yield paths.card


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
