"""Writes the pages that must say what the code says: docs/cli.md out of `--help`, docs/faults.md out of core/errors.py,
docs/modules.md out of the modules' docstrings.

`make docs` runs it; tests/test_docs.py fails when a page is not what this makes of the code.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from latentprep.cli.main import COMMANDS, prep

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100
LAYERS = ("cli", "preprocess", "writers", "loaders", "core")

EXIT_CODES = (
    (0, "every planned clip is written or listed as skipped"),
    (1, "failed; the message says what to do"),
    (2, "the command line or the configuration is wrong"),
    (3, "`prep verify` found damage in a dataset (verify.md)"),
    (4, "finished, but more clips were skipped than `--max-skip-rate` allows"),
    (75, "stopped before the end (signal, time limit, disk full); the same command goes on"),
)


def cli_page() -> str:
    """docs/cli.md: the help of every command, and the exit codes."""
    parts = [
        "# Command line",
        "Written by `make docs` out of the commands' own `--help`.",
        _help(["prep"], prep),
    ]
    for name in COMMANDS:
        command = prep.get_command(click.Context(prep), name)
        assert command is not None
        parts += [f"## prep {name}", _help(["prep", name], command)]
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES)
    parts += ["## Exit codes", f"| code | meaning |\n|---|---|\n{codes}"]
    return "\n\n".join(parts) + "\n"


def _help(names: list[str], command: click.Command) -> str:
    context = click.Context(command, info_name=names[-1], terminal_width=WIDTH, max_content_width=WIDTH)
    if len(names) > 1:
        context.parent = click.Context(prep, info_name=names[0])
    text = command.get_help(context).rstrip()
    return f"```\n{text}\n```"


def faults_page(source: str) -> str:
    """docs/faults.md, out of ``source``, the text of core/errors.py."""
    faults = _table("code", _members(source, "FaultCode"))
    warnings = _table("code", _members(source, "WarningCode"))
    return f"""\
# Faults and warnings

Written by `make docs` out of `core/errors.py`.

A clip with a fault gets no row and one line in `skipped.jsonl`, with its corpus, item, path, stage, code and message.
A fault never ends a run.

## Faults

{faults}

## Warnings

A clip with a warning has a row.
The run's summary counts warnings by code, and each row's facts in the shard name them.

{warnings}
"""


def _table(head: str, members: Iterator[tuple[str, str]]) -> str:
    rows = [f"| `{code}` | {meaning} |" for code, meaning in members]
    return "\n".join([f"| {head} | meaning |", "|---|---|", *rows])


def _members(source: str, class_name: str) -> Iterator[tuple[str, str]]:
    """(value, the string below it) of an enumeration's members."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            for member, text in zip(node.body, node.body[1:], strict=False):
                if isinstance(member, ast.Assign) and isinstance(text, ast.Expr):
                    yield ast.literal_eval(member.value), " ".join(ast.literal_eval(text.value).split())


def modules_page(root: Path) -> str:
    """docs/modules.md: the first sentence of every module below ``root``'s source folders."""
    parts = ["# Where a line belongs", "Written by `make docs` out of the first sentence of each module."]
    for folder in sorted(folder for layer in LAYERS for folder in [root / layer, *_packages(root / layer)]):
        init = _first_sentence(folder / "__init__.py")
        rows = [
            f"| `{path.name}` | {_first_sentence(path)} |"
            for path in sorted(folder.glob("*.py"))
            if path.name != "__init__.py"
        ]
        parts.append(f"## {folder.relative_to(root)}/" + (f"\n\n{init}" if init else ""))
        if rows:
            parts.append("\n".join(["| file | what it is |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _packages(folder: Path) -> Iterator[Path]:
    return (path.parent for path in folder.rglob("__init__.py") if path.parent != folder)


def _first_sentence(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z`])", paragraph)[0]
    return re.sub(":$", ".", sentence).replace("``", "`").replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Path and content of every generated page."""
    return {
        ROOT / "docs" / "cli.md": cli_page(),
        ROOT / "docs" / "faults.md": faults_page((ROOT / "core" / "errors.py").read_text(encoding="utf-8")),
        ROOT / "docs" / "modules.md": modules_page(ROOT),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
