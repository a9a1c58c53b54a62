"""What ``prep svs --dry-run`` prints: a ``Bill`` as text. Pure, as cli/summary.py is."""

from collections.abc import Iterator

from ..preprocess.plan.bill import Bill
from .quantities import count, duration, size

SECONDS_PER_HOUR = 3600


def bill_text(bill: Bill) -> str:
    """Hours, clips and bytes to come, against what is free."""
    return "\n".join(line for part in (_clips(bill), _work(bill), _disk(bill)) for line in part)


def _clips(bill: Bill) -> Iterator[str]:
    yield (
        f"clips    {bill.clips:,} of {duration(bill.hours * SECONDS_PER_HOUR)} ({bill.weak:,} with words only), "
        f"{bill.num_refused:,} refused"
    )
    for corpus in bill.corpora:
        yield (
            f"  {corpus.name}: {count(corpus.clips, 'clip')} of {duration(corpus.hours * SECONDS_PER_HOUR)} "
            f"({corpus.weak:,} with words only), {corpus.refused:,} refused"
        )
    if bill.refused:
        yield "refused"
        yield from (f"  {number:>8,}  {code}" for code, number in bill.refused.items())


def _work(bill: Bill) -> Iterator[str]:
    yield (
        f"work     {count(bill.chunks, 'chunk')} of {bill.rows_per_block:.0f} rows (median), {bill.batches:,} encode "
        f"batches, {100 * bill.padding:.1f} % padding"
    )
    workers = count(bill.workers, "worker")
    if bill.encode_seconds is None:
        yield f"time     as fast as files are read, on {workers}"
    else:
        yield f"time     about {duration(bill.encode_seconds)} on {workers}, without start-up, at the rate that plans assume"


def _disk(bill: Bill) -> Iterator[str]:
    inodes = "" if bill.free.inodes is None else f" of {bill.free.inodes:,} free"
    yield f"disk     {size(bill.num_bytes)} of {size(bill.free.num_bytes)} free, {bill.inodes:,} files{inodes}"
    if not bill.fits:
        yield "warning  this does not fit: free space, or set output_dir (--out) to another file system"
