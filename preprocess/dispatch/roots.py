"""Whether a corpus is still there: one missing file is a fault of its clip, a missing mount is not.

Asked only after a clip could not be opened, so it costs nothing in a good run. Without it, a file server that goes away
at night would turn every clip after that moment into a skipped one, in a run that ends with exit code 0.
"""

import os
from pathlib import Path

from ...core.errors import DiskError


def require_root(root: str) -> None:
    """Raises DiskError if the folder ``root`` is gone, can't be read, or is empty as a mount point without its mount."""
    reason = _trouble(Path(root))
    if reason:
        raise DiskError(
            f"the audio folder {root} {reason}",
            why="its file system went away, it seems; the clips in it are not at fault, and are not skipped",
            fix="see to the mount, then run the same command to go on",
        )


def _trouble(root: Path) -> str:
    try:
        with os.scandir(root) as entries:
            return "" if next(entries, None) is not None else "is empty"
    except FileNotFoundError:
        return "is gone"
    except OSError as error:
        return f"can't be read: {error.strerror}"
