"""``state.json`` as a verification reads it: the names it lists, whatever else is wrong with it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.paths import OutputPaths
from .verify_report import DamageCode, Problem


@dataclass(frozen=True, slots=True)
class StateFile:
    """The file's content."""

    names: tuple[str, ...]
    """Of the shards, in the dataset's order."""
    content: Mapping[str, Any]


def read_state(paths: OutputPaths, problems: list[Problem]) -> StateFile | None:
    """None if there is none (a run has not finished), or if it can't be read: then a problem is added."""
    try:
        content = json.loads(paths.state.read_bytes())
        names = tuple(str(entry["filename"]) for entry in content["_data_files"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"it can't be read: {type(error).__name__}: {error}"
        problems.append(Problem(code=DamageCode.STATE, shard=paths.state.name, message=message))
        return None
    return StateFile(names, content)
