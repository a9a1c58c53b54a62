"""Validation errors as lines that a person can act on: where, what stands there, what is expected instead.

All problems of a configuration are shown at once; whoever waits for a cluster should not learn of them one by one.
"""

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .config import FolderCorpus, JsonFileCorpus, RunConfig, Settings, WeakJsonCorpus, corpus_type
from .config_draft import Draft, Problem, dotted
from .config_upstream import UPSTREAM_KEYS
from .config_yaml import KeyPath

_CORPORA: dict[str, type[Settings]] = {
    "json_file": JsonFileCorpus,
    "folder_based": FolderCorpus,
    "weak_json_file": WeakJsonCorpus,
}

_MISSING: dict[KeyPath, str] = {
    ("datasets",): "give a list of corpora, each with a name and dataset_root, or type, json_path and audio_root",
    ("encoder",): "give `pretrained_path: CHECKPOINT`, or `encoder: {name: tiny}` to try without a checkpoint",
    ("output_dir",): "give the folder that the dataset is written to",
}


def sections() -> dict[str, type[Settings]]:
    """The keys of the configuration that hold settings of their own, with the model of each."""
    annotations = {name: info.annotation for name, info in RunConfig.model_fields.items()}
    return {name: kind for name, kind in annotations.items() if isinstance(kind, type) and issubclass(kind, Settings)}


def problems_of(error: ValidationError, draft: Draft) -> list[Problem]:
    """One line for every wrong setting, in the order of the models' fields."""
    details: dict[KeyPath, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        if detail["type"] == "too_short" and len(detail["input"]) > 0 and detail["loc"] == ("datasets",):
            continue  # counts the valid ones, after each of the others had its own line
        details.setdefault(_user_path(detail, draft), []).append(detail)
    problems, misspelt = [], set()
    for path, found in sorted(details.items(), key=lambda entry: entry[1][0]["type"] != "extra_forbidden"):
        if found[0]["type"] == "extra_forbidden":
            meant, text = _unknown_key(path, draft)
            misspelt.add((*path[:-1], meant))
        elif found[0]["type"] == "missing" and path in misspelt:
            continue  # the misspelt key was named already
        else:
            text = _wrong_value(path, found, draft)
        problems.append(Problem(draft.origin(path).place, text))
    return problems


def _user_path(detail: ErrorDetails, draft: Draft) -> KeyPath:
    """pydantic's location without what isn't a key: tags of unions, names of their members."""
    path: KeyPath = ()
    for depth, step in enumerate(detail["loc"]):
        parent = draft.get(path)
        is_last_missing = detail["type"] == "missing" and depth == len(detail["loc"]) - 1
        if is_last_missing or (isinstance(parent, dict) and step in parent) or isinstance(step, int):
            path = (*path, step)
    return path


def keys_at(path: KeyPath, draft: Draft) -> tuple[str, ...]:
    """The keys that may stand below ``path``, upstream's spellings included."""
    if not path:
        return (*RunConfig.model_fields, *UPSTREAM_KEYS)
    if path[0] == "datasets":
        kind = corpus_type(draft.get(path))
        return tuple(_CORPORA[kind].model_fields) if kind in _CORPORA else ()
    model = sections().get(str(path[0]))
    return tuple(model.model_fields) if model else ()


def _unknown_key(path: KeyPath, draft: Draft) -> tuple[str | None, str]:
    """The key that was probably meant, and the text."""
    *above, key = path
    valid = keys_at(tuple(above), draft)
    nearest = _nearest(str(key), valid)
    within = f" in {describe(tuple(above), draft)}" if above else ""
    text = f"unknown key {str(key)!r}{within}"
    if nearest:
        return nearest, f"{text}; did you mean {nearest!r}?"
    if home := _home_of(str(key), path):
        return None, f"{text}; {home}"
    return None, f"{text}; the keys here are {', '.join(valid)}"


def _nearest(key: str, valid: Iterable[str]) -> str | None:
    folded = {name.lower(): name for name in valid}
    near = difflib.get_close_matches(key.lower().replace("-", "_"), folded, n=1)
    return folded[near[0]] if near else None


def _home_of(key: str, path: KeyPath) -> str:
    """Where a key that exists elsewhere belongs."""
    if path[0] == "datasets":
        kinds = [kind for kind, model in _CORPORA.items() if key in model.model_fields]
        return f"it is a key of datasets of type {' and '.join(kinds)}; `type` says which this is" if kinds else ""
    names = [name for name, model in sections().items() if key in model.model_fields]
    if names:
        return f"it belongs into {names[0]}, as {names[0]}.{key}"
    return f"{key!r} stands at the top level" if key in RunConfig.model_fields else ""


def describe(path: KeyPath, draft: Draft) -> str:
    """A path with the name of the dataset it leads into, as people look for that and not for a number."""
    if len(path) >= 2 and path[0] == "datasets":
        entry = draft.get(path[:2])
        name = entry.get("name") if isinstance(entry, dict) else None
        own = f"datasets.{path[1]}" + (f" ({name})" if isinstance(name, str) else "")
        return f"{own}: {dotted(path[2:])}" if len(path) > 2 else own
    return dotted(path)


def _wrong_value(path: KeyPath, found: list[ErrorDetails], draft: Draft) -> str:
    first = found[0]
    key = draft.origin(path).key if path[:1] != ("datasets",) else describe(path, draft)
    if first["type"] == "missing" and not isinstance(path[-1], int):
        return f"{key} is missing; {_MISSING.get(path) or 'expected ' + _field_type(path)}"
    if first["type"] == "value_error":
        return f"{key}: {first['msg'].removeprefix('Value error, ')}"
    if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return _wrong_corpus(key, first["input"])
    expected = " or ".join(dict.fromkeys(_expected(detail) for detail in found))
    value = "nothing" if first["input"] is None else _shown(first["input"])
    return f"{key} is {value}; expected {expected}"


def _wrong_corpus(key: str, value: Any) -> str:
    if not isinstance(value, dict):
        return f"{key} is {_shown(value)}; expected the settings of a corpus (name, type, ...)"
    return f"{key}: type is {_shown(value.get('type'))}; expected one of {', '.join(_CORPORA)}"


def _field_type(path: KeyPath) -> str:
    """What a missing field takes; all required fields are paths, texts or the type."""
    return "text" if path[-1] == "name" else "a path"


def _expected(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    texts = {
        "int_type": "a whole number",
        "int_from_float": "a whole number",
        "float_type": "a number",
        "finite_number": "a finite number",
        "bool_type": "true or false",
        "string_type": f"text{_quote_hint(detail['input'])}",
        "string_too_short": "text that is not empty",
        "path_type": f"a path{_quote_hint(detail['input'])}",
        "tuple_type": "a list",
        "missing": "one more entry",
        "model_type": "settings (`key: value` lines)",
        "greater_than_equal": f"a number of at least {context.get('ge')}",
        "greater_than": f"a number above {context.get('gt')}",
        "less_than_equal": f"a number of at most {context.get('le')}",
        "too_short": f"a list of at least {context.get('min_length')}",
        "too_long": f"a list of at most {context.get('max_length')}",
        "literal_error": str(context.get("expected")),
    }
    return texts.get(detail["type"]) or detail["msg"]


def _quote_hint(value: Any) -> str:
    return "" if isinstance(value, dict | list) else ", put it in quotes"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return reprlib.repr(value)
