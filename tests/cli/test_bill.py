from dataclasses import replace

from latentprep.cli.bill import bill_text
from latentprep.preprocess.plan.bill import Bill, CorpusBill, FreeSpace

BILL = Bill(
    corpora=(
        CorpusBill(name="choir", clips=900, weak=0, refused=3, hours=1.5),
        CorpusBill(name="opera", clips=100, weak=100, refused=1, hours=0.5),
    ),
    hours=2.0,
    clips=1_000,
    weak=100,
    refused={"no_lyric": 3, "missing_audio": 1},
    chunks=40,
    batches=64,
    padding=0.0123,
    rows_per_block=25.0,
    num_bytes=130_000_000,
    inodes=20,
    free=FreeSpace(num_bytes=5_000_000_000, inodes=1_000),
    workers=2,
    encode_seconds=90.0,
)


def test_the_bill_shows_what_will_come_against_what_is_free():
    expected = """\
clips    1,000 of 2.0 h (100 with words only), 4 refused
  choir: 900 clips of 1.5 h (0 with words only), 3 refused
  opera: 100 clips of 30.0 min (100 with words only), 1 refused
refused
         3  no_lyric
         1  missing_audio
work     40 chunks of 25 rows (median), 64 encode batches, 1.2 % padding
time     about 1.5 min on 2 workers, without start-up, at the rate that plans assume
disk     130.00 MB of 5.00 GB free, 20 files of 1,000 free"""

    assert expected == bill_text(BILL)


def test_a_disk_too_small_is_a_warning_before_the_run_not_an_error_after_hours():
    full = replace(BILL, free=FreeSpace(num_bytes=1_000, inodes=None))

    assert bill_text(full).splitlines()[-2:] == [
        "disk     130.00 MB of 1.00 kB free, 20 files",
        "warning  this does not fit: free space, or set output_dir (--out) to another file system",
    ]


def test_an_encoder_without_a_stated_rate_promises_no_time():
    text = bill_text(replace(BILL, encode_seconds=None, workers=1))

    assert "time     as fast as files are read, on 1 worker" in text
