"""What workers of a test run call before they decode a clip (PREP_TEST_DECODE_HOOK): it misbehaves as it is told to.

Told by environment variables, since it runs in another process: ``HOOK_DEEDS`` is a JSON object of clip name -> deed,
``HOOK_FOLDER`` a folder for a tally of all decodes and for what is done only once.
"""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from latentprep.core.errors import PrepError
from latentprep.preprocess.dispatch import tuner

HOOK = f"{__name__}:act"
REFUSED_RANK, HANGING_RANK, REFUSED = (f"{__name__}:{name}" for name in ("refused_rank", "hanging_rank", "refused"))
"""Hooks that trouble a worker while it loads: rank 1 alone, or every one."""
RESTLESS, SETTLED = (f"{__name__}:{name}" for name in ("restless", "settled"))
"""Hooks whose workers adapt their decode threads after each batch, or never."""


def environment(
    folder: Path,
    deeds: dict[str, str] | None = None,
    *,
    seconds: float = 0.0,
    hook: str = HOOK,
    until: tuple[Path, str] | None = None,
) -> dict[str, str]:
    """The variables that make a run's workers call ``act``.

    Every clip takes ``seconds`` more, and none is decoded ``until`` a file holds a text.
    """
    folder.mkdir(exist_ok=True)
    return {
        "PREP_TEST_DECODE_HOOK": hook,
        "HOOK_DEEDS": json.dumps(deeds or {}),
        "HOOK_FOLDER": str(folder),
        "HOOK_SECONDS": str(seconds),
        "HOOK_UNTIL": "\n".join(map(str, until or ())),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])),
    }


def decoded(folder: Path) -> list[str]:
    """Names of all clips whose decoding was begun, once for each time."""
    tally = folder / "tally"
    return tally.read_text().split() if tally.exists() else []


def __getattr__(name: str) -> Callable[[str], None]:
    """Looked up by a worker while it loads."""
    rank = multiprocessing.current_process().name.removeprefix("prep-rank")
    if name == "refused" or (name == "refused_rank" and rank == "1"):
        raise PrepError("the card is on fire", fix="call the fire brigade")
    if name == "hanging_rank" and rank == "1":
        time.sleep(3600)
    if name in ("restless", "settled"):
        tuner.WINDOW_S, tuner.MIN_BATCHES = (0.0, 1) if name == "restless" else (1e9, 1)
        return act
    if name in ("refused_rank", "hanging_rank"):
        return act
    raise AttributeError(name)


def act(path: str) -> None:
    """Called in a decode thread with the path of the audio."""
    folder, name = Path(os.environ["HOOK_FOLDER"]), os.path.basename(path)
    with (folder / "tally").open("a") as tally:
        tally.write(f"{name}\n")
    deed = json.loads(os.environ["HOOK_DEEDS"]).get(name, "")
    if deed.endswith(" once"):
        deed = deed.removesuffix(" once") if _is_first_time(folder / f"done-{name}") else ""
    _do(deed)
    _wait_for_text()
    time.sleep(float(os.environ["HOOK_SECONDS"]))


def _wait_for_text() -> None:
    if until := os.environ["HOOK_UNTIL"]:
        path, text = until.split("\n")
        deadline = time.monotonic() + 60
        while text not in Path(path).read_text() and time.monotonic() < deadline:
            time.sleep(0.1)


def _is_first_time(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _do(deed: str) -> None:
    match deed:
        case "abort":
            os.abort()
        case "hang":
            time.sleep(3600)
        case "kill" | "stop":
            os.kill(os.getpid(), signal.SIGKILL if deed == "kill" else signal.SIGSTOP)
        case "exit":
            os._exit(7)
        case "fail":
            raise PrepError("the driver is gone")
