"""May this path be read at all? Place, symbolic links and kind of an audio file, without opening it.

"Inside the root" is a matter of spelling (absolute paths, ``..``): hub caches consist of links that lead out of their
folder, so where links end is another question, which ``allow_symlinks`` answers.
"""

import functools
import os
import stat
from typing import NamedTuple

from ...core.errors import ClipFault, FaultCode, Stage, WarningCode
from ..config import AudioSettings
from .regular_file import file_fault, require_file


class Probed(NamedTuple):
    """What a file is from outside."""

    file_size: int
    """Bytes."""
    mtime_ns: int
    warnings: tuple[WarningCode, ...]
    """``(SYMLINKED,)`` if a link lies on the way to it."""


def probe(path: str, root: str, settings: AudioSettings) -> Probed:
    """Check an audio path against its corpus' root, and look at the file without opening it.

    Raises ClipFault (stage scan): outside_root, symlink, missing_audio, not_a_file, unreadable. A file without read
    permission passes; opening it tells.
    """
    if not settings.allow_outside_root and not is_inside(path, root):
        if is_inside(os.path.join(path, "file"), root):
            raise ClipFault(Stage.SCAN, FaultCode.NOT_A_FILE, f"{path} is the folder {root} itself")
        raise ClipFault(Stage.SCAN, FaultCode.OUTSIDE_ROOT, f"{path} leaves {root}")
    try:
        linked = stat.S_ISLNK((found := os.lstat(path)).st_mode)
        if linked:
            found = os.stat(path)
        linked = linked or _has_linked_folder(os.path.dirname(path), root)
    except (OSError, ValueError) as error:
        raise file_fault(path, error, Stage.SCAN) from error
    if linked and not settings.allow_symlinks:
        raise ClipFault(Stage.SCAN, FaultCode.SYMLINK, f"{path} is reached through a symbolic link")
    require_file(path, found, Stage.SCAN)
    return Probed(found.st_size, found.st_mtime_ns, (WarningCode.SYMLINKED,) if linked else ())


def is_inside(path: str, root: str) -> bool:
    """Whether ``path``, as spelled, lies below ``root``; both absolute or relative to the working folder."""
    folder = _absolute_folder(root)
    return os.path.abspath(path).startswith(folder)


@functools.lru_cache(maxsize=1024)
def _absolute_folder(root: str) -> str:
    return os.path.join(os.path.abspath(root), "")


@functools.lru_cache(maxsize=1 << 14)
def _has_linked_folder(folder: str, root: str) -> bool:
    """Whether a folder between ``root`` (exclusive) and ``folder`` (inclusive) is a symbolic link.

    Kept per folder: a corpus has some hundred clips in each.
    """
    if not is_inside(folder, root):
        return False
    return os.path.islink(folder) or _has_linked_folder(os.path.dirname(folder), root)
