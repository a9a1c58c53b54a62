"""``choose_form``: whether a run's encoder is compiled, decided once, in the parent, when the plan is made. No torch.

Compiling costs about a minute of a core and pays for itself within some minutes of encoding, so ``auto`` compiles on a CPU
from ten minutes of one worker's work at the stated rate: of planned audio and constants alone, never of the number of
workers or of a clock. Whether this machine has a compiler is asked once, by compiling a line in a process of its own
(about 10 s); the answer lies in the plan, and every resume takes it from there. On a GPU ``auto`` stays eager: the gain
there has not been measured.
"""

import os
import subprocess
import sys
from typing import Literal

from ..config import EncoderSettings
from .compile_cache import use_cache
from .protocol import DeviceKind, EncoderInfo

Form = Literal["eager", "compiled"]

MIN_WORK_SECONDS = 600
"""Work of one worker at the stated rate from which compiling pays."""
PROBE_SECONDS = 300
"""A compiler that takes longer for one line is none."""
_PROBE = "latentprep.preprocess.encode.compile_probe"


def choose_form(settings: EncoderSettings, info: EncoderInfo, device: DeviceKind, audio_seconds: float) -> Form:
    """The form in which a new plan's encoder runs; may take 10 s."""
    if info.stated_rate is None or settings.compile == "never":
        return "eager"
    if settings.compile == "always":
        return "compiled"
    worth_it = device == "cpu" and audio_seconds >= MIN_WORK_SECONDS * info.stated_rate
    return "compiled" if worth_it and can_compile() else "eager"


def kept_form(settings: EncoderSettings, info: EncoderInfo, stored: Form) -> Form:
    """The form that the settings ask of a run with a stored plan: ``auto`` asks for what the plan says."""
    if info.stated_rate is None or settings.compile == "never":
        return "eager"
    return "compiled" if settings.compile == "always" else stored


def can_compile() -> bool:
    """Whether torch can compile for this machine's CPU: it needs g++ and the headers of this Python."""
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    use_cache(environ)
    try:
        probe = subprocess.run(
            [sys.executable, "-m", _PROBE], env=environ, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0
