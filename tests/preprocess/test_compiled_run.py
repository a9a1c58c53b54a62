"""A run whose encoder is compiled, from end to end: real worker, real compiler."""

import json
from pathlib import Path

import pytest

from latentprep import run
from latentprep.core.errors import OutputError
from latentprep.preprocess.config import RunConfig

from .runs import GOLDEN, golden_config
from .test_run import assert_golden


def config_of(folder: Path, compile: str) -> RunConfig:
    encoder = {"name": "voxcpm", "path": GOLDEN / "checkpoint", "compile": compile}
    return golden_config(folder, encoder=encoder)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_compiled_run_gives_the_golden_rows_and_stays_compiled(tmp_path: Path):
    """The decision lies in the plan: a resume under ``auto`` takes it, one that asks for the other form is refused."""
    summary = run(config_of(tmp_path / "out", "always"))
    latents = json.loads((tmp_path / "out/provenance.json").read_text())["latents"]

    assert "compiled" == latents["encoder.compiled"]
    assert_golden(tmp_path / "out")
    assert summary.digest == run(config_of(tmp_path / "out", "auto")).digest
    with pytest.raises(OutputError, match=r"encoder\.compiled: was 'compiled', is 'eager'"):
        run(config_of(tmp_path / "out", "never"))
