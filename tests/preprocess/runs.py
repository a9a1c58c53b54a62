"""Configurations and runs that several tests share."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.synth.corpus import write_bulk_corpus

GOLDEN = Path(__file__).parents[1] / "golden"


def golden_config(output_dir: Path, *, corpus: Path = GOLDEN / "corpus", **changes: Any) -> RunConfig:
    """The run whose rows tests/golden/expected.parquet holds; ``corpus`` may be a copy of the golden one."""
    settings: dict[str, Any] = {
        "datasets": [
            {
                "name": "choir",
                "type": "json_file",
                "json_path": corpus / "json_file/annotations.json",
                "audio_root": corpus / "json_file/audio",
                "song_id_indices": [0, 1],
            },
            {"name": "album", "type": "folder_based", "dataset_root": corpus / "folder_based"},
            {
                "name": "opera",
                "type": "weak_json_file",
                "json_path": corpus / "weak_json_file/annotations.json",
                "audio_root": corpus / "weak_json_file/audio",
            },
        ],
        "encoder": {"name": "voxcpm", "path": GOLDEN / "checkpoint"},
        "output_dir": output_dir,
        "sample_rate": 16000,
        "device": "cpu",
        "workers": 1,
    }
    return RunConfig.model_validate(settings | changes)


def bulk_config(
    folder: Path, num_clips: int, *, seconds: tuple[float, float] = (2.0, 12.0), **changes: Any
) -> RunConfig:
    """Many short clips as 16 kHz WAV, and the dummy encoder."""
    corpus = write_bulk_corpus(
        folder / "corpus", num_clips=num_clips, seconds=seconds, sample_rates=(16000,), format="WAV", seed=1
    )
    dataset = {
        "name": "bulk",
        "type": "json_file",
        "json_path": corpus.annotation_path,
        "audio_root": corpus.audio_root,
        "song_id_indices": [0, 1],
    }
    settings: dict[str, Any] = {
        "datasets": [dataset],
        "encoder": {"name": "dummy"},
        "output_dir": folder / "out",
        "device": "cpu",
        "workers": 2,
    }
    return RunConfig.model_validate(settings | changes)


def prep(*arguments: object, env: Mapping[str, str] = {}, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    command = [Path(sys.executable).with_name("prep"), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **env}, check=False
    )
