"""Checkpoint folders and waveforms for the encoder tests."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from latentprep.preprocess.encode.audiovae.config import read_config
from latentprep.preprocess.encode.audiovae.shapes import expected_shapes

GOLDEN = Path(__file__).parents[2] / "golden"
GOLDEN_V1 = GOLDEN / "vae" / "checkpoint_v1"
GOLDEN_V2 = GOLDEN / "checkpoint"

SMALL_VAE: dict[str, Any] = {
    "encoder_dim": 4,
    "encoder_rates": [2, 3],
    "latent_dim": 8,
    "decoder_dim": 16,
    "decoder_rates": [3, 2],
    "sample_rate": 600,
}


def write_config(folder: Path, *, architecture: str = "voxcpm", vae: dict[str, Any] | None = None, **top: Any) -> Path:
    """Write config.json of a V1 network of some thousand weights; ``vae`` and ``top`` change single keys."""
    folder.mkdir(parents=True, exist_ok=True)
    section = {**SMALL_VAE, **(vae or {})}
    content = {"architecture": architecture, "patch_size": 2, "feat_dim": section["latent_dim"], **top}
    (folder / "config.json").write_text(json.dumps({**content, "audio_vae_config": section}))
    return folder


def random_state(folder: Path, *, seed: int = 0) -> dict[str, np.ndarray]:
    """A seeded state with the shapes that ``folder``'s configuration asks for."""
    rng = np.random.default_rng(seed)
    shapes = expected_shapes(read_config(folder))
    return {key: rng.uniform(0.2, 0.6, shape).astype(np.float32) for key, shape in shapes.items()}


def write_checkpoint(folder: Path, **config: Any) -> Path:
    """Write config.json and a random audiovae.safetensors."""
    write_config(folder, **config)
    save_file(random_state(folder), folder / "audiovae.safetensors")
    return folder


def noise(num_samples: int, *, seed: int = 0) -> np.ndarray:
    """White noise at a third of full scale: float32 [S]."""
    return (0.3 * np.random.default_rng(seed).standard_normal(num_samples)).astype(np.float32)
