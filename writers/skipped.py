"""``skipped.jsonl``: one line for every clip without a row, with the reason. Nothing is lost in silence."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ..core.paths import OutputPaths
from .atomic import atomic_file
from .records import SkippedClip


class SkippedLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the file."""

    dataset: str
    item: str
    path: str
    """Of the audio, or of the annotation if there is none."""
    stage: str
    code: str
    message: str


def skipped_line(clip: SkippedClip) -> SkippedLine:
    """The line of a clip that a worker skipped."""
    return SkippedLine(
        dataset=clip.dataset,
        item=clip.item,
        path=clip.path,
        stage=clip.stage,
        code=clip.code,
        message=clip.message,
    )


def write_skipped(paths: OutputPaths, lines: Iterable[SkippedLine]) -> Counter[str]:
    """Write all lines in the order given (an empty file if there are none); returns their number by code.

    Raises DiskError if the disk refuses.
    """
    counts: Counter[str] = Counter()
    encoder = msgspec.json.Encoder()
    with atomic_file(paths.skipped) as file:
        for line in lines:
            counts[line.code] += 1
            file.write(encoder.encode(line) + b"\n")
    return counts


def by_code(counts: Mapping[str, int]) -> dict[str, int]:
    """``counts`` in the one order in which counts of codes are shown and stored: the commonest first, then by code."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def read_skipped(path: Path) -> Iterator[SkippedLine]:
    """The lines of a ``skipped.jsonl``. Raises msgspec.DecodeError at a line that isn't one."""
    decoder = msgspec.json.Decoder(SkippedLine)
    with open(path, "rb") as file:
        for line in file:
            yield decoder.decode(line)
