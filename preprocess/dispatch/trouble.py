"""What ends a run from outside of it, in words: a disk that refuses, an output folder that is gone, no more processes."""

import os

from ...core.errors import DiskError, PrepError, WorkerError
from ...core.paths import OutputPaths
from .messages import Failed

_GO_ON = "then run the same command to go on"


def disk_error(last_words: Failed | None) -> DiskError | None:
    """The error of a worker that ended because of its disk."""
    if last_words is None or last_words.kind != "disk":
        return None
    return DiskError(last_words.what, why=last_words.why, fix=last_words.fix)


def output_trouble(paths: OutputPaths) -> DiskError | None:
    """Whether the output folder went away under the run: a worker that finds no files tells of all kinds of errors."""
    try:
        os.stat(paths.plan)
    except OSError as error:
        return DiskError(
            f"{paths.plan} can't be reached any more: {error.strerror}",
            why="the file system of the output folder went away, or somebody deletes files there",
            fix=f"see to the mount, {_GO_ON}",
        )
    return None


def cannot_start(error: OSError) -> PrepError:
    """A process, a pipe, a semaphore or the folder of the boards could not be made."""
    return WorkerError(
        f"no worker process can be started: {error}",
        why="it needs a place in the temporary folder and in /dev/shm, open files, and a process",
        fix=f"see df, ulimit -n and ulimit -u, {_GO_ON}",
    )
