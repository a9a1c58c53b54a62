"""The dataset opens with the oldest ``datasets`` that we promise, not only with the one installed here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from latentprep import run
from latentprep.core.schema import COLUMNS

from .runs import golden_config

OLDEST = "datasets==3.6.0"
READ = """
import json, sys
import datasets
rows = datasets.load_from_disk(sys.argv[1])
first = rows.sort("item_name")[0]
print(json.dumps({
    "version": datasets.__version__,
    "num_rows": len(rows),
    "columns": rows.column_names,
    "feature": str(rows.features["audio_feats"]),
    "prompt": first["svs_prompt"],
    "shape": [len(first["audio_feats"]), len(first["audio_feats"][0]), len(first["audio_feats"][0][0])],
}))
"""


@pytest.fixture(scope="module")
def old_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the oldest version."""
    folder = tmp_path_factory.mktemp("old") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin/python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", OLDEST]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no package registry to install {OLDEST} from: {done.stderr[-200:]}")
    return python


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_oldest_version_opens_a_finished_dataset(old_python: Path, tmp_path: Path):
    """The upstream trainer pins 3.6, which knows no ``List`` feature."""
    run(golden_config(tmp_path / "out"))

    read = subprocess.run(
        [old_python, "-c", READ, tmp_path / "out"], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert 0 == read.returncode, read.stderr
    seen = json.loads(read.stdout.splitlines()[-1])
    assert ("3.6.0", 11) == (seen["version"], seen["num_rows"])
    assert list(COLUMNS) == seen["columns"]
    assert [28, 4, 64] == seen["shape"]
    assert seen["prompt"].startswith("<BPM_100> AP<P_0><NOTE_DOT_32>")
    assert "Sequence(feature=Sequence(feature=Sequence(feature=Value(dtype='float16'" in seen["feature"]
