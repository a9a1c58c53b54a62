"""A wrong or damaged checkpoint is refused by the parent, from headers alone, with the key and both shapes."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from latentprep.core.errors import CheckpointError
from latentprep.preprocess.encode.audiovae.checkpoint import hash_checkpoint, open_checkpoint

from ..builders import GOLDEN_V1, GOLDEN_V2, random_state, write_checkpoint, write_config


@pytest.mark.parametrize("folder", [GOLDEN_V1, GOLDEN_V2])
def test_the_golden_checkpoints_have_exactly_the_expected_keys_and_shapes(folder: Path):
    """The table of shapes is derived; the files are what it must agree with."""
    checkpoint = open_checkpoint(folder)

    assert folder / "audiovae.safetensors" == checkpoint.weights
    assert not checkpoint.is_pickle


def test_a_missing_folder_is_named(tmp_path: Path):
    """The commonest mistake."""
    with pytest.raises(CheckpointError, match="nowhere: no such folder"):
        open_checkpoint(tmp_path / "nowhere")


def test_a_folder_without_weights_is_named_with_both_file_names(tmp_path: Path):
    """Folders of the language model alone look right otherwise."""
    write_config(tmp_path)

    with pytest.raises(CheckpointError, match=r"neither audiovae\.safetensors nor audiovae\.pth is there"):
        open_checkpoint(tmp_path)


def test_a_tensor_of_a_wrong_shape_is_named_with_both_shapes(tmp_path: Path):
    """A configuration of one size beside weights of another."""
    write_checkpoint(tmp_path)
    write_config(tmp_path, vae={"encoder_rates": [2, 4], "decoder_rates": [4, 2]})

    with pytest.raises(CheckpointError) as error:
        open_checkpoint(tmp_path)

    assert (
        f"{tmp_path / 'audiovae.safetensors'}: encoder.block.2.block.4.weight_v has shape [16, 8, 6], "
        "config.json asks for [16, 8, 8]" == error.value.what
    )
    assert "one VoxCPM release" in error.value.fix


def test_missing_and_unexpected_keys_are_named_and_counted(tmp_path: Path):
    """Three names are enough to recognise what is wrong."""
    state = random_state(write_config(tmp_path))
    encoder_only = {key: value for key, value in state.items() if key.startswith("encoder.")}
    save_file(encoder_only, tmp_path / "audiovae.safetensors")
    with pytest.raises(CheckpointError, match=r"missing decoder\.model\.0\.bias, .*weight_g, .*weight_v and 63 more"):
        open_checkpoint(tmp_path)

    save_file({**state, "quantizer.codebook": np.zeros(3, np.float32)}, tmp_path / "audiovae.safetensors")
    with pytest.raises(CheckpointError, match=r"unexpected quantizer\.codebook"):
        open_checkpoint(tmp_path)


def test_weights_of_the_other_version_are_refused(tmp_path: Path):
    """V1 weights under a V2 configuration lack its conditioning; the rest would load."""
    write_checkpoint(tmp_path)
    write_config(tmp_path, architecture="voxcpm2", vae={"out_sample_rate": 600})

    with pytest.raises(CheckpointError, match=r"missing decoder\.sr_bin_boundaries"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("size", [0, 4, 100, -1])
def test_a_download_that_stopped_half_way_is_refused(tmp_path: Path, size: int):
    """Cut at nothing, in the length, in the header, and one byte before the end."""
    weights = write_checkpoint(tmp_path) / "audiovae.safetensors"
    weights.write_bytes(weights.read_bytes()[:size])

    with pytest.raises(CheckpointError) as error:
        open_checkpoint(tmp_path)

    assert str(weights) in error.value.what
    assert "download the file again" in error.value.fix


def test_a_pointer_file_in_place_of_the_weights_is_refused(tmp_path: Path):
    """What a clone without Git LFS leaves behind."""
    weights = write_checkpoint(tmp_path) / "audiovae.safetensors"
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")

    with pytest.raises(CheckpointError, match="its header is not that of a safetensors file"):
        open_checkpoint(tmp_path)


def test_the_hash_follows_the_weights_and_what_gives_them_meaning(tmp_path: Path):
    """One bit of a weight or one number of the VAE changes latents; the language model's settings do not."""
    first = hash_checkpoint(open_checkpoint(write_checkpoint(tmp_path / "a")))
    same = hash_checkpoint(open_checkpoint(write_checkpoint(tmp_path / "b", vocab_size=7, dtype="bfloat16")))
    patch = hash_checkpoint(open_checkpoint(write_checkpoint(tmp_path / "c", patch_size=4)))
    state = load_file(tmp_path / "a" / "audiovae.safetensors")
    state["encoder.block.0.bias"][0] += 1
    save_file(state, tmp_path / "a" / "audiovae.safetensors")
    touched = hash_checkpoint(open_checkpoint(tmp_path / "a"))

    assert first == same
    assert 3 == len({first, patch, touched})
    assert 32 == len(first)


def test_metadata_in_the_header_is_no_tensor(tmp_path: Path):
    """Files written by PyTorch carry {"format": "pt"}."""
    state = random_state(write_config(tmp_path))
    save_file(state, tmp_path / "audiovae.safetensors", metadata={"format": "pt"})

    assert 6 == open_checkpoint(tmp_path).config.hop_length
    header = (tmp_path / "audiovae.safetensors").read_bytes()
    assert "__metadata__" in json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])


@pytest.mark.parametrize(("dtype", "name"), [(np.int32, "I32"), (np.int8, "I8"), (np.uint8, "U8")])
def test_whole_numbers_are_no_weights(tmp_path: Path, dtype: type, name: str):
    """Shapes fit, and latents would be noise; the header tells before a worker starts."""
    state = random_state(write_config(tmp_path))
    state["encoder.fc_mu.bias"] = state["encoder.fc_mu.bias"].astype(dtype)
    save_file(state, tmp_path / "audiovae.safetensors")

    with pytest.raises(CheckpointError, match=rf"encoder\.fc_mu\.bias is of type {name}, supported are floats"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats_are_weights(tmp_path: Path, dtype: type):
    """Bundled weights are float16."""
    state = {key: value.astype(dtype) for key, value in random_state(write_config(tmp_path)).items()}
    save_file(state, tmp_path / "audiovae.safetensors")

    assert tmp_path == open_checkpoint(tmp_path).folder
