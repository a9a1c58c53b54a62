"""The length of an MP3 is that of its frames, whatever its header says."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.core.errors import ClipFault, FaultCode, WarningCode
from latentprep.preprocess.audio.decode import DecodedAudio, decode
from latentprep.preprocess.audio.header import read_header
from latentprep.preprocess.audio.mp3 import frame_offsets, is_mpeg, parse_mp3, tag_bytes, with_true_count
from latentprep.preprocess.config import AudioSettings

from .builders import SPEC, encode, put, tone, with_mp3_count, without_xing

MP3 = encode(tone(4.0, 44_100), 44_100, "MP3")
TAG = b"ID3\x03\0\0\0\0\x01\x00" + bytes(128)
"""An ID3v2 tag of 128 bytes."""


def _decode(tmp_path: Path, content: bytes) -> DecodedAudio:
    path = put(tmp_path, "clip.mp3", content)
    return decode(path, SPEC, AudioSettings(), read_header(path))


@pytest.mark.parametrize("rate", [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_frames_are_counted_as_libsndfile_counts_them(tmp_path: Path, rate: int, channels: int) -> None:
    """Every rate of the three versions of MPEG; the header's length is exact to the sample."""
    wave = np.repeat(tone(2.0, rate)[:, None], channels, axis=1)
    content = encode(wave, rate, "MP3")
    layout = parse_mp3(content, 0)
    header = read_header(put(tmp_path, "clip.mp3", content))

    assert layout is not None
    assert layout.stated_frames == len(list(frame_offsets(content, layout))) - 1
    assert (2 * rate, rate, channels) == (header.num_frames, header.sample_rate, header.channels)
    assert 2 * rate == soundfile.info(io.BytesIO(content)).frames
    assert with_true_count(content, layout) is None


@pytest.mark.parametrize("count", [2, 60, 154])
def test_a_count_that_is_too_low_costs_no_sample(tmp_path: Path, count: int) -> None:
    """libsndfile gives no sample beyond the stated length, without a word."""
    audio = _decode(tmp_path, with_mp3_count(MP3, count))

    assert np.array_equal(_decode(tmp_path, MP3).wave, audio.wave)
    assert ((WarningCode.LENGTH_MISMATCH,) if count < 120 else ()) == audio.warnings


@pytest.mark.parametrize("count", [310, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_count_that_is_too_high_allocates_nothing(tmp_path: Path, count: int) -> None:
    """All samples are there; what follows the last but the decoder's padding was promised and is missing."""
    audio = _decode(tmp_path, with_mp3_count(MP3, count))

    assert 176_400 <= audio.num_frames <= 176_400 + 2 * 1152
    assert WarningCode.TRUNCATED in audio.warnings


@pytest.mark.parametrize("tag", [b"", TAG])
def test_a_file_without_a_xing_header_is_read_to_its_end(tmp_path: Path, tag: bytes) -> None:
    """The estimate that libsndfile makes instead is 1.2 s for these 4 s: the first frame is a small one."""
    content = tag + without_xing(MP3)

    audio = _decode(tmp_path, content)

    assert 1.3 > soundfile.info(io.BytesIO(without_xing(MP3))).frames / 44_100
    assert 176_400 <= audio.num_frames <= 176_400 + 2 * 1152
    start = 576  # samples that only the Xing header lets a decoder cut
    assert np.array_equal(
        soundfile.read(io.BytesIO(MP3), dtype="float32")[0][:44_100],
        soundfile.read(io.BytesIO(_repaired(without_xing(MP3))), dtype="float32")[0][start : start + 44_100],
    )


def _repaired(content: bytes) -> bytes:
    layout = parse_mp3(content, tag_bytes(content))
    assert layout is not None
    repaired = with_true_count(content, layout)
    assert repaired is not None
    return repaired


def test_tags_around_the_sound_are_no_frames() -> None:
    """ID3v2 in front, ID3v1 and APE behind; covers hold bytes that look like a frame."""
    tag = b"ID3\x03\0\0\0\0\x01\x00" + b"\xff\xfb\x90\x44" * 32
    content = tag + MP3 + b"TAG" + b"\xff\xfb\x90\x44".ljust(125, b"\0")
    layout = parse_mp3(content, tag_bytes(content))

    assert 138 == tag_bytes(content)
    assert layout is not None
    assert (155, 156) == (layout.stated_frames, len(list(frame_offsets(content, layout))))


def test_noise_behind_a_frame_header_is_not_audio(tmp_path: Path) -> None:
    """A repaired length must not make a file of what is none."""
    for head in (b"\xff\xfb\x90\x44", b"ID3\x03\0\0\0\0\0\x0a" + bytes(10)):
        with pytest.raises(ClipFault) as caught:
            _decode(tmp_path, head + np.random.default_rng(0).bytes(5000))
        assert FaultCode.NOT_AUDIO == caught.value.fault.code


def test_scanning_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """libmpg123 writes its opinion to stderr, in the midst of the progress bar."""
    noise = np.random.default_rng(0).bytes(5000)
    for content in (MP3[:20_000], b"\xff\xfb\x90\x44" + noise, TAG + noise, with_mp3_count(MP3, 5)):
        read_header(put(tmp_path, "clip.mp3", content))

    assert ("", "") == tuple(capfd.readouterr())


def test_a_flac_behind_an_id3_tag_keeps_its_length(tmp_path: Path) -> None:
    """Some taggers write such files."""
    content = TAG + encode(tone(4.0), format="FLAC")

    assert 64_000 == read_header(put(tmp_path, "clip", content)).num_frames
    assert 64_000 == _decode(tmp_path, content).num_frames


@settings(deadline=None)
@given(st.binary(max_size=3000), st.integers(0, 1500))
def test_any_bytes_end_the_walk(noise: bytes, cut: int) -> None:
    """No content may loop or raise: annotations name any file."""
    content = MP3[:cut] + noise
    layout = parse_mp3(content, tag_bytes(content))
    offsets = list(frame_offsets(content, layout)) if layout else []

    assert sorted(set(offsets)) == offsets
    assert layout is None or is_mpeg(content)
