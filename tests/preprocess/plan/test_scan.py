"""The header scan: lengths to expect, order kept, bounded work ahead."""

import threading
from collections.abc import Iterator

import pytest

from latentprep.core.errors import ClipFault, FaultCode, Stage, WarningCode
from latentprep.preprocess.audio.header import AudioHeader
from latentprep.preprocess.corpora.clip import Clip, RefusedClip
from latentprep.preprocess.plan.scan import GROUP_SIZE, GROUPS_AHEAD, audio_facts, scan

from .builders import SPEC, clip, header, refused_clip


def test_a_length_is_counted_at_the_rate_of_the_vae() -> None:
    """441 samples at 44.1 kHz are 160 at 16 kHz; one more sample makes one more, as the resampler does."""
    facts = audio_facts(header(num_frames=441, sample_rate=44_100), SPEC)

    assert 160 == facts.num_samples
    assert (441, 44_100) == (facts.num_frames, facts.source_rate)
    assert 161 == audio_facts(header(num_frames=442, sample_rate=44_100), SPEC).num_samples


def test_a_file_without_a_length_is_planned_by_its_size() -> None:
    """1 MB at 128 kbit/s are 62.5 s; decoding will tell."""
    facts = audio_facts(header(num_frames=None, sample_rate=0, channels=0), SPEC)

    assert 1_000_000 == facts.num_samples
    assert (-1, 0, 0) == (facts.num_frames, facts.source_rate, facts.channels)


def test_no_clip_has_length_zero() -> None:
    """Whether it really has no samples is the decoder's finding."""
    assert 1 == audio_facts(header(num_frames=0), SPEC).num_samples


def test_order_is_kept_and_refused_clips_pass_through() -> None:
    """Reading order is what breaks ties in the plan: threads may not change it."""
    clips: list[Clip | RefusedClip] = [clip(f"{number}") for number in range(170)]
    clips.insert(60, refused_clip("read before"))

    found = list(scan(clips, lambda c: header(num_frames=int(c.item_name) + 1), SPEC, num_threads=3))

    assert found[60] == clips[60]
    assert [str(number) for number in range(170)] == [f[0].item_name for f in found if isinstance(f, tuple)]
    assert list(range(1, 171)) == [f[1].num_samples for f in found if isinstance(f, tuple)]


def test_a_clip_without_a_file_is_refused_and_the_others_go_on() -> None:
    """One bad clip costs one row."""

    def probe(c: Clip) -> AudioHeader:
        if c.item_name == "gone":
            raise ClipFault(Stage.SCAN, FaultCode.MISSING_AUDIO, "audio/gone.wav does not exist")
        return header()

    good, bad, also_good = scan([clip("a"), clip("gone"), clip("b")], probe, SPEC)

    assert isinstance(bad, RefusedClip)
    assert ("choir", "gone", "audio/gone.wav") == (bad.dataset_name, bad.item_name, bad.audio_path)
    assert FaultCode.MISSING_AUDIO == bad.fault.code
    assert isinstance(good, tuple)
    assert isinstance(also_good, tuple)


def test_what_the_probe_notices_is_added_to_what_the_reader_noticed() -> None:
    """A link on the way to a file is known here alone: dropped, no row's facts and no count would have it."""
    read = clip("a", warnings=(WarningCode.BPM_ROUNDED,))

    (found,) = scan([read], lambda c: header(warnings=(WarningCode.SYMLINKED,)), SPEC)

    assert isinstance(found, tuple)
    assert (WarningCode.BPM_ROUNDED, WarningCode.SYMLINKED) == found[0].warnings


def test_reading_runs_a_bounded_number_of_clips_ahead() -> None:
    """Ten million clips must not wait in memory for a slow disk."""
    read, release = 0, threading.Event()

    def clips() -> Iterator[Clip]:
        nonlocal read
        for number in range(10_000):
            read += 1
            if read == 2 * GROUPS_AHEAD * GROUP_SIZE:
                release.set()
            yield clip(str(number))

    def probe(c: Clip) -> AudioHeader:
        release.wait(timeout=10)
        return header()

    first = next(scan(clips(), probe, SPEC, num_threads=2))

    assert isinstance(first, tuple)
    assert 2 * GROUPS_AHEAD * GROUP_SIZE == read


def test_an_error_of_the_reader_ends_the_scan() -> None:
    """A corpus that breaks off in the middle is no shorter corpus."""

    def clips() -> Iterator[Clip]:
        yield clip("a")
        raise RuntimeError("broken JSON")

    with pytest.raises(RuntimeError, match="broken JSON"):
        list(scan(clips(), lambda c: header(), SPEC))
