"""Where the compiler keeps what it made, so that only a machine's first run compiles. No torch.

One folder per user, version of torch and number of threads: the artefacts of other threads compute in another order.
VoxCPM2's encoder: about a minute of compiling, 3 to 4 s from the folder. Of several workers that start together one
compiles and the others wait at the folder's lock.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, MutableMapping
from importlib.metadata import version
from pathlib import Path

CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
_THREADS_VARIABLE = "TORCHINDUCTOR_COMPILE_THREADS"
_LOCK_NAME = "latentprep.lock"


def cache_folder(environ: MutableMapping[str, str] = os.environ, *, threads: int = 1) -> Path:
    """The folder: what TORCHINDUCTOR_CACHE_DIR says, else one in the user's cache folder."""
    if chosen := environ.get(CACHE_VARIABLE):
        return Path(chosen)
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "latentprep" / f"inductor-{version('torch')}-{threads}"


def use_cache(environ: MutableMapping[str, str] = os.environ) -> Path:
    """Have this process compile into the folder, without helper processes; call it before torch compiles anything.

    The compiler's own pool would outlive a worker that is killed.
    """
    folder = cache_folder(environ)
    environ[CACHE_VARIABLE] = str(folder)
    environ.setdefault(_THREADS_VARIABLE, "1")
    return folder


@contextlib.contextmanager
def compiling_alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock. A file system without locks, or a folder that can't be made, costs time only."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((folder / _LOCK_NAME).open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
