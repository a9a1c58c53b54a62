"""Every way in which an audio file can be wrong, and what becomes of it."""

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from latentprep.core.errors import ClipFault, FaultCode, Stage, WarningCode
from latentprep.preprocess.audio.decode import DecodedAudio, decode
from latentprep.preprocess.audio.header import AudioHeader, read_header
from latentprep.preprocess.audio.probe import probe
from latentprep.preprocess.audio.regular_file import file_fault
from latentprep.preprocess.config import AudioSettings

from .builders import SPEC, encode, put, tone, with_data_size, with_flac_total, with_wav_rate

SETTINGS = AudioSettings()

WAV = encode(tone())
FLAC = encode(tone(4.0), format="FLAC")
VORBIS = encode(tone(8.0, 44_100), 44_100, "OGG", "VORBIS")
OPUS = encode(tone(4.0, 48_000), 48_000, "OGG", "OPUS")
MP3 = encode(tone(4.0, 44_100), 44_100, "MP3")


def _fault(call: Callable[[], object]) -> tuple[Stage, FaultCode]:
    with pytest.raises(ClipFault) as caught:
        call()
    return caught.value.fault.stage, caught.value.fault.code


def _decode(tmp_path: Path, content: bytes, settings: AudioSettings = SETTINGS) -> DecodedAudio:
    """Scan and decode, as a run does."""
    path = put(tmp_path, "clip", content)
    probe(path, str(tmp_path), settings)
    return decode(path, SPEC, settings, read_header(path))


# ---- what has no samples at all


def _missing(folder: Path) -> None:
    pass


def _folder(folder: Path) -> None:
    (folder / "clip").mkdir()


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "clip")


def _socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "clip"))


def _link_to_nothing(folder: Path) -> None:
    (folder / "clip").symlink_to(folder / "gone")


def _link_to_itself(folder: Path) -> None:
    (folder / "clip").symlink_to(folder / "clip")


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("build", "code"),
    [
        (_missing, FaultCode.MISSING_AUDIO),
        (_link_to_nothing, FaultCode.MISSING_AUDIO),
        (_folder, FaultCode.NOT_A_FILE),
        (_fifo, FaultCode.NOT_A_FILE),
        (_socket, FaultCode.NOT_A_FILE),
        (_link_to_itself, FaultCode.UNREADABLE),
    ],
)
def test_what_is_no_file_is_told_by_scan_and_by_decode(
    tmp_path: Path, build: Callable[[Path], None], code: FaultCode
) -> None:
    """A FIFO must not be opened: that waits for a writer, for ever."""
    build(tmp_path)
    path = str(tmp_path / "clip")

    assert (Stage.SCAN, code) == _fault(lambda: probe(path, str(tmp_path), SETTINGS))
    assert (Stage.SCAN, code) == _fault(lambda: read_header(path))
    assert (Stage.DECODE, code) == _fault(lambda: decode(path, SPEC, SETTINGS))


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "file/below"])
def test_a_name_that_no_file_can_have_is_a_missing_file(tmp_path: Path, name: str) -> None:
    """Annotations hold any text; none of it may raise something else."""
    put(tmp_path, "file", WAV)
    path = str(tmp_path / name)

    assert (Stage.SCAN, FaultCode.MISSING_AUDIO) == _fault(lambda: probe(path, str(tmp_path), SETTINGS))
    assert (Stage.DECODE, FaultCode.MISSING_AUDIO) == _fault(lambda: decode(path, SPEC, SETTINGS))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    """The commonest fault of a corpus that somebody else copied."""
    path = put(tmp_path, "clip", WAV)
    Path(path).chmod(0)

    assert (Stage.SCAN, FaultCode.UNREADABLE) == _fault(lambda: read_header(path))
    assert (Stage.DECODE, FaultCode.UNREADABLE) == _fault(lambda: decode(path, SPEC, SETTINGS))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ELOOP])
def test_errors_of_the_file_system_are_unreadable(number: int) -> None:
    """They can't be provoked on a sound disk, least of all as root."""
    fault = file_fault("clip", OSError(number, os.strerror(number)), Stage.DECODE).fault

    assert (FaultCode.UNREADABLE, f"clip: {os.strerror(number)}") == (fault.code, fault.message)


def test_zero_bytes_are_an_empty_file(tmp_path: Path) -> None:
    """What a full disk leaves."""
    path = put(tmp_path, "clip", b"")

    assert (Stage.SCAN, FaultCode.EMPTY_FILE) == _fault(lambda: read_header(path))
    assert (Stage.DECODE, FaultCode.EMPTY_FILE) == _fault(lambda: decode(path, SPEC, SETTINGS))


@pytest.mark.parametrize("spelling", ["/etc/hostname", "{root}/../other/clip", "{root}x/clip"])
def test_a_path_that_leaves_the_root_is_refused_unless_allowed(tmp_path: Path, spelling: str) -> None:
    """An annotation file from elsewhere must not choose what is read."""
    root = tmp_path / "root"
    root.mkdir()
    for name in ("other", "rootx"):
        (tmp_path / name).mkdir()
        put(tmp_path / name, "clip", WAV)
    path = spelling.format(root=root)

    assert (Stage.SCAN, FaultCode.OUTSIDE_ROOT) == _fault(lambda: probe(path, str(root), SETTINGS))
    allowed = AudioSettings(allow_outside_root=True)
    assert () == probe(path, str(root), allowed).warnings


@pytest.mark.parametrize("spelling", ["{root}", "{root}/.", "{root}/a/.."])
def test_the_root_itself_is_no_file(tmp_path: Path, spelling: str) -> None:
    """`wav_fn: "."` names a folder; it leads nowhere outside."""
    path = spelling.format(root=tmp_path)

    assert (Stage.SCAN, FaultCode.NOT_A_FILE) == _fault(lambda: probe(path, str(tmp_path), SETTINGS))


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_link_is_a_warning_or_a_fault(tmp_path: Path, linked: str) -> None:
    """Hub caches consist of links; whoever forbids them means folders, too."""
    root, store = tmp_path / "root", tmp_path / "store"
    root.mkdir()
    store.mkdir()
    put(store, "clip", WAV)
    (root / "link").symlink_to(store / "clip" if linked == "file" else store)
    path = str(root / "link" if linked == "file" else root / "link" / "clip")

    assert (WarningCode.SYMLINKED,) == probe(path, str(root), SETTINGS).warnings
    forbidden = AudioSettings(allow_symlinks=False)
    assert (Stage.SCAN, FaultCode.SYMLINK) == _fault(lambda: probe(path, str(root), forbidden))


# ---- what is no audio


@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        bytes(5000),
        np.random.default_rng(1).bytes(5000),
        WAV[:30],
        FLAC[:50],
        VORBIS[:300],
        MP3[:300],
        with_wav_rate(WAV, 1),
        with_wav_rate(WAV, 44_101),
    ],
    ids=["html", "lfs", "zeros", "noise", "wav", "flac", "vorbis", "mp3", "1 Hz", "44101 Hz"],
)
def test_what_no_decoder_takes_is_not_audio(tmp_path: Path, content: bytes) -> None:
    """Pages, pointers and headers without a body. 44,101 Hz would need a resampling kernel of 2.8 GB."""
    path = put(tmp_path, "clip", content)

    assert (Stage.DECODE, FaultCode.NOT_AUDIO) == _fault(lambda: decode(path, SPEC, SETTINGS))


@pytest.mark.parametrize("content", [WAV[:44], with_data_size(WAV[:44], 0), FLAC[:90], encode(tone(0.0))])
def test_a_header_without_samples_has_no_samples(tmp_path: Path, content: bytes) -> None:
    """A recorder that was stopped at once."""
    path = put(tmp_path, "clip", content)

    assert (Stage.DECODE, FaultCode.NO_SAMPLES) == _fault(lambda: decode(path, SPEC, SETTINGS))


# ---- what has samples that are no use


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("channels", [1, 2])
def test_samples_that_are_not_finite_are_refused(tmp_path: Path, value: float, channels: int) -> None:
    """One NaN makes the latents of its whole batch NaN in some encoders."""
    wave = np.repeat(tone()[:, None], channels, axis=1)
    wave[5000, channels - 1] = value

    call = lambda: _decode(tmp_path, encode(wave, subtype="FLOAT"))  # noqa: E731
    assert (Stage.DECODE, FaultCode.NOT_FINITE) == _fault(call)


@pytest.mark.parametrize("wave", [np.zeros(16_000), tone(amplitude=0.9e-4), np.zeros((16_000, 2))])
def test_silence_is_refused(tmp_path: Path, wave: np.ndarray) -> None:
    """The limit is a peak of -80 dBFS."""
    content = encode(wave, subtype="FLOAT")
    assert (Stage.DECODE, FaultCode.SILENT) == _fault(lambda: _decode(tmp_path, content))


def test_a_whisper_just_above_the_limit_is_a_row(tmp_path: Path) -> None:
    """Breaths and fade-outs are material."""
    assert 1.5e-4 == pytest.approx(_decode(tmp_path, encode(tone(amplitude=1.4e-4), subtype="FLOAT")).peak, rel=0.1)


@pytest.mark.parametrize("rest", [0.0, 1e-3])
def test_channels_in_antiphase_cancel(tmp_path: Path, rest: float) -> None:
    """A polarity error in one channel leaves silence, or its faint rest, when mixed."""
    wave = np.stack([tone(), -tone() * (1 - rest)], axis=1)

    assert (Stage.DECODE, FaultCode.PHASE_CANCELLED) == _fault(lambda: _decode(tmp_path, encode(wave)))


def test_one_silent_channel_cancels_nothing(tmp_path: Path) -> None:
    """Half the level is an honest mix."""
    wave = np.stack([tone(), np.zeros(16_000, np.float32)], axis=1)

    assert 0.15 == pytest.approx(float(np.abs(_decode(tmp_path, encode(wave)).wave).max()), rel=0.1)


@pytest.mark.parametrize(("num_samples", "refused"), [(2559, True), (2560, False)])
def test_less_than_a_patch_is_too_short(tmp_path: Path, num_samples: int, refused: bool) -> None:
    """Its only patch would be padding for the better part."""
    content = encode(tone(1.0)[:num_samples])

    if refused:
        assert (Stage.DECODE, FaultCode.TOO_SHORT) == _fault(lambda: _decode(tmp_path, content))
    else:
        assert num_samples == _decode(tmp_path, content).num_samples


def test_too_short_is_judged_at_the_encoders_rate(tmp_path: Path) -> None:
    """2,560 samples at 48 kHz are a third of a patch at 16 kHz."""
    content = encode(tone(1.0, 48_000)[:2560], 48_000)

    assert (Stage.DECODE, FaultCode.TOO_SHORT) == _fault(lambda: _decode(tmp_path, content))


def test_longer_than_max_duration_is_too_long_whatever_the_header_says(tmp_path: Path) -> None:
    """Decided by what is decoded, also where the header gives no length."""
    limit = AudioSettings(max_duration=2.0)
    path = put(tmp_path, "clip", with_flac_total(FLAC, 0))

    assert (Stage.DECODE, FaultCode.TOO_LONG) == _fault(lambda: decode(path, SPEC, limit))
    assert (Stage.DECODE, FaultCode.TOO_LONG) == _fault(lambda: _decode(tmp_path, FLAC, limit))
    assert 4.0 == _decode(tmp_path, FLAC, AudioSettings(max_duration=4.0)).num_samples / 16_000


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_file_that_changed_since_the_plan_is_refused(tmp_path: Path, change: str) -> None:
    """Its annotation belongs to another recording, perhaps."""
    path = put(tmp_path, "clip", WAV)
    header = read_header(path)
    if change == "size":
        put(tmp_path, "clip", WAV + b"\0")
        os.utime(path, ns=(header.mtime_ns, header.mtime_ns))
    else:
        os.utime(path, ns=(header.mtime_ns + 1, header.mtime_ns + 1))

    assert (Stage.DECODE, FaultCode.CHANGED) == _fault(lambda: decode(path, SPEC, SETTINGS, header))


# ---- what is damaged, and a row all the same


@pytest.mark.parametrize("stated", [0, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
def test_a_lying_wav_size_costs_no_sample(tmp_path: Path, stated: int, subtype: str) -> None:
    """Writers to a pipe, and killed recorders, leave such sizes."""
    honest = encode(tone(), subtype=subtype)

    audio = _decode(tmp_path, with_data_size(honest, stated))

    assert np.array_equal(_decode(tmp_path, honest).wave, audio.wave)
    assert (WarningCode.TRUNCATED,) == audio.warnings


def test_a_cut_wav_keeps_what_is_there(tmp_path: Path) -> None:
    """An interrupted copy."""
    audio = _decode(tmp_path, WAV[: 44 + 2 * 9000 + 1])

    assert 9000 == audio.num_frames
    assert (WarningCode.TRUNCATED,) == audio.warnings


def test_a_cut_flac_keeps_what_is_there(tmp_path: Path) -> None:
    """The decoder raises in the middle; blocks of 4,096 before that are sound."""
    whole = _decode(tmp_path, FLAC)

    audio = _decode(tmp_path, FLAC[: len(FLAC) // 2])

    assert 24_576 <= audio.num_frames < 40_000
    assert np.array_equal(whole.wave[: audio.num_frames], audio.wave)
    assert {WarningCode.TRUNCATED, WarningCode.LENGTH_MISMATCH} == set(audio.warnings)


def test_damage_in_the_middle_of_a_flac_keeps_what_comes_before(tmp_path: Path) -> None:
    """A bad sector."""
    middle = len(FLAC) // 2

    audio = _decode(tmp_path, FLAC[:middle] + bytes(3000) + FLAC[middle + 3000 :])

    assert 24_576 <= audio.num_frames < 40_000
    assert WarningCode.TRUNCATED in audio.warnings


@pytest.mark.parametrize("content", [VORBIS, OPUS], ids=["vorbis", "opus"])
def test_a_cut_ogg_keeps_its_whole_pages(tmp_path: Path, content: bytes) -> None:
    """libsndfile plays it without a complaint; the missing end-of-stream page tells."""
    whole = _decode(tmp_path, content)

    audio = _decode(tmp_path, content[: len(content) * 2 // 3])

    assert () == whole.warnings
    assert 0.3 * whole.num_frames < audio.num_frames < 0.8 * whole.num_frames
    assert WarningCode.TRUNCATED in audio.warnings


def test_a_cut_mp3_keeps_its_whole_frames(tmp_path: Path) -> None:
    """Its Xing header still has the old length."""
    audio = _decode(tmp_path, MP3[: len(MP3) // 2])

    assert 1.5 < audio.num_frames / 44_100 < 2.5
    assert {WarningCode.TRUNCATED, WarningCode.LENGTH_MISMATCH} == set(audio.warnings)


@pytest.mark.parametrize(("total", "warnings"), [(0, ()), ((1 << 36) - 1, (WarningCode.TRUNCATED,))])
def test_a_flac_of_unknown_or_absurd_length_is_read_to_its_end(
    tmp_path: Path, total: int, warnings: tuple[WarningCode, ...]
) -> None:
    """0 means unknown, an encoder's choice; 2^36 - 1 samples would be 256 GiB, if anybody allocated them."""
    audio = _decode(tmp_path, with_flac_total(FLAC, total))

    assert np.array_equal(_decode(tmp_path, FLAC).wave, audio.wave)
    assert warnings == audio.warnings


def test_a_length_that_was_planned_wrongly_is_noticed(tmp_path: Path) -> None:
    """More than half a second between header and samples."""
    path = put(tmp_path, "clip", WAV)
    found = read_header(path)

    def warnings(num_frames: int) -> tuple[WarningCode, ...]:
        hint = AudioHeader(
            file_size=found.file_size, mtime_ns=found.mtime_ns, num_frames=num_frames, sample_rate=found.sample_rate
        )
        return decode(path, SPEC, SETTINGS, hint).warnings

    assert () == warnings(16_000 + 8_000)
    assert (WarningCode.LENGTH_MISMATCH,) == warnings(16_000 + 8_001)


def test_samples_beyond_full_scale_are_kept(tmp_path: Path) -> None:
    """Float files are often loud; clipping them would be a choice of ours."""
    wave = tone(amplitude=2.5)

    audio = _decode(tmp_path, encode(wave, subtype="FLOAT"))

    assert np.array_equal(wave, audio.wave)
    assert (WarningCode.LOUD,) == audio.warnings


@pytest.mark.parametrize("rate", [8_000, 11_025, 12_345, 16_000, 22_050, 44_100, 48_000, 96_000, 192_000])
def test_every_rate_is_a_row_and_a_low_one_is_noticed(tmp_path: Path, rate: int) -> None:
    """What a telephone recorded has nothing above 4 kHz; whoever trains on it should know."""
    audio = _decode(tmp_path, encode(tone(1.0, rate), rate))

    assert (16_000, rate) == (audio.num_samples, audio.source_rate)
    assert ((WarningCode.UPSAMPLED,) if rate < 16_000 else ()) == audio.warnings


_NARROW = """
import resource, sys
from latentprep.core.errors import ClipFault
from latentprep.core.units import LatentSpec
from latentprep.preprocess.audio.decode import decode
from latentprep.preprocess.config import AudioSettings

spec = LatentSpec(sample_rate=16_000, hop_length=640, patch_size=4, latent_dim=64)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (200 << 20),) * 2)
try:
    decode(sys.argv[1], spec, AudioSettings())
except ClipFault as error:
    print(error.fault.stage, error.fault.code)
print(decode(sys.argv[2], spec, AudioSettings()).num_samples)
"""


def test_a_file_that_the_hosts_memory_has_no_room_for_is_a_fault_of_its_own(tmp_path: Path) -> None:
    """Seven hours in one file, and 200 MiB: the next clip is decoded as if nothing had been."""
    header = with_data_size(encode(tone(0.0)), 800 << 20)
    (tmp_path / "long.wav").write_bytes(header)
    os.truncate(tmp_path / "long.wav", len(header) + (800 << 20))  # sparse: takes no room on the disk
    command = [sys.executable, "-c", _NARROW, str(tmp_path / "long.wav"), put(tmp_path, "clip", WAV)]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert f"decode {FaultCode.NO_MEMORY}\n16000\n" == done.stdout


def test_a_row_remembers_that_its_file_is_a_link(tmp_path: Path) -> None:
    """Where the bytes came from is part of its facts."""
    put(tmp_path, "clip", WAV)
    (tmp_path / "link").symlink_to("clip")

    assert (WarningCode.SYMLINKED,) == decode(str(tmp_path / "link"), SPEC, SETTINGS).warnings


def test_every_audio_fault_has_a_test_here() -> None:
    """A new code needs a builder."""
    text = Path(__file__).read_text()
    codes = [*FaultCode][[*FaultCode].index(FaultCode.MISSING_AUDIO) : [*FaultCode].index(FaultCode.DECODE_TIMEOUT)]

    assert [] == [code.name for code in codes if f"FaultCode.{code.name}" not in text]
    assert len(codes) == 14
