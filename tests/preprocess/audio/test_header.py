"""Headers: our own reader against libsndfile, and lengths nobody should believe."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.audio import header as header_module
from latentprep.preprocess.audio.header import read_header
from latentprep.preprocess.audio.riff import parse_wav

from .builders import encode, extensible, put, rf64, tone, with_data_size, with_flac_total

OWN = {
    "u8": encode(tone(), subtype="PCM_U8"),
    "16": encode(tone()),
    "24": encode(tone(), 44_100, subtype="PCM_24"),
    "32": encode(tone(), subtype="PCM_32"),
    "float": encode(np.stack([tone()] * 2, axis=1), 48_000, subtype="FLOAT"),
    "double": encode(tone(), subtype="DOUBLE"),
    "alaw": encode(tone(), 8_000, subtype="ALAW"),
    "six channels": encode(np.stack([tone()] * 6, axis=1), 96_000),
    "flac 16": encode(tone(), 22_050, "FLAC"),
    "flac 24": encode(np.stack([tone()] * 2, axis=1), 48_000, "FLAC", "PCM_24"),
}
EXTENDED = {"extensible": extensible(tone(0.5)), "rf64": rf64(tone(0.5))}
FOREIGN = {
    "vorbis": encode(tone(2.0), format="OGG", subtype="VORBIS"),
    "opus": encode(tone(2.0, 48_000), 48_000, "OGG", "OPUS"),
    "mp3": encode(tone(2.0, 44_100), 44_100, "MP3"),
    "aiff": encode(tone(), format="AIFF"),
    "adpcm": encode(tone(), subtype="IMA_ADPCM"),
}


@pytest.mark.parametrize("content", (OWN | EXTENDED | FOREIGN).values(), ids=(OWN | EXTENDED | FOREIGN).keys())
def test_headers_equal_what_libsndfile_says(tmp_path: Path, content: bytes) -> None:
    """The fast reader and the fallback must be indistinguishable."""
    path = put(tmp_path, "clip", content)
    info = soundfile.info(path)

    found = read_header(path)

    assert (info.frames, info.samplerate, info.channels) == (found.num_frames, found.sample_rate, found.channels)
    assert info.subtype == found.subtype
    assert info.format.removesuffix("EX") == found.format
    assert (len(content), Path(path).stat().st_mtime_ns) == (found.file_size, found.mtime_ns)


@pytest.mark.parametrize("content", (OWN | EXTENDED).values(), ids=(OWN | EXTENDED).keys())
def test_wav_and_flac_never_reach_libsndfile(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is several times slower; millions of files would take minutes more."""
    monkeypatch.delattr(header_module.soundfile, "SoundFile")

    assert read_header(put(tmp_path, "clip", content)).num_frames


@pytest.mark.parametrize("stated", [0, 0x7FFFFFFF, 0xFFFFFFFF, 32_002])
def test_a_wav_length_is_what_the_file_has_room_for(tmp_path: Path, stated: int) -> None:
    """Such files claim up to 37 hours; a plan that believed it would never end."""
    path = put(tmp_path, "clip", with_data_size(OWN["16"], stated))

    assert 16_000 == read_header(path).num_frames


@pytest.mark.parametrize("total", [0, (1 << 36) - 1])
def test_an_unknown_or_absurd_flac_length_is_none(tmp_path: Path, total: int) -> None:
    """Guessing is the plan's business; it has the file's size."""
    found = read_header(put(tmp_path, "clip", with_flac_total(OWN["flac 16"], total)))

    assert (None, 22_050) == (found.num_frames, found.sample_rate)


def test_chunks_before_the_samples_are_skipped() -> None:
    """Broadcast WAV files carry kilobytes of them; odd sizes are padded."""
    wav = OWN["16"]
    inserted = wav[:12] + b"bext" + (601).to_bytes(4, "little") + bytes(602) + wav[12:]
    layout = parse_wav(inserted)

    assert layout is not None
    assert (44 + 610, 32_000) == (layout.data_offset, layout.stated_bytes)


@pytest.mark.parametrize("content", [b"", b"RIFF", OWN["16"][:30], b"RIFX" + OWN["16"][4:], FOREIGN["adpcm"]])
def test_what_is_no_plain_wav_is_left_to_libsndfile(content: bytes) -> None:
    """Only codings whose frames have one size can be counted here."""
    assert parse_wav(content) is None


def test_scanning_needs_no_torch() -> None:
    """The parent scans, and must stay small and quick to start."""
    code = (
        "import sys; from latentprep.preprocess.audio import header, probe;"
        "from latentprep.preprocess.score import prompt; print('torch' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == process.stdout.strip()


@given(noise=st.binary(max_size=200), cut=st.integers(0, 60))
def test_no_bytes_make_the_wav_reader_raise(noise: bytes, cut: int) -> None:
    """It reads whatever a path leads to."""
    layout = parse_wav(OWN["16"][:cut] + noise)

    assert layout is None or 0 <= layout.num_frames(len(noise) + cut) <= len(noise) + cut
