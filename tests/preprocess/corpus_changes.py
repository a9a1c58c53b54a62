"""Changes to the bulk corpus of a test: what people do to their annotations and audio between two runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from latentprep.preprocess.config import JsonFileCorpus, RunConfig


class BulkCorpus:
    """The one json_file corpus of a ``bulk_config``, to be changed in place."""

    def __init__(self, config: RunConfig) -> None:
        corpus = config.datasets[0]
        assert isinstance(corpus, JsonFileCorpus)
        self.json_path, self.audio_root = corpus.json_path, corpus.audio_root

    def items(self) -> list[dict[str, Any]]:
        return json.loads(self.json_path.read_text())

    def save(self, items: list[dict[str, Any]]) -> None:
        self.json_path.write_text(json.dumps(items, ensure_ascii=False))

    def audio(self, number: int) -> Path:
        return self.audio_root / self.items()[number]["wav_fn"]

    def relabel(self, number: int) -> str:
        """Another word; returns the item's name."""
        items = self.items()
        words = items[number]["word"]
        place = next(i for i, word in enumerate(words) if word not in ("AP", "SP"))
        words[place] = "na" if words[place] != "na" else "la"
        self.save(items)
        return items[number]["item_name"]

    def remove(self, number: int) -> str:
        items = self.items()
        gone = items.pop(number)
        self.save(items)
        return gone["item_name"]

    def add(self, name: str, like: int = 0) -> str:
        """A new clip with the score of another and audio of its own."""
        items = self.items()
        source = items[like]
        wav = f"{name}.wav"
        samples, rate = soundfile.read(self.audio_root / source["wav_fn"])
        soundfile.write(self.audio_root / wav, np.ascontiguousarray(samples[::-1]), rate)
        self.save([*items, {**source, "item_name": name, "wav_fn": wav}])
        return name

    def replace_audio(self, number: int) -> str:
        """Other samples in the same file."""
        path = self.audio(number)
        samples, rate = soundfile.read(path)
        soundfile.write(path, samples * 0.5, rate)
        return self.items()[number]["item_name"]

    def copy_audio(self) -> None:
        """The same bytes with other times, as after a copy of the corpus."""
        for path in self.audio_root.rglob("*.wav"):
            shutil.copyfile(path, path.with_suffix(".copy"))
            path.with_suffix(".copy").rename(path)
