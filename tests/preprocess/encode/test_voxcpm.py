"""A clip's latents are its own: alone, beside others, in windows, in any order, as float16 and as the reference."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from latentprep.core.units import num_latent_frames
from latentprep.preprocess.encode.checkpoint_info import describe_audio_vae
from latentprep.preprocess.encode.voxcpm import AudioVaeEncoder, build_audio_vae

from .builders import GOLDEN, GOLDEN_V1, GOLDEN_V2, noise

TOLERANCE = 1e-5
"""Of the largest value, in float32."""


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def golden_encoder(*, version: int = 2, whole_patches: int | None = None) -> AudioVaeEncoder:
    """A golden checkpoint on the CPU; ``whole_patches`` makes windows of shorter clips."""
    folder = GOLDEN_V2 if version == 2 else GOLDEN_V1
    info = describe_audio_vae("voxcpm", folder, "cpu", 3.0)
    if whole_patches is not None:
        info = replace(info, max_whole_samples=whole_patches * info.spec.patch_samples)
    return build_audio_vae(info, folder, "cpu", "tf32")


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Largest absolute difference relative to the largest value."""
    assert a.shape == b.shape
    return float(np.abs(a - b).max() / np.abs(b).max())


def bits(latents: list) -> list[bytes]:
    return [made.frames_FD.tobytes() for made in latents]


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 20_000), st.integers(1, 20_000), st.integers(0, 99))
def test_padding_and_batch_mates_change_nothing(num_samples: int, other: int, seed: int):
    """The encoder is causal: zeros and louder neighbours stand to the right of a clip or in another row."""
    encoder, clip = golden_encoder(), noise(num_samples, seed=seed)

    alone = encoder.encode_float32([clip])[0]
    beside = encoder.encode_float32([noise(other, seed=seed + 1) * 3, clip])[1]

    assert (num_latent_frames(num_samples, encoder.info.spec), 64) == alone.shape
    assert TOLERANCE > difference(beside, alone)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("extra_samples", [1, 5_000, 60_000])
def test_windows_give_what_the_whole_clip_gives(version: int, extra_samples: int):
    """A song of an hour must not have other latents than the same minute as a clip."""
    whole, windowed = golden_encoder(version=version), golden_encoder(version=version, whole_patches=9)
    clip = noise(windowed.info.max_whole_samples + extra_samples)

    expected = whole.encode_float32([clip])[0]

    assert TOLERANCE > difference(windowed.encode_float32([clip])[0], expected)


def test_windows_without_enough_context_would_differ():
    """Guards the test above against passing vacuously: the context is really needed."""
    whole, spec = golden_encoder(), golden_encoder().info.spec
    clip = noise(12 * spec.patch_samples)
    late = whole.encode_float32([clip[3 * spec.patch_samples :]])[0]

    assert TOLERANCE < difference(late[12:], whole.encode_float32([clip])[0][24:])
    assert TOLERANCE > difference(late[16:], whole.encode_float32([clip])[0][28:])


def test_rows_are_equal_to_the_bit_whatever_the_number_of_clips():
    """1, 2, 15, 16 and 20 clips, and reversed: a batch may lose a faulty clip, its mates must not notice."""
    encoder = golden_encoder()
    clips = [noise(7_681 + 100 * i, seed=i) for i in range(20)]
    expected = bits(encoder.encode(clips))

    assert expected == [bits(encoder.encode([clip]))[0] for clip in clips]
    assert expected[:2] == bits(encoder.encode(clips[:2]))
    assert expected[:15] == bits(encoder.encode(clips[:15]))
    assert expected[:16] == bits(encoder.encode(clips[:16]))
    assert expected[::-1] == bits(encoder.encode(clips[::-1]))
    assert expected == bits(encoder.encode(clips))


def test_float16_frames_and_their_peak_are_those_of_the_reference():
    """Rows hold the latents rounded once."""
    golden = np.load(GOLDEN / "vae" / "v2.npz")
    made = golden_encoder().encode([golden["waveform"]])[0]

    assert ((28, 64), np.float16) == (made.frames_FD.shape, made.frames_FD.dtype)
    assert pytest.approx(golden["latents"].T, abs=1e-4, rel=1e-3) == made.frames_FD[:25].astype(np.float32)
    assert pytest.approx(np.abs(golden_encoder().encode_float32([golden["waveform"]])[0]).max()) == made.peak


def test_a_clip_that_is_not_finite_shows_in_its_own_peak_only():
    """It is skipped; its batch mates are rows."""
    broken = noise(4_000)
    broken[1_000] = np.nan

    good, bad = golden_encoder().encode([noise(4_000), broken])

    assert np.isfinite(good.peak)
    assert np.isnan(bad.peak)


def test_the_peak_is_of_the_clip_not_of_its_padding():
    """Frames behind the clip's last patch belong to nobody."""
    encoder = golden_encoder()
    quiet, loud = noise(2_560) * 0.01, noise(25_600)

    assert pytest.approx(encoder.encode([quiet])[0].peak, rel=TOLERANCE) == encoder.encode([loud, quiet])[1].peak


def test_no_clips_are_no_latents():
    """A batch may lose all its clips to faults."""
    assert [] == golden_encoder().encode([])


@pytest.mark.parametrize("version", [1, 2])
def test_long_latents_are_decoded_in_pieces_without_a_seam(version: int, monkeypatch: pytest.MonkeyPatch):
    """Listening to an hour must not take a hundred gigabytes."""
    encoder = golden_encoder(version=version)
    frames = (3 * np.random.default_rng(0).standard_normal((60, 64))).astype(np.float16)
    whole, rate = encoder.decode(frames)
    monkeypatch.setattr("latentprep.preprocess.encode.voxcpm._DECODE_FRAMES", 25)
    pieces, _ = encoder.decode(frames)

    assert {1: (60 * 1764, 44_100), 2: (60 * 1920, 48_000)}[version] == (len(whole), rate)
    assert 1e-5 > np.abs(whole - pieces).max()
    assert 0 == len(encoder.decode(frames[:0])[0])
