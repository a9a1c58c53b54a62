"""The ten longest files and function bodies below the folders named, and the medians (`make sizes`)."""

import ast
import sys
from pathlib import Path
from statistics import median


def bodies(path: Path) -> list[tuple[int, str]]:
    """(lines of the body without its docstring, place) of every function in ``path``."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            found.append((lines, f"{path}:{node.lineno} {node.name}"))
    return found


def show(title: str, sizes: list[tuple[int, str]]) -> None:
    print(f"{title}: {len(sizes)}, median {median(lines for lines, _ in sizes):.0f} lines, longest")
    for lines, place in sorted(sizes, reverse=True)[:10]:
        print(f"  {lines:>5}  {place}")


files = [path for folder in sys.argv[1:] for path in sorted(Path(folder).rglob("*.py"))]
show("files", [(path.read_text(encoding="utf-8").count("\n"), str(path)) for path in files])
show("function bodies", [size for path in files for size in bodies(path)])
