"""Draws docs/scaling-*.svg from the JSON of bench_scaling.py. Needs matplotlib.

Command: ``python benchmarks/plot_scaling.py scaling.json docs``.
"""

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

WAYS = {
    "ours": ("planned chunks, on demand", "C0", "o"),
    "parts": ("planned chunks, one part a node", "C1", "s"),
    "fixed": ("2,000 clips a chunk, on demand", "C2", "^"),
    "ascending": ("2,000 clips a chunk, ascending", "C3", "v"),
    "static": ("equal shares from the start", "C4", "x"),
}


def draw(rows: list[dict], *, trouble: bool, path: Path) -> None:
    """Time over the ideal against the number of cards, a curve a way."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for way, (label, color, marker) in WAYS.items():
        points = [(row["cards"], row) for row in rows if row["way"] == way and row["trouble"] == trouble]
        cards = [number for number, _ in points]
        over = [max(100 * (row["makespan_s"] / row["ideal_s"] - 1), 0.01) for _, row in points]
        axes.plot(cards, over, label=label, color=color, marker=marker)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(cards, [str(number) for number in cards])
    axes.set_xlabel("cards")
    axes.set_ylabel("time over the ideal, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    mpl.rcParams["svg.hashsalt"] = "latentprep"  # the same picture each time
    rows = json.loads(source.read_text())["rows"]
    draw(rows, trouble=False, path=folder / "scaling-quiet.svg")
    draw(rows, trouble=True, path=folder / "scaling-trouble.svg")


if __name__ == "__main__":
    main()
