"""A real process, a real kill -9, at a random moment, again and again."""

import random
import subprocess
import sys
import time
from pathlib import Path

from latentprep.core.paths import OutputPaths
from latentprep.writers.hf_dataset import write_hf_metadata
from latentprep.writers.ledger import read_journals
from latentprep.writers.repair import drop_hidden_blocks
from latentprep.writers.salvage import salvage_open_shards
from tests.writers.builders import FINGERPRINT, read_shard, rows, skipped

WRITE = """
import sys
from pathlib import Path
from latentprep.core.paths import OutputPaths
from latentprep.writers.shard import ShardLimits
from tests.writers.builders import metadata, rows, skipped, writer

folder, run_id, *chunks = sys.argv[1:]
with writer(OutputPaths(Path(folder)), run_id=run_id, limits=ShardLimits(max_rows=60, max_bytes=1 << 30)) as shards:
    print("begun", flush=True)
    for chunk in map(int, chunks):
        batch = rows(20, chunk) if chunk % 10 else None
        shards.write(batch, metadata(chunk), skipped=[skipped(0, str(chunk))] if batch is None else [])
"""
CHUNKS = range(120)
TRIALS = 5


def test_whatever_moment_a_run_is_killed_at_the_next_one_completes_it(tmp_path: Path):
    """In the end: every chunk once, its rows unchanged, every shard complete, nothing left open."""
    paths = OutputPaths(tmp_path)
    rng = random.Random(7)
    kills = 0
    for trial in range(40):
        salvage_open_shards(paths, FINGERPRINT)
        todo = sorted(set(CHUNKS) - read_journals(paths, FINGERPRINT).done.keys())
        if not todo:
            break
        kills += run_and_kill(paths, f"run{trial}", todo, rng.uniform(0, 0.06) if kills < TRIALS else None)
    drop_hidden_blocks(paths, FINGERPRINT)
    journal = read_journals(paths, FINGERPRINT)
    write_hf_metadata(paths, journal.shards, FINGERPRINT, journal.digests)

    shown = [batch for shard in journal.shards for batch in read_shard(paths.root / shard.name).to_batches()]
    assert [rows(20, block.record.chunk) for shard in journal.shards for block in shard.blocks] == shown
    assert set(CHUNKS) == journal.done.keys()
    assert [(chunk, skipped(0, str(chunk))) for chunk in range(0, 120, 10)] == list(journal.skipped())
    assert () == journal.open == journal.lost == journal.leftovers
    assert TRIALS == kills, "it was killed in the midst as often as that"


def run_and_kill(paths: OutputPaths, run_id: str, chunks: list[int], after: float | None) -> bool:
    """Run the writer and kill it ``after`` seconds; says whether the kill came before its end."""
    command = [sys.executable, "-c", WRITE, str(paths.root), run_id, *map(str, chunks)]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    if after is not None:
        time.sleep(after)
        process.kill()
    process.stdout.close()
    return process.wait() == -9
