"""Runs two ways of doing one thing in turn (A B A B ...) and prints medians and their ratio as one JSON line.

Pairs are interleaved because machines are shared: what slows one run slows its neighbour, too. Quote the ratio.
"""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any


def seconds(call: Callable[[], Any]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def compare(
    name: str, ours: Callable[[], Any], naive: Callable[[], Any], *, runs: int = 5, **facts: object
) -> dict[str, Any]:
    """Measure both ``runs`` times after one warm-up each; print and return the result."""
    ours(), naive()
    pairs = [(seconds(ours), seconds(naive)) for _ in range(runs)]
    result = {
        "benchmark": name,
        "ours_seconds": _spread([pair[0] for pair in pairs]),
        "naive_seconds": _spread([pair[1] for pair in pairs]),
        "ratio": _spread([naive_s / ours_s for ours_s, naive_s in pairs]),
        "runs": runs,
        **facts,
        **machine(),
    }
    json.dump(result, sys.stdout)
    print()
    return result


def _spread(values: list[float]) -> dict[str, float]:
    numbers = {"min": min(values), "median": statistics.median(values), "max": max(values)}
    return {key: float(f"{value:.4g}") for key, value in numbers.items()}


def machine() -> dict[str, object]:
    """What a figure depends on."""
    packages = ("latentprep", "torch", "pyarrow", "numpy", "datasets")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in packages},
    }
