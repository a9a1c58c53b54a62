from collections import Counter
from pathlib import Path

from latentprep.core.paths import OutputPaths
from latentprep.writers.skipped import SkippedLine, read_skipped, skipped_line, write_skipped
from tests.writers.builders import skipped


def line(item: str, code: str) -> SkippedLine:
    return SkippedLine(dataset="合唱", item=item, path="a/b.wav", stage="scan", code=code, message='"quoted"\nlines')


def test_every_line_comes_back_and_is_counted(tmp_path: Path):
    paths = OutputPaths(tmp_path)
    lines = [line("a", "missing_audio"), line("感", "silent"), line("c", "silent")]

    assert Counter(silent=2, missing_audio=1) == write_skipped(paths, iter(lines))
    assert lines == list(read_skipped(paths.skipped))
    assert 3 == paths.skipped.read_bytes().count(b"\n")


def test_a_run_without_skips_has_an_empty_file(tmp_path: Path):
    """A file that isn't there could also mean that nobody looked."""
    assert Counter() == write_skipped(OutputPaths(tmp_path), [])
    assert b"" == OutputPaths(tmp_path).skipped.read_bytes()


def test_a_workers_skip_becomes_a_line():
    expected = SkippedLine(dataset="d", item="x", path="p", stage="decode", code="empty_file", message="0 bytes")

    assert expected == skipped_line(skipped(3, "x"))
