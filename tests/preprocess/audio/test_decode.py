"""Decoding sound files: bits, mixing, facts, and the reference corpus."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
import torch
import torchaudio
import xxhash

from latentprep.core.errors import Stage
from latentprep.core.units import frames_to_seconds, num_latent_frames, samples_to_seconds
from latentprep.preprocess.audio import samples as samples_module
from latentprep.preprocess.audio.decode import decode
from latentprep.preprocess.audio.header import read_header
from latentprep.preprocess.audio.probe import probe
from latentprep.preprocess.audio.regular_file import RegularFile
from latentprep.preprocess.audio.samples import mix_to_mono, read_samples
from latentprep.preprocess.config import AudioSettings

from .builders import SPEC, encode, extensible, put, rf64, tone

GOLDEN = Path(__file__).parents[2] / "golden"
SETTINGS = AudioSettings()

torch.set_num_threads(1)

FILES = {
    "wav": encode(tone(3.0)),
    "24": encode(tone(3.0), subtype="PCM_24"),
    "stereo": encode(np.stack([tone(3.0), tone(3.0, amplitude=0.1)], axis=1), 48_000, subtype="FLOAT"),
    "six channels": encode(np.stack([tone(3.0) * level for level in np.linspace(0.1, 1, 6)], axis=1), 44_100),
    "flac": encode(tone(3.0), 44_100, "FLAC", "PCM_24"),
    "vorbis": encode(tone(3.0, 44_100), 44_100, "OGG", "VORBIS"),
    "opus": encode(tone(3.0, 48_000), 48_000, "OGG", "OPUS"),
    "mp3": encode(tone(3.0, 44_100), 44_100, "MP3"),
    "rf64": rf64(tone(3.0)),
    "extensible": extensible(tone(3.0)),
}
every_file = pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())


@every_file
def test_the_waveform_is_a_whole_read_mixed_and_resampled(tmp_path: Path, content: bytes) -> None:
    """The definition of the row format, written with the libraries alone."""
    path = put(tmp_path, "clip", content)
    stored, rate = soundfile.read(path, dtype="float32", always_2d=True)
    mono = torch.from_numpy(stored.mean(axis=1))
    expected = torchaudio.functional.resample(mono, rate, SPEC.sample_rate).numpy()

    audio = decode(path, SPEC, SETTINGS, read_header(path))

    assert np.array_equal(expected, audio.wave)
    assert (np.float32, len(expected), ()) == (audio.wave.dtype, audio.num_samples, audio.warnings)
    assert (len(stored), stored.shape[1], rate) == (audio.num_frames, audio.channels, audio.source_rate)


@every_file
def test_blocks_join_to_one_whole_read(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seek between blocks, as soundfile does by itself, would shift lossy files."""
    path = put(tmp_path, "clip", content)
    with RegularFile(path, Stage.DECODE) as file:
        whole = read_samples(file, None)
        monkeypatch.setattr(samples_module, "BLOCK_VALUES", 6_001)
        blocks = read_samples(file, None)

    assert 1 == len(whole.pieces) < 8 <= len(blocks.pieces)
    assert np.array_equal(whole.mono(), blocks.mono())
    assert (whole.peak, whole.num_frames) == (blocks.peak, blocks.num_frames)


def test_reading_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten ten-hour recording must not fill the memory before it is refused."""
    monkeypatch.setattr(samples_module, "BLOCK_VALUES", 1_000)
    path = put(tmp_path, "clip", FILES["wav"])
    with RegularFile(path, Stage.DECODE) as file:
        assert 17_000 == read_samples(file, 1.0).num_frames


@pytest.mark.parametrize("channels", [1, 2, 3, 6])
def test_mixing_is_the_mean_over_channels_to_the_last_bit(channels: int) -> None:
    """The quick way for stereo is a shortcut, not another rule."""
    block_NC = np.random.default_rng(channels).normal(size=(1_000, channels)).astype(np.float32)

    assert np.array_equal(block_NC.mean(axis=1), mix_to_mono(block_NC))


def test_facts_describe_the_file(tmp_path: Path) -> None:
    """They travel with the row: reuse compares the hash, the report draws the levels."""
    wave = np.stack([tone(), 0.5 * tone()], axis=1)
    content = encode(wave, 16_000, subtype="FLOAT")

    audio = decode(put(tmp_path, "clip", content), SPEC, SETTINGS)

    assert (len(content), xxhash.xxh3_128_hexdigest(content)) == (audio.file_size, audio.audio_hash)
    assert float(np.abs(wave).max()) == audio.peak
    assert float(np.sqrt(np.mean((0.75 * tone()) ** 2))) == pytest.approx(audio.rms, rel=1e-5)
    assert (0, audio.audio_hash) == (len(audio.without_wave().wave), audio.without_wave().audio_hash)


def _golden_audio() -> dict[str, Path]:
    """Item name -> audio file of the reference corpus."""
    corpus = GOLDEN / "corpus"
    found = {f"{path.parent.name}/{path.stem}": path for path in (corpus / "folder_based").glob("*/0*")}
    for name, key in (("json_file", "wav_fn"), ("weak_json_file", "audio_path")):
        for entry in json.loads((corpus / name / "annotations.json").read_text()):
            item = entry.get("item_name") or str(Path(entry[key]).with_suffix(""))
            found[item] = corpus / name / "audio" / entry[key]
    return found


def test_lengths_equal_the_reference_rows() -> None:
    """audio_duration of all rows, and estimated_duration of the weak ones, which counts resampled samples."""
    columns = ["item_name", "audio_duration", "estimated_duration", "has_score"]
    rows = pq.read_table(GOLDEN / "expected.parquet", columns=columns).to_pylist()
    paths = _golden_audio()

    for row in rows:
        path = paths[row["item_name"]]
        assert () == probe(str(path), str(GOLDEN), SETTINGS).warnings
        audio = decode(str(path), SPEC, SETTINGS, read_header(str(path)))
        assert () == audio.warnings
        assert row["audio_duration"] == frames_to_seconds(num_latent_frames(audio.num_samples, SPEC), SPEC)
        if not row["has_score"]:
            assert row["estimated_duration"] == samples_to_seconds(audio.num_samples, SPEC.sample_rate)
    assert len(rows) == 11
