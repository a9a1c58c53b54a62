"""What the parent asks of an encoder needs no torch, and comes with every error that can be known then."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from latentprep.core.errors import CheckpointError
from latentprep.preprocess.config import EncoderSettings
from latentprep.preprocess.encode.protocol import DeviceKind
from latentprep.preprocess.encode.registry import ENCODERS, build, describe, tokenizer_folder

from .builders import GOLDEN_V2, noise, write_checkpoint

GOLDEN = EncoderSettings(name="voxcpm", path=GOLDEN_V2)


def test_describing_every_encoder_imports_no_torch():
    """The parent process must not touch CUDA, and `import torch` costs more than a plan."""
    code = f"""
import sys
from pathlib import Path
from latentprep.preprocess.config import EncoderSettings
from latentprep.preprocess.encode.registry import ENCODERS, describe, tokenizer_folder
for name in ENCODERS:
    settings = EncoderSettings(name=name, path=Path({str(GOLDEN_V2)!r}))
    info = describe(settings, "cuda")
    print(name, info.spec.sample_rate, tokenizer_folder(settings).name)
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    expected = ["voxcpm 16000 checkpoint", "tiny 16000 checkpoint", "dummy 16000 checkpoint", "False"]
    assert expected == done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "device_kind", "rate"),
    [
        ("voxcpm", "cpu", 3),
        ("voxcpm", "cuda", 1500),
        ("tiny", "cpu", 60),
        ("tiny", "cuda", 1500),
        ("dummy", "cpu", None),
        ("dummy", "cuda", None),
    ],
)
def test_stated_rates_are_constants(name: str, device_kind: DeviceKind, rate: float | None):
    """They size chunks, so a plan would change with them."""
    settings = EncoderSettings.model_validate({"name": name, "path": GOLDEN_V2})

    assert rate == describe(settings, device_kind).stated_rate


def test_the_info_says_where_the_weights_are_and_what_they_hash_to():
    """The hash belongs to a plan's identity: it must be the file's, not the path's."""
    info = describe(GOLDEN, "cpu")

    assert ("voxcpm", str(GOLDEN_V2), 32) == (info.name, info.checkpoint, len(info.weights_hash))
    assert (16_000, 640, 4, 64) == (
        info.spec.sample_rate,
        info.spec.hop_length,
        info.spec.patch_size,
        info.spec.latent_dim,
    )
    assert (512_000, 256_000) == (info.max_batch_samples, info.max_whole_samples)


def test_tokenizers_come_from_the_path_or_the_package():
    """A dry run with the dummy must give the text columns of the real encoder."""
    assert GOLDEN_V2 == tokenizer_folder(GOLDEN)
    assert GOLDEN_V2 == tokenizer_folder(EncoderSettings(name="dummy", path=GOLDEN_V2))
    assert (tokenizer_folder(EncoderSettings(name="tiny")) / "tokenizer.json").is_file()


@pytest.mark.parametrize("name", list(ENCODERS))
def test_what_is_built_encodes_as_described(name: str):
    """Geometry and limits of plan and worker are one object."""
    settings = EncoderSettings.model_validate({"name": name, "path": GOLDEN_V2})
    info = describe(settings, "cpu")
    encoder = build(settings, info, "cpu")

    latents = encoder.encode([noise(3000), noise(2560)])

    assert info == encoder.info
    assert [(8, 64), (4, 64)] == [made.frames_FD.shape for made in latents]
    assert all(np.isfinite(made.peak) for made in latents)


def test_weights_that_changed_after_the_plan_are_refused(tmp_path: Path):
    """Workers start after the parent has hashed, on other nodes much later."""
    settings = EncoderSettings(name="voxcpm", path=write_checkpoint(tmp_path))
    info = replace(describe(settings, "cpu"), weights_hash="0" * 32)

    with pytest.raises(CheckpointError, match="the plan was made with 00000000000000000000000000000000"):
        build(settings, info, "cpu")
