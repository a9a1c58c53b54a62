"""The rules of docs/architecture.md about who may import whom, read off the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "cli": {"cli", "preprocess", "writers", "loaders", "core"},
    "preprocess": {"preprocess", "writers", "core"},
    "writers": {"writers", "core"},
    "loaders": {"loaders", "core"},
    "core": {"core"},
}
CORE_MODULES = {"errors", "units", "schema", "digest", "index", "paths"}
CORE_PACKAGES = {"numpy", "pyarrow", "xxhash"}
TERMINAL_PACKAGES = {"click", "tqdm"}

SOURCES = sorted(path for layer in MAY_IMPORT for path in (ROOT / layer).rglob("*.py"))


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Absolute dotted names that the module imports; ``package`` is the one that it lies in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = [*above, *(node.module.split(".") if node.module else [])]
            yield from (".".join([*base, alias.name]) for alias in node.names)


def violations(source: str, path: Path) -> list[str]:
    """What is against the rules in ``source``, the text of the module at ``path`` (relative to the root)."""
    layer, tree = path.parts[0], ast.parse(source)
    found = []
    for name in imported(tree, ".".join(["latentprep", *path.parts[:-1]])):
        top, *rest = name.split(".")
        if top in MAY_IMPORT or (top == "latentprep" and rest[0] in MAY_IMPORT.keys() - MAY_IMPORT[layer]):
            found.append(f"{path} imports {name}")
        if top in TERMINAL_PACKAGES and layer != "cli":
            found.append(f"{path} imports {name}: only cli may")
        if layer == "core" and top not in sys.stdlib_module_names | CORE_PACKAGES | {"latentprep"}:
            found.append(f"{path} imports {name}: core is std, numpy, pyarrow, xxhash")
    if layer != "cli":
        found += [f"{path}:{line} prints" for line in prints(tree)]
    return found


def prints(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield node.lineno


def test_imports_point_down_only():
    """An arrow that points up makes two layers one; nobody can then use the loaders without the preprocessing."""
    assert len(SOURCES) > 20
    assert [] == [
        problem for path in SOURCES for problem in violations(path.read_text(encoding="utf-8"), path.relative_to(ROOT))
    ]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("writers/shard.py", "from ..preprocess.config import RunConfig"),
        ("writers/shard.py", "from .. import cli"),
        ("loaders/reader.py", "from ..writers import journal"),
        ("loaders/reader.py", "import latentprep.preprocess.run"),
        ("preprocess/plan/cut.py", "from ...loaders.batch import Batch"),
        ("preprocess/plan/cut.py", "def f():\n    from latentprep.cli.main import main"),
        ("preprocess/run.py", "import writers.shard"),
        ("preprocess/run.py", "from tqdm import tqdm"),
        ("preprocess/run.py", "print(1)"),
        ("core/units.py", "import torch"),
        ("core/units.py", "from ..writers import shard"),
    ],
)
def test_a_planted_violation_is_found(path: str, source: str):
    """A checker that finds nothing anywhere keeps nothing."""
    assert 1 == len(violations(source, Path(path)))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("writers/shard.py", "from ..core.schema import COLUMNS\nfrom .block import Block\nimport pyarrow as pa"),
        ("preprocess/plan/cut.py", "from ...writers.shard import Shard\nfrom ..config import RunConfig"),
        ("cli/svs.py", "import click\nfrom .. import __version__\nprint(1)"),
        ("core/units.py", "import json\nimport xxhash\nfrom .errors import PrepError"),
    ],
)
def test_what_the_map_allows_is_no_violation(path: str, source: str):
    assert [] == violations(source, Path(path))


def test_core_is_a_closed_list():
    """What everybody may import grows into what everything depends on."""
    modules = {path.stem for path in (ROOT / "core").glob("*.py")} - {"__init__"}

    assert set() == modules - CORE_MODULES


def test_the_parent_of_a_run_imports_no_torch():
    """A parent that touched CUDA holds memory on a card and cannot set which card its workers see."""
    code = """if True:
        import sys
        import latentprep.preprocess.run
        heavy = {"torch", "torchaudio", "transformers", "datasets"} & sys.modules.keys()
        assert not heavy, heavy
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
