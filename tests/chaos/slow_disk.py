"""What the workers of a chaos run call before they open a clip: a disk that answers late, and a tally.

Without the delay 2,000 short clips are done in two seconds, and hardly a fault would hit a worker at work. The tally, one
byte for every clip that is decoded, in a file of the process, says afterwards how much was decoded twice.
"""

import contextlib
import functools
import os
import time

TALLY_FOLDER = "CHAOS_TALLY"
CLIP_MS = "CHAOS_CLIP_MS"
HOOK = f"{__name__}:wait"


def wait(path: str) -> None:
    """Called in a decode thread with the path of the audio."""
    with contextlib.suppress(OSError):  # a full disk must not look like a bad clip
        os.write(_tally(), b".")
    time.sleep(float(os.environ[CLIP_MS]) / 1000)


@functools.cache
def _tally() -> int:
    name = os.path.join(os.environ[TALLY_FOLDER], str(os.getpid()))
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
