"""``tiny``: a small trained AudioVAE that lies in the package, so the tool can be tried without a download.

V1 architecture at 16 kHz, hop 640, 64 latent values, patches of 4: VoxCPM's geometry at a few thousandths of its work.
Its latents are good enough to follow a melody by ear, not to train on. tiny/README.md says how it was made.
"""

from pathlib import Path

TINY_FOLDER = Path(__file__).parent / "tiny"
"""config.json, audiovae.safetensors (float16) and a tokenizer."""
