"""What the audio files say of themselves: headers read in threads, while annotations are still being read.

A header costs one small read, so a slow file system costs latency, not bandwidth: 32 threads with groups of 50 files
each (a future per file would cost more than a local read). Order is kept, and no more than ``GROUPS_AHEAD`` groups per
thread are in flight, so memory stays flat.

A length is an expectation here, used for batches and chunks; what is decoded decides. So a file whose header says
nothing of its length, or nothing that can be true, is planned with a length guessed from its size.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

from ...core.errors import ClipFault, WarningCode
from ...core.units import LatentSpec, resampled_length
from ..audio.header import AudioHeader
from ..corpora.clip import Clip, RefusedClip
from .clip_table import UNKNOWN_FRAMES, AudioFacts

SCAN_THREADS = 32
GROUP_SIZE = 50
GROUPS_AHEAD = 2
"""Groups in flight per thread: one being read, one waiting."""

GUESSED_BYTES_PER_SECOND = 16_000
"""Of a file without a readable length: MP3 at 128 kbit/s, the commonest kind without one."""

Probe = Callable[[Clip], AudioHeader]
"""Looks at a clip's audio file; raises ``ClipFault`` for one that can't be taken at all."""

Scanned = tuple[Clip, AudioFacts] | RefusedClip
_Scan = Callable[[Clip | RefusedClip], Scanned]


def scan(
    clips: Iterable[Clip | RefusedClip], probe: Probe, spec: LatentSpec, *, num_threads: int = SCAN_THREADS
) -> Iterator[Scanned]:
    """Add audio facts to clips; those that ``probe`` refuses become refused clips. Keeps the order."""

    def scan_one(clip: Clip | RefusedClip) -> Scanned:
        if isinstance(clip, RefusedClip):
            return clip
        try:
            header = probe(clip)
            return _with_warnings(clip, header.warnings), audio_facts(header, spec)
        except ClipFault as error:
            return refused(clip, error)

    yield from _in_threads(clips, scan_one, num_threads)


def _with_warnings(clip: Clip, warnings: tuple[WarningCode, ...]) -> Clip:
    return replace(clip, warnings=clip.warnings + warnings) if warnings else clip


def refused(clip: Clip, error: ClipFault) -> RefusedClip:
    """The refused clip that ``clip`` becomes by a fault."""
    return RefusedClip(
        dataset_name=clip.dataset_name, item_name=clip.item_name, audio_path=clip.audio_path, fault=error.fault
    )


def audio_facts(header: AudioHeader, spec: LatentSpec) -> AudioFacts:
    """Facts for the plan, with the expected number of samples at the VAE's rate (at least 1)."""
    if header.num_frames is None or not header.sample_rate:
        num_samples = header.file_size * spec.sample_rate // GUESSED_BYTES_PER_SECOND
    else:
        num_samples = resampled_length(header.num_frames, header.sample_rate, spec.sample_rate)
    return AudioFacts(
        file_size=header.file_size,
        mtime_ns=header.mtime_ns,
        num_frames=UNKNOWN_FRAMES if header.num_frames is None else header.num_frames,
        source_rate=header.sample_rate,
        channels=header.channels,
        num_samples=max(1, num_samples),
    )


def _in_threads(clips: Iterable[Clip | RefusedClip], scan_one: _Scan, num_threads: int) -> Iterator[Scanned]:
    remaining = iter(clips)
    pending: deque[Future[list[Scanned]]] = deque()
    with ThreadPoolExecutor(num_threads, thread_name_prefix="scan") as pool:
        while group := list(islice(remaining, GROUP_SIZE)):
            pending.append(pool.submit(_scan_group, group, scan_one))
            if len(pending) >= num_threads * GROUPS_AHEAD:
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()


def _scan_group(group: list[Clip | RefusedClip], scan_one: _Scan) -> list[Scanned]:
    return [scan_one(clip) for clip in group]
