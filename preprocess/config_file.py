"""The configuration as a user writes it -> ``RunConfig``.

YAML file -> upstream's spellings -> ``--set key=value`` -> frozen models (preprocess/config.py). Later steps win, and
whatever is wrong in the end is reported in one error, each line with its place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ValidationError

from ..core.errors import ConfigError
from .config import FolderCorpus, RunConfig
from .config_draft import Draft, Origin, Problem
from .config_problems import problems_of, sections
from .config_upstream import adopt, adopt_file
from .config_yaml import KeyPath, parse_yaml, read_yaml

DEFAULT_PATH = Path("prep.yaml")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedConfig:
    """A valid configuration."""

    config: RunConfig
    notes: tuple[str, ...]
    """Warnings: settings that have no effect."""
    source: Path
    """The file it was read from."""


def load_config(path: Path | None, overrides: Sequence[str] = ()) -> LoadedConfig:
    """Read ``path`` (None: prep.yaml in the current folder) and apply ``key=value`` overrides in order.

    Keys of overrides are dotted, positions in lists count from 0 (``datasets.0.name``), values are parsed as YAML.

    Raises ConfigError that names every problem.
    """
    source = path or DEFAULT_PATH
    draft = _read(source)
    adopt_file(draft)
    for text in overrides:
        _override(draft, text)
    _drop_empty_sections(draft)
    _drop_unused_path(draft)
    config = _validate(draft)
    draft.notes.extend(_literal_variables(config))
    return LoadedConfig(config=config, notes=tuple(draft.notes), source=source)


def resolved_yaml(config: RunConfig) -> str:
    """The whole configuration, defaults included, as YAML that ``load_config`` reads back to an equal one."""
    tree = config.model_dump(mode="json")
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)


class _Dumper(yaml.SafeDumper):
    pass


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML folds U+0085 and its like unless it has to escape them.
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)


def _read(source: Path) -> Draft:
    text = read_yaml(source)
    keys = "datasets, encoder (or pretrained_path) and output_dir"
    if text.value is None:
        raise ConfigError(
            f"{source}: the file is empty", fix=f"it needs {keys}; `prep demo demo` makes one to start from"
        )
    if not isinstance(text.value, dict):
        kind = "a list" if isinstance(text.value, list) else "a single value"
        raise ConfigError(f"{source}: holds {kind} instead of settings", fix=f"write `key: value` lines: {keys}")
    return Draft(tree=text.value, file=str(source), text=text)


def _override(draft: Draft, text: str) -> None:
    key, equals, value = text.partition("=")
    path: KeyPath = tuple(key.strip().split("."))
    if not equals or not all(path):
        draft.problems.append(Problem(f"--set {text}", "expected KEY=VALUE, e.g. encoder.name=tiny"))
        return
    try:
        parsed = parse_yaml(value, f"--set {key}").value
    except ConfigError as error:
        draft.problems.append(
            Problem(f"--set {text}", f"the value is not valid YAML; put quotes around it ({error.what})")
        )
        return
    adopt(draft, path, parsed, Origin(key.strip(), f"--set {text}"))


def _drop_empty_sections(draft: Draft) -> None:
    # `limits:` with every line below commented out is None, and means the defaults.
    for name in sections():
        if name in draft.tree and draft.tree[name] is None:
            del draft.tree[name]


def _drop_unused_path(draft: Draft) -> None:
    """`--set encoder.name=dummy` on a configuration with a checkpoint: the path would cloud the identity."""
    name, path = draft.get(("encoder", "name")), draft.get(("encoder", "path"))
    if name in ("tiny", "dummy") and path is not None:
        origin = draft.origin(("encoder", "path"))
        draft.notes.append(f"{origin.place}: {origin.key} is not used: the encoder {name!r} is bundled")
        del draft.tree["encoder"]["path"]


def _validate(draft: Draft) -> RunConfig:
    try:
        config = RunConfig.model_validate(draft.tree)
    except ValidationError as error:
        draft.problems.extend(problems_of(error, draft))
    else:
        if not draft.problems:
            return config
    lines = [str(problem) for problem in draft.problems]
    if len(lines) == 1:
        raise ConfigError(lines[0])
    raise ConfigError("\n".join([f"{draft.file}: {len(lines)} problems", *(f"  {line}" for line in lines)]))


def _literal_variables(config: RunConfig) -> Iterator[str]:
    for key, path in _paths(config):
        if path is not None and "$" in str(path):
            yield f"{key}: variables are not expanded, {str(path)!r} is taken as it stands"


def _paths(config: RunConfig) -> Iterator[tuple[str, Path | None]]:
    for index, corpus in enumerate(config.datasets):
        if isinstance(corpus, FolderCorpus):
            yield f"datasets.{index}.dataset_root", corpus.dataset_root
        else:
            yield f"datasets.{index}.json_path", corpus.json_path
            yield f"datasets.{index}.audio_root", corpus.audio_root
    yield "encoder.path", config.encoder.path
    yield "output_dir", config.output_dir
