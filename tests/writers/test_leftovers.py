"""Shards that no journal speaks of: those of our plans are moved out of the way, all others stay."""

from pathlib import Path

from latentprep.core.paths import OutputPaths
from latentprep.writers.leftovers import set_aside

from .builders import FINGERPRINT, finished_run


def test_a_shard_of_our_plan_is_moved_and_anything_else_stays(tmp_path: Path):
    """One byte short, one of another plan, one that is no shard: not proved to be ours."""
    paths = OutputPaths(tmp_path)
    (closed,) = finished_run(paths, range(2))
    whole = (tmp_path / closed.name).read_bytes()
    (tmp_path / "data-r0-00007.arrow").write_bytes(whole[:-1])
    (tmp_path / "data-r0-00008.arrow").write_bytes(whole.replace(FINGERPRINT.encode(), b"b" * len(FINGERPRINT)))
    (tmp_path / "data-r0-00009.arrow").write_bytes(b"somebody's")
    names = sorted(path.name for path in tmp_path.glob("data-*"))

    assert [closed.name] == set_aside(paths, names, {FINGERPRINT})
    assert names[1:] == sorted(path.name for path in tmp_path.glob("data-*"))
    assert whole == (paths.leftover_dir / closed.name).read_bytes()
