"""The bundled VAE: small, of VoxCPM's geometry, and good enough to hear a melody."""

import numpy as np
import pytest

from latentprep.core.units import LatentSpec
from latentprep.preprocess.config import EncoderSettings
from latentprep.preprocess.encode.registry import build, describe
from latentprep.preprocess.encode.tiny_vae import TINY_FOLDER
from latentprep.preprocess.synth.songs import random_score
from latentprep.preprocess.synth.timbre import VOICES
from latentprep.preprocess.synth.voice import sing

from ..synth.f0 import cents_between, f0_track

SETTINGS = EncoderSettings(name="tiny")


def test_it_has_voxcpms_geometry_and_weighs_little():
    """What is tried with it has the sizes of the real thing, and every installation carries it."""
    assert LatentSpec(sample_rate=16_000, hop_length=640, patch_size=4, latent_dim=64) == describe(SETTINGS, "cpu").spec
    assert 4 << 20 >= (TINY_FOLDER / "audiovae.safetensors").stat().st_size


@pytest.mark.parametrize("name", list(VOICES))
def test_a_melody_survives_encoding_and_decoding(name: str):
    """At least 90 % of the voiced frames in the middle of notes lie within 50 cents of the score."""
    rng, voice = np.random.default_rng(len(name)), VOICES[name]
    score = random_score(rng, "en", seconds=8.0, compass=(voice.low, voice.high))
    encoder = build(SETTINGS, describe(SETTINGS, "cpu"), "cpu")

    made = encoder.encode([sing(score, sample_rate=16_000, voice=voice, rng=rng)])[0]
    wave, rate = encoder.decode(made.frames_FD)
    times, f0_hz, voiced = f0_track(wave, rate)
    cents, num_frames = [], 0
    for note in score.notes():
        if note.is_sung and note.seconds >= 0.25:
            middle = np.abs(times - (note.start + note.end) / 2) < 0.2 * note.seconds
            cents += list(np.abs(cents_between(f0_hz[middle & voiced], note.pitch)))
            num_frames += int(middle.sum())

    assert 100 < num_frames
    assert 0.9 <= len(cents) / num_frames
    assert 0.9 <= np.mean(np.array(cents) <= 50)
    assert 100 > made.peak
