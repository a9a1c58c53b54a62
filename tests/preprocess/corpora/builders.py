"""Small corpora on disk. Audio files are empty: readers look at names alone."""

import json
from pathlib import Path

from latentprep.core.errors import FaultCode
from latentprep.preprocess.config import FolderCorpus, JsonFileCorpus, RunConfig, WeakJsonCorpus
from latentprep.preprocess.corpora.clip import Clip, RefusedClip

SCORE = {"word": ["走", "吧"], "pitch": [60, 62], "note": ["<NOTE_4>", "<NOTE_8>"], "pitch2word": [0, 1]}


def item(**changes) -> dict:
    """One object of a json_file array."""
    return {"item_name": "s#a#0", "wav_fn": "s#a/0.wav", **SCORE, "bpm": 90, **changes}


def segment(seg_id: object = "0000", **changes) -> dict:
    """One entry of ``lyric``."""
    return {"seg_id": seg_id, **SCORE, **changes}


def song(root: Path, name: str, metadata: object, files: tuple[str, ...] = ("0000.flac",)) -> Path:
    """A song folder; ``metadata`` is dumped as JSON, text is written as it is, None leaves the file out."""
    folder = root / name
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).touch()
    if metadata is not None:
        text = metadata if isinstance(metadata, str) else json.dumps(metadata, ensure_ascii=False)
        (folder / "metadata.json").write_text(text, encoding="utf-8")
    return folder


def json_corpus(folder: Path, items: object, **options) -> JsonFileCorpus:
    """A json_file corpus; ``items`` is dumped as JSON, text is written as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    text = items if isinstance(items, str) else json.dumps(items, ensure_ascii=False)
    (folder / "annotations.json").write_text(text, encoding="utf-8")
    options = {"name": "choir", "type": "json_file", **options}
    return JsonFileCorpus(json_path=folder / "annotations.json", audio_root=folder, **options)


def weak_corpus(folder: Path, items: object, **options) -> WeakJsonCorpus:
    """A weak_json_file corpus."""
    same = json_corpus(folder, items)
    options = {"name": "opera", "type": "weak_json_file", **options}
    return WeakJsonCorpus(json_path=same.json_path, audio_root=same.audio_root, **options)


def folder_corpus(root: Path, **options) -> FolderCorpus:
    """A folder_based corpus."""
    return FolderCorpus(**{"name": "album", "dataset_root": root, **options})


def run_config(*corpora, **options) -> RunConfig:
    """A configuration of these corpora."""
    return RunConfig.model_validate({"datasets": corpora, "encoder": {"name": "dummy"}, "output_dir": "out", **options})


def outcome_of(outcome: Clip | RefusedClip) -> tuple[str, str]:
    """(item_name, "clip" or the code)."""
    code: FaultCode | str = outcome.fault.code if isinstance(outcome, RefusedClip) else "clip"
    return outcome.item_name, str(code)
