"""How numbers are written for people: hours, clock times, bytes, rates and counts.

Machines get ``--json``, where every number keeps its unit in its name and all of its digits.
"""

from math import ceil, isfinite

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def duration(seconds: float) -> str:
    """Audio or wall time with a unit that suits its size: ``12.3 s``, ``4.1 min``, ``312.4 h``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:,.1f} h"


def clock(seconds: float | None) -> str:
    """Time left as ``h:mm:ss``, rounded up; ``-:--:--`` while it is not known."""
    if seconds is None or not isfinite(seconds):
        return "-:--:--"
    minutes, rest = divmod(ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def size(num_bytes: float) -> str:
    """Bytes in decimal units, as file systems and disks are sold: ``1.07 GB``."""
    value, unit = float(num_bytes), _BYTE_UNITS[0]
    for unit in _BYTE_UNITS:
        if value < 1000 or unit == _BYTE_UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:,.2f} {unit}"


def count(number: int, noun: str) -> str:
    """``1 row``, ``20,896 rows``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def times_real_time(audio_seconds: float, wall_seconds: float) -> float | None:
    """Speed, or None before any time has passed."""
    return audio_seconds / wall_seconds if wall_seconds > 0 else None


def rate(value: float | None) -> str:
    """A rate with three meaningful digits: ``0.87``, ``43.1``, ``1,520``; ``-`` while it is not known."""
    if value is None:
        return "-"
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{decimals}f}"
