"""A configuration on its way from what was written to what is validated.

Every value keeps its origin (the key as the user spelt it, and the line or the ``--set`` it came from), so that an
error about ``limits.max_batch_clips`` can speak of ``vae_batch_size`` on line 61.
"""

from dataclasses import dataclass, field
from typing import Any

from .config_yaml import KeyPath, YamlText


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from."""

    key: str
    """The key as the user spelt it."""
    place: str
    """File and line, or the ``--set``."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a configuration."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(slots=True)
class Draft:
    """A tree of settings that may still be wrong, and what was noticed about it."""

    tree: dict[str, Any]
    file: str
    text: YamlText
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _origins: dict[KeyPath, Origin] = field(default_factory=dict)

    def origin(self, path: KeyPath) -> Origin:
        """Where the value at ``path`` comes from."""
        for length in range(len(path), 0, -1):
            known = self._origins.get(path[:length])
            if known:
                return known if length == len(path) else Origin(dotted(path), known.place)
        below = next((known for at, known in self._origins.items() if at[: len(path)] == path), None)
        if below and self.text.line_of(path) is None:
            return Origin(dotted(path), below.place)
        return Origin(dotted(path), self.file_place(path))

    def file_place(self, path: KeyPath) -> str:
        """File and line of ``path``."""
        line = self.text.line_of(path)
        return f"{self.file}, line {line}" if line else self.file

    def get(self, path: KeyPath) -> Any:
        """The value at ``path``, None if there is none."""
        value: Any = self.tree
        for step in path:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
                value = value[step]
            else:
                return None
        return value

    def set(self, path: KeyPath, value: Any, origin: Origin) -> None:
        """Put ``value`` at ``path``, whatever was there. A path that can't be followed becomes a problem."""
        parent: Any = self.tree
        for depth, step in enumerate(path):
            if not self._can_step(parent, step, path[:depth], origin):
                return
            key: Any = int(step) if isinstance(parent, list) else step
            path = (*path[:depth], key, *path[depth + 1 :])
            if depth == len(path) - 1:
                parent[key] = value
            elif isinstance(parent, dict) and parent.get(key) is None:
                parent[key] = {}
            parent = parent[key]
        self._remember(path, origin)

    def _can_step(self, parent: Any, step: str | int, above: KeyPath, origin: Origin) -> bool:
        if isinstance(parent, dict):
            return True
        if not isinstance(parent, list):
            text = f"{dotted(above)} is {parent!r}, which has no settings below it"
        elif not (str(step).isdecimal() and len(str(step)) < 10 and int(step) < len(parent)):
            text = f"{str(step)[:20]!r} is no entry of {dotted(above)}: it has {len(parent)}, counted from 0"
        else:
            return True
        self.problems.append(Problem(origin.place, text))
        return False

    def _remember(self, path: KeyPath, origin: Origin) -> None:
        below = [known for known in self._origins if known[: len(path)] == path]
        for known in below:
            del self._origins[known]
        self._origins[path] = origin


def dotted(path: KeyPath) -> str:
    """``("datasets", 0, "name")`` -> ``datasets.0.name``, the spelling that ``--set`` takes."""
    return ".".join(map(str, path))
