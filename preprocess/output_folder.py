"""What an output folder holds before a run: nothing, a run of ours, or somebody else's work that must not be touched."""

import contextlib
import itertools
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import OutputError
from ..core.paths import OutputPaths, parse_shard_name
from ..writers.atomic import DISK_ERRNOS, disk_errors
from ..writers.journal import read_journal
from .events import EventSink, Notice

_SCRATCH = ("planning-*", "replan", "plan*.arrow.*.part", "reuse-*.arrow")
_SIGNS = ("ready-*",)
_LOCK_SCRATCH = ("lock-*.new", "lock-*.beat", "lock-*.stale")
LOCK_SCRATCH_S = 3600.0
"""A run that asks for the lock right now has such a file for milliseconds."""
_METADATA = r"(state|dataset_info|provenance)\.json|index\.arrow|skipped\.jsonl|README\.md|report\.html"
_TEMPORARY = re.compile(rf"\.({_METADATA}|r\d+-[\w-]+\.jsonl|plan(-\d+)?\.arrow\.xxh3)\.\d+\.tmp")
"""What ``atomic_file`` calls a file that isn't whole yet."""
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
    _refuse_other_kinds(paths)
    if paths.provenance.exists() or (paths.plan.exists() and paths.state.exists()):
        return
    foreign = [paths.card.name] if paths.card.exists() else []  # ours comes after provenance.json
    if not paths.plan.exists() and not _has_journal(paths):
        foreign = [*(path.name for path in _dataset_files(paths)), *foreign]
    if foreign:
        raise OutputError(
            f"{paths.root} holds {_listing(foreign)}, but no provenance.json of ours",
            why="somebody else's files would be taken for ours, or overwritten",
            fix="name another output_dir, or move these files away",
        )


def _has_journal(paths: OutputPaths) -> bool:
    """A run whose plan was deleted is still ours."""
    return any(read_journal(path).header is not None for path in paths.journal_dir.glob("*.jsonl"))


def _refuse_other_kinds(paths: OutputPaths) -> None:
    """A folder or a FIFO in place of one of our files would end the run in its midst, or never."""
    metadata = (
        paths.state,
        paths.dataset_info,
        paths.index,
        paths.skipped,
        paths.provenance,
        paths.card,
        paths.headers,
    )
    folders = (paths.work, paths.journal_dir, paths.open_dir)
    files = itertools.chain(
        metadata,
        paths.root.glob("data-*.arrow"),
        paths.work.glob("plan*.arrow"),
        paths.work.glob("lock-*"),
        paths.journal_dir.glob("*.jsonl"),
        paths.open_dir.glob("*.part"),
    )
    wrong = [(path, "folder") for path in folders if os.path.lexists(path) and not path.is_dir()]
    wrong += [(path, "file") for path in files if not path.is_file() and os.path.lexists(path)]
    for path, kind in wrong:
        raise OutputError(
            f"{path} is not a {kind}",
            why=f"a run keeps a {kind} of its own under that name",
            fix="move it away, then give the same command again",
        )


@contextlib.contextmanager
def output_folder(paths: OutputPaths) -> Iterator[None]:
    """Make the folder and its working folder; take them away again if neither a plan nor headers came to lie there.

    Raises OutputError if they can't be made or belong to another user, DiskError if the disk refuses them, or anything
    written inside (the plan, a worker's board): a full disk is exit code 75 wherever it shows first.
    """
    is_new = _create(paths)
    try:
        with disk_errors(paths.root):
            yield
    except BaseException as error:
        # Another run that came at the same moment may have got the lock, and work here.
        if is_new and not (paths.plan.exists() or paths.headers.exists()) and not any(paths.work.glob("lock-*")):
            shutil.rmtree(paths.root, ignore_errors=True)
        if isinstance(error, PermissionError) and _is_below(error.filename, paths.root):
            raise _forbidden(error) from error
        raise


def _create(paths: OutputPaths) -> bool:
    """Whether the folder was made here; of two runs that ask at once only one is told so."""
    with disk_errors(paths.root):
        try:
            paths.root.parent.mkdir(parents=True, exist_ok=True)
            try:
                paths.root.mkdir()
                is_new = True
            except FileExistsError:
                is_new = False
            paths.work.mkdir(exist_ok=True)
        except OSError as error:
            if error.errno in DISK_ERRNOS:
                raise
            raise _cannot_be_made(paths, error) from error
    return is_new


def _is_below(name: object, root: Path) -> bool:
    return isinstance(name, str) and Path(os.path.abspath(name)).is_relative_to(os.path.abspath(root))


def _forbidden(error: PermissionError) -> OutputError:
    return OutputError(
        f"{error.filename}: {error.strerror}",
        why="the output folder, or a file in it, belongs to another user",
        fix="let its owner give the command, or get the right to read and write the whole folder",
    )


def _cannot_be_made(paths: OutputPaths, error: OSError) -> OutputError:
    text = f"output_dir {paths.root} can't be made: {error.strerror}"
    return OutputError(text, why="the dataset and what a resume needs lie there", fix="name another output_dir")


def start_over(paths: OutputPaths, tell: EventSink) -> None:
    """What --overwrite does: say what an earlier run left, and delete it."""
    if (old := describe_output(paths)) is not None:
        tell(Notice("warning", f"--overwrite deletes {old}"))
        clear_output(paths)


def describe_output(paths: OutputPaths) -> str | None:
    """What ``clear_output`` will delete, for people; None if there is nothing of ours."""
    files = list(_dataset_files(paths))
    shards = [path for path in files if parse_shard_name(path.name)]
    if not files and not paths.plan.exists() and not any(paths.journal_dir.glob("*.jsonl")):
        return None
    gigabytes = sum(path.stat().st_size for path in shards) / 1e9
    noun = "shard" if len(shards) == 1 else "shards"
    return f"{len(shards)} {noun} ({gigabytes:.3g} GB), metadata, plan and journals in {paths.root}"


def clear_output(paths: OutputPaths) -> None:
    """Delete a run of ours; other files in the folder stay.

    The lock stays: it is held by who calls this. So do the audio's headers, which are the same for the next plan.
    The card and state.json go first, so that no half of a dataset opens; the plan goes last, so that whatever is left by a kill
    is still a run of ours, which the same command clears.
    """
    for path in list(_dataset_files(paths)):
        path.unlink()
    for path in sorted(paths.work.iterdir(), key=lambda path: (path.name.startswith("plan"), path.name)):
        if path.name.startswith("lock-") or path == paths.headers:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def sweep(paths: OutputPaths, *, keep_signs: bool = False) -> None:
    """Delete what killed runs left: spills of plans, metadata half written, empty logs, signs to begin.

    The caller holds the locks of all parts. Shards and journals are the business of ``writers/salvage.py``.
    """
    for pattern in _SCRATCH if keep_signs else (*_SCRATCH, *_SIGNS):
        for path in paths.work.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    for folder in (paths.root, paths.work, paths.journal_dir):
        for path in folder.glob(".*.tmp"):
            if _TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)
    for pattern in _LOCK_SCRATCH:
        for path in paths.work.glob(pattern):
            if time.time() - path.stat().st_mtime > LOCK_SCRATCH_S:
                path.unlink(missing_ok=True)
    for pattern in _LOGS:
        for path in paths.work.glob(pattern):
            if path.stat().st_size == 0:
                path.unlink()


def _dataset_files(paths: OutputPaths) -> Iterator[Path]:
    """In an order in which they can be deleted: a card without provenance.json would be somebody else's."""
    if paths.provenance.exists() and paths.card.exists():
        yield paths.card
    metadata = (paths.state, paths.dataset_info, paths.index, paths.skipped)
    yield from (path for path in metadata if path.exists())
    yield from sorted(paths.root.glob("data-*.arrow"))
    if paths.provenance.exists():
        yield paths.provenance


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
