"""The compiled encoder: the same latents within rounding, one graph for every size, and no silent fallback."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from latentprep.core.errors import WorkerError
from latentprep.preprocess.encode.checkpoint_info import describe_audio_vae
from latentprep.preprocess.encode.compiled import first_call
from latentprep.preprocess.encode.voxcpm import AudioVaeEncoder, build_audio_vae

from .builders import GOLDEN, GOLDEN_V1, GOLDEN_V2, noise

TOLERANCE = 1e-5


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def encoder_of(version: int, *, compiled: bool) -> AudioVaeEncoder:
    folder = GOLDEN_V2 if version == 2 else GOLDEN_V1
    return build_audio_vae(describe_audio_vae("voxcpm", folder, "cpu", 3.0), folder, "cpu", "tf32", compiled=compiled)


@pytest.fixture(scope="module")
def compiled() -> AudioVaeEncoder:
    """V2, compiled once for this file."""
    return encoder_of(2, compiled=True)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_golden_latents_hold_for_the_compiled_encoder(compiled: AudioVaeEncoder):
    """Whether a run is long enough to be compiled must not matter to who trains on its rows."""
    golden = np.load(GOLDEN / "vae" / "v2.npz")
    wav = golden["waveform"]
    made, eager = compiled.encode_float32([wav])[0], encoder_of(2, compiled=False).encode_float32([wav])[0]

    assert pytest.approx(golden["latents"].T, abs=1e-4, rel=1e-4) == made[:25]
    assert TOLERANCE > np.abs(made - eager).max() / np.abs(eager).max()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_one_graph_serves_all_batches_and_lengths(compiled: AudioVaeEncoder):
    """A second graph in the middle of a run would cost a minute, and may round otherwise."""
    torch._dynamo.utils.counters.clear()
    for count, num_samples in ((2, 2_560), (15, 7_000), (1, 30_000), (7, 12_345), (16, 2_560)):
        compiled.encode([noise(num_samples, seed=i) for i in range(count)])

    assert 0 == torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_mates_do_not_change_the_bits_of_the_compiled_encoder(compiled: AudioVaeEncoder):
    """A batch may lose a faulty clip: its mates' rows stay as they are."""
    clips = [noise(7_681 + 100 * i, seed=i) for i in range(20)]
    expected = [latents.frames_FD.tobytes() for latents in compiled.encode(clips)]

    assert expected[:2] == [latents.frames_FD.tobytes() for latents in compiled.encode(clips[:2])]
    assert expected == [compiled.encode([clip])[0].frames_FD.tobytes() for clip in clips]
    assert expected[::-1] == [latents.frames_FD.tobytes() for latents in compiled.encode(clips[::-1])]


def test_a_compiler_that_fails_is_an_error_that_says_what_to_do(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """A worker must not go on in eager mode on its own: its rows would differ from the others'."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def broken() -> None:
        raise RuntimeError("no C++ compiler\nmore lines")

    with pytest.raises(WorkerError, match="can't be compiled on this machine: no C\\+\\+ compiler") as caught:
        first_call(broken)

    assert "encoder.compile=never" in caught.value.fix


def test_running_out_of_memory_is_no_fault_of_the_compiler(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """It has its own remedy."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def full() -> None:
        raise MemoryError("full")

    with pytest.raises(MemoryError):
        first_call(full)


def test_the_error_of_a_precision_is_measured_against_strict_float32():
    """A run prints it beside float16's own rounding; bfloat16 can be tried on a CPU, float32 has none."""
    info = describe_audio_vae("voxcpm", GOLDEN_V2, "cpu", 3.0)
    strict = build_audio_vae(info, GOLDEN_V2, "cpu", "float32")
    coarse = AudioVaeEncoder(info, strict._checkpoint, "cpu", "bf16")

    assert 0.0 == strict.measure_precision_error()
    assert 1e-3 < coarse.measure_precision_error() < 0.1
