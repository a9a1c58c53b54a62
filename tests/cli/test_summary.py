from typing import Any

from latentprep.cli.summary import summary_text

from .builders import run_summary


def test_the_summary_accounts_for_every_clip_and_says_what_to_try_next():
    """These are the numbers that people compare and paste into reports; nothing may be missing from the sum."""
    expected = f"""\
planned 1,004 = written 1,000 + skipped 4 + remaining 0
audio    1.0 h in rows; this run read 30.0 min of clips in 12.0 s: 150 x real time
rows     1,000 of 10 chunks in 2 shards, 68.00 MB, in out
digest   {"d" * 32} (1,000 rows, all columns)
content  {"c" * 32} (without audio_feats: equal on every device)
skipped  4 clips, each listed in out/skipped.jsonl
         3  no_lyric
         1  silent
warnings (these clips have rows)
         2  loud
busy seconds (decode: all threads of the worker; wait: its encoder without audio)
  rank    decode    encode      rows     write      wait
     0      31.0      11.5       0.5       0.2       0.0
     1      30.0      11.0       0.5       0.2       0.1
next
  prep inspect out
  prep verify out
  prep decode out --row 0 --wav row0.wav
  python -c 'import datasets; print(datasets.load_from_disk("out"))'"""

    assert expected == summary_text(run_summary())


def notes(**changes: Any) -> list[str]:
    text = summary_text(run_summary(**{"written": 20_000, "num_chunks": 40, "num_batches": 400, **changes}))
    return [line for line in text.splitlines() if line.startswith("note")]


def test_a_dataset_cut_well_has_no_notes():
    assert [] == notes()


def test_small_blocks_are_mentioned():
    """They are accepted on a slow CPU, but whoever trains on them should know why opening takes long."""
    (note,) = notes(num_chunks=2_000)

    assert note.startswith("note     blocks are small (10.0 rows on average)")
    assert "slow encoders" in note
    assert "limits.max_chunk_rows" in note


def test_batches_of_one_clip_are_mentioned_with_the_setting_that_made_them():
    """A limit copied from another tool's configuration can make a GPU run several times slower."""
    (note,) = notes(num_batches=19_000)

    assert "about one clip (1.1 on average)" in note
    assert "limits.max_batch_samples (upstream: vae_max_tokens)" in note


def test_a_small_dataset_is_spared_the_notes():
    """The demo and every trial have small blocks and batches by design; a note on each would teach to skip notes."""
    assert [] == notes(written=2_000, num_chunks=1_000, num_batches=2_000)
    assert [] == notes(num_batches=0), "not counted"


def test_an_unfinished_run_suggests_nothing_that_cannot_work_yet():
    text = summary_text(run_summary(written=900, remaining=100))

    assert "remaining 100" in text
    assert "next" not in text


def test_a_run_that_found_all_done_claims_no_speed():
    text = summary_text(run_summary(encoded_seconds=0.0, wall_seconds=0.0))

    assert "audio    1.0 h in rows; nothing to encode: all 1,004 clips are done" in text.splitlines()


def test_reused_rows_are_counted():
    """Who asked for reuse wants to see that it worked."""
    line = "reused   990 rows took latents that were made before and were not encoded"

    assert line in summary_text(run_summary(reused=990)).splitlines()
    assert "this run encoded 30.0 min of clips in 12.0 s" in summary_text(run_summary(reused=990))
    assert "this run encoded 0.0 s of clips in 12.0 s\n" in summary_text(run_summary(reused=990, encoded_seconds=0.0))
    assert "reused" not in summary_text(run_summary())
