"""What the end of a run leaves behind."""

from pathlib import Path

from latentprep import run
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.events import Event, Notice
from latentprep.writers.verify import find_damage

from .runs import bulk_config


def test_a_run_that_got_over_a_damaged_journal_leaves_a_dataset_without_damage(tmp_path: Path):
    """Its chunks were encoded again; the unreadable file must not make every later check fail."""
    config = bulk_config(tmp_path, 40, seconds=(0.3, 1.0), workers=1)
    first = run(config)
    paths = OutputPaths(config.output_dir)
    for path in (paths.state, paths.dataset_info, paths.card, paths.provenance):  # as if the end had not been reached
        path.unlink()
    (journal,) = paths.journal_dir.glob("r0-*.jsonl")
    journal.write_bytes(b"x" + journal.read_bytes())
    seen: list[Event] = []

    second = run(config, seen.append)

    assert (40, first.digest) == (second.written, second.digest)
    assert f"the journal {journal.name} has a damaged first line and is put aside" in [
        event.text for event in seen if isinstance(event, Notice)
    ]
    assert [f"{journal.name}.damaged"] == [path.name for path in paths.journal_dir.glob("*.damaged")]
    assert ["data-r0-00000.arrow"] == [path.name for path in (paths.work / "leftover").iterdir()]
    assert [] == [str(problem.code) for problem in find_damage(paths).problems]
