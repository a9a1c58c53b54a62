"""An encoder that is short of memory makes the same latents in smaller parts.

The encoder is real (the golden checkpoint on the CPU); only its allocator is narrow: a forward pass over more than so
many padded samples raises what CUDA's allocator raises. A single clip counts twice, as the CPU repeats it.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from latentprep.core.errors import Fault, FaultCode, Stage
from latentprep.preprocess.encode.checkpoint_info import describe_audio_vae
from latentprep.preprocess.encode.dummy import DummyEncoder, describe_dummy
from latentprep.preprocess.encode.fitting import FittingEncoder
from latentprep.preprocess.encode.protocol import EncoderInfo, Latents, WindowedEncoder
from latentprep.preprocess.encode.voxcpm import AudioVaeEncoder, build_audio_vae

from .builders import GOLDEN_V2, noise

PATCH = 2_560
SHORTEST = 8
"""Patches of the shortest window: four of them are context."""


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def golden_encoder() -> AudioVaeEncoder:
    info = describe_audio_vae("voxcpm", GOLDEN_V2, "cpu", 3.0)
    return build_audio_vae(info, GOLDEN_V2, "cpu", "float32")


class Cramped:
    """A real encoder with room for ``room`` patches in one forward pass, and a list of what it was asked for."""

    def __init__(self, room: int, *, whole: int = 100, batch: int = 1000) -> None:
        self.encoder = copy(golden_encoder())
        self.encoder.info = replace(self.encoder.info, max_whole_samples=whole * PATCH, max_batch_samples=batch * PATCH)
        self.room = room
        self.calls: list[tuple[int, int]] = []
        """(clips, patches) of each forward pass."""
        self.notices: list[str] = []
        self.network = self.encoder._forward
        self.fitting = FittingEncoder(self.encoder, self.notices.append)
        self.encoder._forward = self._narrow

    def _narrow(self, wav_B1S: Tensor) -> Tensor:
        self.calls.append((wav_B1S.shape[0], wav_B1S.shape[2] // PATCH))
        if wav_B1S.numel() > self.room * PATCH:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.network(wav_B1S)

    def asked_for(self, waves: list[np.ndarray], name: str = "a batch") -> list[tuple[int, int]]:
        """The calls that encoding ``waves`` takes."""
        self.calls.clear()
        self.fitting.encode(waves, name)
        return list(self.calls)


def clips(*patches: float) -> list[np.ndarray]:
    return [noise(round(size * PATCH), seed=i) for i, size in enumerate(patches)]


def assert_same(made: list[Latents | Fault], expected: list[Latents]) -> None:
    """Equal but for the last bit of float16."""
    for one, other in zip(made, expected, strict=True):
        assert isinstance(one, Latents)
        np.testing.assert_allclose(one.frames_FD.astype(np.float32), other.frames_FD, rtol=2e-3, atol=2e-2)


def roomy(waves: list[np.ndarray]) -> list[Latents]:
    return [made for wave in waves for made in Cramped(1 << 30).encoder.encode([wave])]


def test_a_batch_that_does_not_fit_is_halved_until_it_does():
    """Eight clips of 5 patches need 40; there is room for 12."""
    cramped, waves = Cramped(12), clips(*[5] * 8)

    made = cramped.fitting.encode(waves)

    assert [(8, 5), (4, 5), (2, 5), (2, 5), (2, 5), (2, 5)] == cramped.calls
    assert_same(made, roomy(waves))


def test_what_did_not_fit_once_is_not_tried_again():
    """A failure costs the time of a call; a run has thousands of batches of a length."""
    cramped = Cramped(12)
    cramped.fitting.encode(clips(*[5] * 8))

    assert [(2, 5)] * 4 == cramped.asked_for(clips(*[5] * 8))
    assert [(2, 5), (2, 5), (2, 4)] == cramped.asked_for(clips(5, 5, 4.5, 4, 4)), "one, two and two clips"
    assert [(2, 6)] == cramped.asked_for(clips(6, 6)), "nothing longer fits in larger parts"
    assert [(4, 3)] == cramped.asked_for(clips(3, 3, 3, 3)), "shorter ones may"


def test_a_clip_that_does_not_fit_whole_goes_through_in_ever_shorter_windows():
    """60 patches, room for 20: windows of up to 15 patches come in pairs, which do not fit either; those of 8 do."""
    cramped, waves = Cramped(20), clips(60)

    made = cramped.fitting.encode(waves)

    assert [(2, 60), (2, 14), (2, 8)] == cramped.calls[:3]
    assert {(2, 8)} == set(cramped.calls[3:])
    assert_same(made, roomy(waves))
    assert isinstance(made[0], Latents)
    assert made[0].windowed
    assert {(2, 8)} == set(cramped.asked_for(clips(60))), "the length of windows is remembered"
    assert {(2, 8)} == set(cramped.asked_for(clips(61))), "for longer clips, too"


def test_windows_of_the_plan_become_shorter_as_well():
    """An hour-long clip was never meant to go through whole."""
    cramped, waves = Cramped(20, whole=20), clips(50)

    made = cramped.fitting.encode(waves)

    assert [(2, 16), (2, 10), (2, 10)] == [*cramped.calls[:2], cramped.calls[-1]]
    assert_same(made, roomy(waves))
    assert {(2, 10)} == set(cramped.asked_for(clips(50)))


def test_a_clip_that_does_not_even_fit_in_the_shortest_windows_is_skipped():
    """One row is lost, not the run, and not its neighbours."""
    cramped, waves = Cramped(10), clips(30, 5, 5)

    made = cramped.fitting.encode(waves)

    assert isinstance(made[0], Fault)
    assert (Stage.ENCODE, FaultCode.OOM) == (made[0].stage, made[0].code)
    assert "4.8 s do not fit, whole or in windows: CUDA out of memory. Tried" in made[0].message
    assert_same(made[1:], roomy(waves[1:]))


def test_no_clip_is_skipped_on_suspicion():
    """What used up the card may be gone a minute later."""
    cramped = Cramped(10)
    cramped.fitting.encode(clips(30))
    cramped.room = 2 * SHORTEST

    made = cramped.fitting.encode(clips(30))

    assert_same(made, roomy(clips(30)))


def test_one_line_says_what_was_done():
    """Once: a thousand batches would fill the screen with the same news."""
    cramped = Cramped(20)

    cramped.fitting.encode(clips(3, 3))
    assert [] == cramped.notices
    cramped.fitting.encode(clips(*[12] * 2), "batch 3 of chunk 0")
    cramped.fitting.encode(clips(*[14] * 8), "batch 4 of chunk 0")

    assert 1 == len(cramped.notices)
    assert cramped.notices[0].startswith("out of memory in batch 3 of chunk 0: 2 clips in parts of 1, then")


def test_clips_longer_than_their_headers_said_are_encoded_as_if_planned_so():
    """A batch of eight short clips may hold an hour: the encoder takes such a clip alone, a batch only up to its limit."""
    cramped, waves = Cramped(1000, whole=20, batch=40), clips(3, 3, 50, 3, 18, 18, 18)

    made = cramped.fitting.encode(waves)

    assert [(2, 3), (2, 18)] == [call for call in cramped.calls if call[1] in (3, 18)][:2]
    assert all(count * size <= 40 for count, size in cramped.calls)
    assert_same(made, roomy(waves))
    assert [False, False, True, False, False, False, False] == [isinstance(m, Latents) and m.windowed for m in made]
    assert [] == cramped.notices


def test_a_bug_is_no_shortage():
    """It ends the worker, whose supervisor tells it."""
    cramped = Cramped(100)

    def broken(wav_B1S: Tensor) -> Tensor:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    cramped.encoder._forward = broken
    with pytest.raises(RuntimeError, match="illegal memory access"):
        cramped.fitting.encode(clips(3, 3))


class _Plain:
    """An encoder without windows that takes one clip at most, of at most ``room`` samples."""

    def __init__(self, room: int) -> None:
        self.info: EncoderInfo = describe_dummy()
        self.room = room
        self._dummy = DummyEncoder(self.info)

    def encode(self, waveforms: list[np.ndarray]) -> list[Latents]:
        if sum(map(len, waveforms)) > self.room:
            raise MemoryError
        return self._dummy.encode(waveforms)

    decode: Callable[..., tuple[np.ndarray, int]] = DummyEncoder.decode


def test_an_encoder_without_windows_ends_with_single_clips():
    """Windows are an ability that an encoder may have."""
    waves = clips(4, 4, 8)

    made = FittingEncoder(_Plain(4 * PATCH)).encode(waves)  # type: ignore[arg-type]

    assert [False, False, True] == [isinstance(one, Fault) for one in made]
    assert not isinstance(_Plain(0), WindowedEncoder)
    assert isinstance(Cramped(0).encoder, WindowedEncoder)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=5), min_size=1, max_size=2),
    st.integers(1, 60),
)
@example([[1, 14, 24]], 1)
def test_whatever_the_room_every_clip_has_its_outcome_in_its_place(batches: list[list[int]], room: int):
    """Order is kept, no shape fails twice but the last resort's, and only what can't fit at all is skipped."""
    cramped = Cramped(room, whole=20, batch=60)
    cramped.network = lambda wav_B1S: torch.zeros(len(wav_B1S), 64, wav_B1S.shape[2] // 640)  # shapes alone matter
    for sizes in batches:
        waves = clips(*sorted(sizes, reverse=True))
        made = cramped.fitting.encode(waves)
        for wave, one in zip(waves, made, strict=True):
            patches = len(wave) // PATCH
            if isinstance(one, Fault):
                assert room < 2 * min(patches, SHORTEST)
            else:
                assert 4 * patches == len(one.frames_FD)
                assert room >= 2 * min(patches, SHORTEST // 2 + 1)
    failed = [(count, size) for count, size in cramped.calls if count * size > room and size > SHORTEST]
    # A shape of two clips has three origins, each tried once: a pair, one clip repeated, a pair of windows of a longer one.
    assert all(failed.count((count, size)) <= (3 if count == 2 else 1) for count, size in failed)
