"""latentprep: annotated singing corpora in, training-ready Arrow shards of audio-VAE latents out.

The sub-packages ``latentprep.cli``, ``.preprocess``, ``.writers``, ``.core`` and ``.loaders`` are the top-level
folders of the repository, mapped here by setuptools' ``package-dir`` (docs/architecture.md says why).
Importing this package imports nothing heavy; the functions named here are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latentprep.preprocess.config_file import load_config  # pyright: ignore[reportMissingImports]
    from latentprep.preprocess.run import run  # pyright: ignore[reportMissingImports]  # it cannot follow the mapping
    from latentprep.preprocess.score.prompt import svs_prompt  # pyright: ignore[reportMissingImports]

__version__ = "0.1.0"
__all__ = ["__version__", "load_config", "run", "svs_prompt"]

_LAZY = {
    "load_config": "latentprep.preprocess.config_file",
    "run": "latentprep.preprocess.run",
    "svs_prompt": "latentprep.preprocess.score.prompt",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'latentprep' has no attribute {name!r}")
