"""The built wheel holds what the tree holds: a sub-package that nobody named in pyproject.toml is missing only there."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import latentprep

ROOT = Path(__file__).parents[1]
LAYERS = ("cli", "core", "loaders", "preprocess", "writers")
DATA_SUFFIXES = {".json", ".safetensors", ".typed"}


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names in a wheel built of a copy of the tree, so that neither build/ nor egg-info is left in the tree."""
    copy, dist = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in (*LAYERS, "latentprep"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        return set(wheel.namelist())


def tree_names() -> set[str]:
    """What the wheel should hold of the source folders."""
    files = [path for layer in LAYERS for path in (ROOT / layer).rglob("*")]
    wanted = {f"latentprep/{path.relative_to(ROOT)}" for path in files if path.suffix in DATA_SUFFIXES | {".py"}}
    top = {f"latentprep/{path.name}" for path in (ROOT / "latentprep").iterdir() if path.suffix in {".py", ".typed"}}
    return wanted | top


def test_the_wheel_is_the_tree(wheel_names: set[str]):
    assert tree_names() == {name for name in wheel_names if ".dist-info/" not in name}


def test_the_wheel_is_typed_licensed_and_has_its_command(wheel_names: set[str]):
    endings = {name.partition(".dist-info/")[2] for name in wheel_names}

    assert "latentprep/py.typed" in wheel_names
    assert {"licenses/LICENSE", "entry_points.txt", "METADATA"} <= endings


def test_the_version_stands_in_one_place_for_people_and_one_for_pip():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["version"] == latentprep.__version__ == metadata.version("latentprep")


def test_every_public_name_can_be_had():
    """The top package loads its names on first use; a typo there would show in a user's program only."""
    assert all(hasattr(latentprep, name) for name in latentprep.__all__)
