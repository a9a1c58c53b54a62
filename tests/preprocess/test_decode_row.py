from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from latentprep.core.errors import CheckpointError, OutputError, UsageError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.config import EncoderSettings
from latentprep.preprocess.decode_row import Sound, UsedEncoder, check_wav, decode_frames, save_wav, used_encoder
from latentprep.preprocess.encode.registry import describe
from latentprep.writers.provenance import (
    Counts,
    EncoderFacts,
    Provenance,
    Timings,
    describe_environment,
    write_provenance,
)

GOLDEN = Path(__file__).parents[1] / "golden"


def golden_encoder(**changes: Any) -> UsedEncoder:
    settings = EncoderSettings(name="voxcpm", path=GOLDEN / "checkpoint")
    return UsedEncoder(**{"settings": settings, "weights_hash": describe(settings, "cpu").weights_hash, **changes})


def write_encoder(folder: Path, settings: Any) -> None:
    """A provenance.json that says nothing but which encoder there was."""
    facts = EncoderFacts(
        name="voxcpm",
        checkpoint="",
        weights_hash="abc",
        tokenizer_hash="",
        sample_rate=16_000,
        hop_length=640,
        patch_size=4,
        latent_dim=64,
        precision="float32",
    )
    counts = Counts(
        planned=0, written=0, skipped={}, remaining=0, warnings={}, audio_seconds=0.0, chunks=0, shards=0, bytes=0
    )
    provenance = Provenance(
        environment=describe_environment(),
        command=(),
        config={"encoder": settings},
        fingerprint="",
        encoder=facts,
        devices=(),
        counts=counts,
        digest="",
        content_digest="",
        timings=Timings(started="", finished="", wall_seconds=0.0, encoded_seconds=0.0),
    )
    write_provenance(OutputPaths(folder), provenance)


def test_the_encoder_is_read_off_the_provenance(tmp_path: Path):
    settings = EncoderSettings(name="voxcpm", path=Path("checkpoints/VAE"), precision="bf16")
    write_encoder(tmp_path, settings.model_dump(mode="json"))

    assert UsedEncoder(settings, "abc", Path.cwd()) == used_encoder(tmp_path)


def test_a_relative_checkpoint_is_found_from_another_folder(tmp_path: Path):
    """The run knew where it was started; whoever listens sits somewhere else, or has copied both folders."""
    used = golden_encoder(settings=EncoderSettings(name="voxcpm", path=Path("checkpoint")), folder=GOLDEN)

    assert 48_000 == decode_frames(np.zeros((2, 64), np.float16), used).sample_rate


def test_a_checkpoint_copied_along_with_the_dataset_is_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(GOLDEN)
    used = golden_encoder(settings=EncoderSettings(name="voxcpm", path=Path("checkpoint")), folder=tmp_path / "gone")

    assert Path("checkpoint") == used.checkpoint


def test_a_checkpoint_that_is_gone_names_the_option_and_the_folder_it_was_seen_from(tmp_path: Path):
    used = golden_encoder(settings=EncoderSettings(name="voxcpm", path=Path("ckpt")), folder=tmp_path)

    with pytest.raises(CheckpointError, match="no such folder") as raised:
        decode_frames(np.zeros((2, 64), np.float16), used)
    assert f"recorded as 'ckpt', seen from '{tmp_path}'" in raised.value.why
    assert "--encoder-path" in raised.value.fix


def test_a_folder_without_a_configuration_is_no_checkpoint(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"has no config\.json") as raised:
        decode_frames(np.zeros((2, 64), np.float16), golden_encoder(), tmp_path)
    assert "--encoder-path" in raised.value.fix


def test_a_wav_in_a_folder_that_does_not_exist_is_refused_before_decoding(tmp_path: Path):
    with pytest.raises(OutputError, match=r"folder .*such does not exist") as raised:
        check_wav(tmp_path / "no" / "such" / "x.wav")
    assert "mkdir -p" in raised.value.fix


def test_a_missing_provenance_is_named(tmp_path: Path):
    with pytest.raises(OutputError, match=r"provenance\.json cannot be read"):
        used_encoder(tmp_path)


@pytest.mark.parametrize("settings", [None, {}, {"name": "another"}])
def test_an_encoder_of_another_version_is_an_error_with_the_files_name(tmp_path: Path, settings: Any):
    write_encoder(tmp_path, settings)

    with pytest.raises(OutputError, match=r"provenance\.json cannot be read"):
        used_encoder(tmp_path)


def test_latents_come_back_as_the_sound_that_the_decoder_makes():
    """The decoder writes at its own rate, which is not the encoder's."""
    golden = np.load(GOLDEN / "vae" / "v2.npz")
    frames_FD = golden["latents"].reshape(64, -1).T.astype(np.float16)
    sound = decode_frames(frames_FD, golden_encoder())

    assert 48_000 == sound.sample_rate
    np.testing.assert_allclose(golden["decoded"].ravel(), sound.samples, atol=2e-2)


def test_a_moved_checkpoint_is_found_where_the_user_says(tmp_path: Path):
    used = golden_encoder(settings=EncoderSettings(name="voxcpm", path=tmp_path / "gone"))

    with pytest.raises(CheckpointError):
        decode_frames(np.zeros((4, 64), np.float16), used)
    assert 4 * 1920 == len(decode_frames(np.zeros((4, 64), np.float16), used, GOLDEN / "checkpoint").samples)


def test_other_weights_are_refused():
    """Their decoder makes noise of these latents, and one would look for the error in the dataset."""
    with pytest.raises(CheckpointError, match="holds other weights"):
        decode_frames(np.zeros((4, 64), np.float16), golden_encoder(weights_hash="another"))


def test_a_bundled_encoder_has_no_folder():
    with pytest.raises(UsageError, match="the encoder dummy is bundled"):
        decode_frames(np.zeros((4, 64), np.float16), UsedEncoder(EncoderSettings(name="dummy"), ""), GOLDEN)


def test_a_wav_holds_the_samples(tmp_path: Path):
    samples = np.sin(np.arange(480, dtype=np.float32) / 10) / 2
    save_wav(tmp_path / "a.wav", Sound(samples, 48_000))

    read, sample_rate = soundfile.read(tmp_path / "a.wav", dtype="float32")
    assert 48_000 == sample_rate
    np.testing.assert_allclose(samples, read, atol=1 / 32_000)


def test_a_folder_that_is_not_there_is_an_error_with_the_files_name(tmp_path: Path):
    with pytest.raises(OutputError, match=r"nowhere/a\.wav cannot be written"):
        save_wav(tmp_path / "nowhere" / "a.wav", Sound(np.zeros(4, np.float32), 48_000))
