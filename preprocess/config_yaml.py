"""A YAML file as a tree of plain values that remembers on which line each key stands.

PyYAML forgets lines once values are made and lets the second of two equal keys win; a run of days with the wrong one
of two ``output_dir`` lines is worth the few lines here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..core.errors import ConfigError

KeyPath = tuple[str | int, ...]
"""Way from the top of a tree to a value: keys and list positions."""


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        # Before the base class folds `<<` into the node: a merged key may be overridden, a written one may not.
        first: dict[str, yaml.Node] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                continue
            if first.setdefault(key_node.value, key_node) is not key_node:
                line = first[key_node.value].start_mark.line + 1
                problem = f"the key {key_node.value!r} stands twice, first on line {line}"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        return super().construct_mapping(node, deep)


@dataclass(frozen=True, slots=True)
class YamlText:
    """A parsed YAML text."""

    value: Any
    """dict, list, str, int, float, bool, date or None; None for a text without content."""
    root: yaml.Node | None

    def line_of(self, path: KeyPath) -> int | None:
        """Line (from 1) of the key or list entry at ``path``; of the nearest one above it if it isn't written there."""
        node, line = self.root, None
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            key_node, node = found
            line = key_node.start_mark.line + 1
        return line


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The node that marks ``step`` below ``node`` (a key, or the list entry itself) and the value node."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        # From the end: keys folded in by `<<` stand in front of those that override them.
        for key_node, value_node in reversed(node.value):
            if key_node.value == str(step):
                return key_node, value_node
    return None


def parse_yaml(text: str, where: str) -> YamlText:
    """Parse one YAML document.

    Raises ConfigError with ``where``, line and column for a text that is not YAML, holds two documents or a key twice.
    """
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        return YamlText(None if root is None else loader.construct_document(root), root)
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{where}{_position(error, text)}: not valid YAML: {_problem(error)}",
            why=_excerpt(error, text),
            fix=_fix(error),
        ) from error
    except (ValueError, RecursionError) as error:  # 2024-13-45 looks like a date; brackets 1,000 deep
        raise ConfigError(
            f"{where}: not valid YAML: {error}", fix="put values that only look like dates in quotes"
        ) from error
    finally:
        if loader is not None:
            loader.dispose()


def read_yaml(path: Path) -> YamlText:
    """Parse the YAML file ``path``. Raises ConfigError if it can't be read, isn't UTF-8 or isn't YAML."""
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: not a file", why="a folder, a device or a FIFO holds no configuration")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        fix = "`prep demo demo` makes one to try; name yours with --config FILE"
        raise ConfigError(f"{path}: no such configuration file", fix=fix) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})", fix="save it as UTF-8") from error
    return parse_yaml(text, str(path))


def _mark(error: yaml.YAMLError, text: str) -> tuple[int, int] | None:
    """Line and column of an error, both from 0."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return (mark.line, mark.column) if mark else None
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        return before.count("\n"), error.position - (before.rfind("\n") + 1)
    return None


def _position(error: yaml.YAMLError, text: str) -> str:
    mark = _mark(error, text)
    return f", line {mark[0] + 1}, column {mark[1] + 1}" if mark else ""


def _problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        return ", ".join(part for part in (error.context, error.problem) if part)
    return str(getattr(error, "reason", error))


def _excerpt(error: yaml.YAMLError, text: str) -> str:
    mark, lines = _mark(error, text), text.splitlines()
    return f"the line is {lines[mark[0]].strip()[:120]!r}" if mark and mark[0] < len(lines) else ""


def _fix(error: yaml.YAMLError) -> str:
    problem = _problem(error)
    if "\\t" in problem:
        return "indent with spaces, not tabs"
    if "stands twice" in problem:
        return "delete one of the two lines"
    if "mapping values are not allowed" in problem:
        return "put a value that holds ': ' in quotes, and align the keys of one level"
    return ""
