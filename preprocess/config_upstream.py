"""Keys of the upstream tool's configuration, and what they mean here.

conf/svs_preprocess.yaml of VocalRender runs unchanged. Its limits are taken as upper bounds, -1 means "all" as it does
there, and keys whose subject no longer exists are named in a note instead of being ignored silently.
"""

from typing import Any

from .config_draft import Draft, Origin, Problem, dotted
from .config_yaml import KeyPath

RENAMED: dict[str, KeyPath] = {
    "pretrained_path": ("encoder", "path"),
    "vae_batch_size": ("limits", "max_batch_clips"),
    "vae_max_tokens": ("limits", "max_batch_samples"),
    "shard_size": ("shards", "max_rows"),
    "num_workers": ("decode_threads",),
    "num_gpus": ("gpus",),
}
"""Upstream's spelling -> this project's."""

WITHOUT_MEANING = {
    "dispatch_chunk_size": "chunks are cut by rows, bytes and audio seconds (limits.*)",
    "manifest_dir": "the plan is stored in the output folder and read again only where corpora changed",
    "refresh_manifest": "changed corpora are noticed; --rescan reads all of them again",
}
"""Upstream's key -> why it no longer matters."""

UPSTREAM_KEYS = (*RENAMED, *WITHOUT_MEANING)

_ALL = {"num_gpus": "all", "gpus": "all", "max_samples": None}


def adopt_file(draft: Draft) -> None:
    """Replace upstream's keys of a file's tree. Both spellings of one setting become a problem."""
    for key in [key for key in draft.tree if key in RENAMED or key in WITHOUT_MEANING or key in _ALL]:
        value = draft.tree.pop(key)
        origin = Origin(key, draft.file_place((key,)))
        if rival := _rival(draft, key):
            text = f"{key} and {dotted(rival)} are two spellings of one setting; keep one of them"
            draft.problems.append(Problem(origin.place, text))
        else:
            adopt(draft, (key,), value, origin)


def _rival(draft: Draft, key: str) -> KeyPath | None:
    rivals = [RENAMED[key]] if key in RENAMED else []
    if key == "pretrained_path":
        rivals.append(("encoder", "name"))
    return next((path for path in rivals if draft.get(path) is not None), None)


def adopt(draft: Draft, path: KeyPath, value: Any, origin: Origin) -> None:
    """Put one setting into the tree, under this project's key and with this project's meaning."""
    key = str(path[0]) if len(path) == 1 else ""
    if key in WITHOUT_MEANING:
        draft.notes.append(f"{origin.place}: {key} has no meaning here and is ignored: {WITHOUT_MEANING[key]}")
        return
    if key in _ALL and value == -1:
        value = _ALL[key]
    if key == "pretrained_path":
        draft.set(("encoder", "name"), "voxcpm", origin)
    if key in RENAMED and value is None:
        return  # upstream: no value, its default
    draft.set(RENAMED.get(key, path), value, origin)
