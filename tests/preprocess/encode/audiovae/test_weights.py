"""The network itself: golden latents and audio of both versions, weight norm, .pth files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from latentprep.core.errors import CheckpointError
from latentprep.preprocess.encode.audiovae.checkpoint import open_checkpoint
from latentprep.preprocess.encode.audiovae.encoder import Encoder
from latentprep.preprocess.encode.audiovae.layers import Snake
from latentprep.preprocess.encode.audiovae.weights import fold_weight_norm, load_decoder, load_encoder

from ..builders import GOLDEN, GOLDEN_V1, GOLDEN_V2, noise, random_state, write_checkpoint, write_config

VERSIONS = [("v1", GOLDEN_V1), ("v2", GOLDEN_V2)]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("version", "folder"), VERSIONS)
def test_latents_equal_the_reference(version: str, folder: Path):
    """The reference was made with the original network; V1 has odd strides, whose padding only latents can tell."""
    golden = np.load(GOLDEN / "vae" / f"{version}.npz")
    encoder = load_encoder(open_checkpoint(folder))

    with torch.inference_mode():
        latents = encoder(torch.from_numpy(golden["waveform"])[None, None])[0].numpy()

    assert golden["latents"].shape == latents.shape
    assert 1e-4 > np.abs(golden["latents"] - latents).max()


@pytest.mark.parametrize(("version", "folder"), VERSIONS)
def test_decoded_audio_equals_the_reference(version: str, folder: Path):
    """V2 comes out at 48 kHz and needs the right row of each conditioning table."""
    golden = np.load(GOLDEN / "vae" / f"{version}.npz")
    decoder = load_decoder(open_checkpoint(folder))

    with torch.inference_mode():
        decoded = decoder(torch.from_numpy(golden["latents"])[None])[0, 0].numpy()

    assert golden["decoded"].shape == decoded.shape
    assert 1e-3 > np.abs(golden["decoded"] - decoded).max()


def test_the_form_with_gradients_computes_the_same_as_the_form_without(tmp_path: Path):
    """Inference works in place; training, which makes the bundled VAE, must train that very network."""
    encoder = load_encoder(open_checkpoint(GOLDEN_V2))
    wav = torch.from_numpy(noise(2560))[None, None]

    with torch.inference_mode():
        in_place = encoder(wav)
    with torch.enable_grad():
        differentiable = encoder(wav.clone())

    torch.testing.assert_close(differentiable, in_place, rtol=0, atol=1e-4)


def test_snake_leaves_its_input_alone_and_begins_with_zeros():
    """The input is still needed: it is what the residual unit adds."""
    snake, x = Snake(2), torch.randn(1, 2, 5, generator=torch.Generator().manual_seed(0))
    kept = x.clone()
    with torch.inference_mode():
        out = snake(x, padding=3)

    assert torch.equal(kept, x)
    assert torch.equal(torch.zeros(1, 2, 3), out[..., :3])
    torch.testing.assert_close(x + x.sin() ** 2, out[..., 3:])


def test_the_second_head_is_not_computed():
    """A stored latent is the mean; its variance would be a ninth of a per cent of work, and a tensor, for nothing."""
    assert load_encoder(open_checkpoint(GOLDEN_V2)).fc_logvar is None
    assert Encoder(open_checkpoint(GOLDEN_V2).config, with_logvar=True).fc_logvar is not None


def test_folding_gives_each_row_the_length_of_its_g():
    """Also for transposed convolutions, whose first dimension is the input channels."""
    v = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    folded = fold_weight_norm({"x.weight_v": v, "x.weight_g": torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1)})

    assert ["x.weight"] == list(folded)
    torch.testing.assert_close(torch.tensor([1.0, 2.0, 3.0]), folded["x.weight"].flatten(1).norm(dim=1))
    assert torch.float32 == folded["x.weight"].dtype


@pytest.mark.parametrize("key", [None, "state_dict"])
def test_a_pth_file_gives_the_same_latents(tmp_path: Path, key: str | None):
    """Older releases ship one, with the state at its top or under "state_dict"."""
    state = random_state(write_checkpoint(tmp_path / "a"))
    folder = write_config(tmp_path / "b")
    tensors = {name: torch.from_numpy(value) for name, value in state.items()}
    torch.save({key: tensors} if key else tensors, folder / "audiovae.pth")
    wav = torch.from_numpy(noise(120))[None, None]

    with torch.inference_mode():
        expected = load_encoder(open_checkpoint(tmp_path / "a"))(wav)
        found = load_encoder(open_checkpoint(folder))(wav)

    assert torch.equal(expected, found)


def test_a_pth_file_of_another_network_is_refused_with_both_shapes(tmp_path: Path):
    """Its header can't be read without torch, so this shows at load."""
    state = random_state(write_config(tmp_path))
    write_config(tmp_path, vae={"encoder_dim": 2})
    torch.save({name: torch.from_numpy(value) for name, value in state.items()}, tmp_path / "audiovae.pth")

    with pytest.raises(CheckpointError) as error:
        load_encoder(open_checkpoint(tmp_path))

    assert "encoder.block.0.bias has shape [4], config.json asks for [2]" in error.value.what


class _Evil:
    def __reduce__(self):
        return (print, ("code of a checkpoint ran",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "can't be read as a file of tensors"),
        (b"not a pickle", "is no file of tensors, or holds code beside them, which is never run"),
        (_Evil(), "is no file of tensors, or holds code beside them, which is never run"),
        ([1, 2], "holds no state dict"),
        ({"state_dict": {"epoch": 3}}, "holds no state dict"),
    ],
)
def test_a_pth_file_that_is_no_state_is_refused_and_runs_no_code(
    tmp_path: Path, content: object, message: str, capfd: pytest.CaptureFixture[str]
):
    """Unpickling with weights_only makes tensors and nothing else. Torch's own text advises to switch that off."""
    path = write_config(tmp_path) / "audiovae.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)

    with pytest.raises(CheckpointError, match=message) as error:
        load_encoder(open_checkpoint(tmp_path))

    assert "weights_only" not in str(error.value)
    assert "code of a checkpoint ran" not in capfd.readouterr().out


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("load", "key"), [(load_encoder, "encoder.fc_mu.bias"), (load_decoder, "decoder.model.0.bias")]
)
def test_weights_that_are_not_finite_are_refused_at_load(tmp_path: Path, load: Callable, key: str, value: float):
    """Every clip would be refused, one by one, after hours of waiting for a cluster."""
    state = random_state(write_config(tmp_path))
    state[key][-1] = value
    save_file(state, tmp_path / "audiovae.safetensors")

    with pytest.raises(CheckpointError) as error:
        load(open_checkpoint(tmp_path))

    assert f"{key.partition('.')[2]} holds NaN or infinite numbers" in error.value.what


def test_a_row_without_length_is_refused_like_a_nan(tmp_path: Path):
    """g v / |v| is not a number where v is 0."""
    state = random_state(write_config(tmp_path))
    state["encoder.fc_mu.weight_v"][0] = 0
    save_file(state, tmp_path / "audiovae.safetensors")

    with pytest.raises(CheckpointError, match=r"fc_mu\.weight holds NaN"):
        load_encoder(open_checkpoint(tmp_path))


def test_whole_numbers_in_a_pth_file_are_no_weights(tmp_path: Path):
    state = {key: torch.from_numpy(value) for key, value in random_state(write_config(tmp_path)).items()}
    state["encoder.fc_mu.bias"] = state["encoder.fc_mu.bias"].int()
    torch.save(state, tmp_path / "audiovae.pth")

    with pytest.raises(CheckpointError, match=r"encoder\.fc_mu\.bias is of type int32, supported are floats"):
        load_encoder(open_checkpoint(tmp_path))
