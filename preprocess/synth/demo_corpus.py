"""The demo corpus: a small corpus of each of the three kinds, 16 good clips and 3 faulty ones, with a configuration.

Everything that real corpora mix is there: five sample rates, mono and stereo, WAV (16 and 24 bit, float) and FLAC,
melisma and rests, names beyond ASCII, words without a score, both layouts of song folders. The faulty clips show that a
run lists them and goes on. 91 s of audio in 9 MB; the bytes of the corpora depend on the seed alone.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ...core.errors import FaultCode, UsageError
from .annotation import score_fields, transcription, write_json
from .audio_file import write_audio
from .take import DemoFile, Take, record

MARKER = ".prep-demo"
"""File that tells a demo folder, which may be written again, from any other."""
CONFIG_NAME = "prep.yaml"


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoFault:
    """A clip that gets no row, and why."""

    dataset_name: str
    item_name: str
    code: FaultCode


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoCorpus:
    """What was written."""

    root: Path
    config_path: Path
    output_dir: Path
    """Where the configuration sends the shards; beside ``root``, not created."""
    files: tuple[DemoFile, ...]
    """The good clips."""
    faults: tuple[DemoFault, ...]

    @property
    def seconds(self) -> float:
        """Audio of the good clips."""
        return sum(file.score.seconds for file in self.files)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """One of the three corpora, written: its settings in prep.yaml, its clips."""

    settings: dict[str, Any]
    files: tuple[DemoFile, ...]
    fault: DemoFault


def write_demo_corpus(root: Path, *, seed: int = 0) -> DemoCorpus:
    """Write the demo into ``root`` (missing, empty, or an earlier demo) and return what it holds.

    Paths in prep.yaml begin with ``root`` as given, since a configuration's paths are relative to the working folder.

    Raises UsageError if ``root`` is a file or a folder with foreign content.
    """
    _claim(root)
    writers = (_write_choir, _write_album, _write_opera)
    names = ("choir", "album", "opera")
    parts = [
        write(root / name, np.random.default_rng([seed, index]))
        for index, (name, write) in enumerate(zip(names, writers, strict=True))
    ]
    output_dir = root.with_name(f"{root.name}_out") if root.name not in ("", "..") else root / "out"
    config = {
        "datasets": [part.settings for part in parts],
        "encoder": {"name": "tiny"},
        "output_dir": str(output_dir),
    }
    config_path = root / CONFIG_NAME
    config_path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return DemoCorpus(
        root=root,
        config_path=config_path,
        output_dir=output_dir,
        files=tuple(file for part in parts for file in part.files),
        faults=tuple(part.fault for part in parts),
    )


def _claim(root: Path) -> None:
    """Make ``root`` ready: a folder that holds the marker and no corpus of an earlier demo."""
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file", fix="name a folder that does not exist yet")
    marker = root / MARKER
    if root.is_dir() and any(root.iterdir()) and not marker.exists():
        raise UsageError(
            f"{root} is not empty and holds no earlier demo",
            why="the demo would be written between files that are not its own",
            fix="name a folder that does not exist yet",
        )
    root.mkdir(parents=True, exist_ok=True)
    marker.write_text("Written by `prep demo`, which may write this folder again.\n", encoding="utf-8")
    for name in ("choir", "album", "opera"):
        shutil.rmtree(root / name, ignore_errors=True)


_CHOIR = (
    Take("Soprano-1#纸船", "0000", "zh", "soprano", 6.0, 44100, 1, "wav", "PCM_16"),
    Take("Soprano-1#纸船", "0001", "zh", "soprano", 4.5, 44100, 2, "wav", "PCM_24"),
    Take("Soprano-1#lamps", "0000", "en", "soprano", 7.5, 48000, 1, "flac", "PCM_16"),
    Take("Alto-2#lamps", "0000", "en", "alto", 5.0, 48000, 2, "flac", "PCM_24"),
    Take("Alto-2#lamps", "0001", "en", "alto", 3.0, 22050, 1, "wav", "PCM_16"),
    Take("Tenor-3#月", "0000", "ja", "tenor", 8.5, 24000, 1, "wav", "FLOAT"),
    Take("Tenor-3#月", "0001", "ja", "tenor", 2.0, 16000, 1, "wav", "PCM_16"),
)
_CHOIR_WEAK = _CHOIR[-1]
"""The clip that keeps its words only."""


def _write_choir(folder: Path, rng: np.random.Generator) -> _Part:
    """json_file: a list of clips; one of them weak, one whose audio file is text."""
    audio_root = folder / "audio"
    files = tuple(record(take, audio_root / take.song / take.file_name, rng) for take in _CHOIR)
    items = [_choir_item(take, file) for take, file in zip(_CHOIR, files, strict=True)]
    broken = items[0] | {"item_name": "Tenor-3#月#0002", "wav_fn": "Tenor-3#月/0002.wav"}
    (audio_root / broken["wav_fn"]).write_text("This is a note, not a WAV file.\n" * 40, encoding="utf-8")
    annotations = folder / "annotations.json"
    write_json(annotations, [*items, broken])
    return _Part(
        settings={
            "name": "choir",
            "type": "json_file",
            "json_path": str(annotations),
            "audio_root": str(audio_root),
            "song_id_indices": [0, 1],
        },
        files=files,
        fault=DemoFault(dataset_name="choir", item_name=broken["item_name"], code=FaultCode.NOT_AUDIO),
    )


def _choir_item(take: Take, file: DemoFile) -> dict[str, Any]:
    identity = {"item_name": f"{take.song}#{take.segment}", "wav_fn": f"{take.song}/{take.file_name}"}
    if take is _CHOIR_WEAK:
        return identity | {"word": list(file.score.word)}
    return identity | {"bpm": file.score.bpm} | score_fields(file.score)


_HARBOR = (
    Take("harbor", "0000", "zh", "alto", 6.5, 48000, 1, "flac", "PCM_16"),
    Take("harbor", "0001", "zh", "alto", 9.0, 48000, 1, "flac", "PCM_16"),
    Take("harbor", "0002", "zh", "alto", 4.0, 44100, 2, "wav", "PCM_16"),
)
_HARBOR_BROKEN = Take("harbor", "0003", "zh", "alto", 2.5, 48000, 1, "flac", "PCM_16")
_CLOCK = (
    Take("old clock", "0000", "en", "bass", 7.0, 48000, 1, "wav", "PCM_24"),
    Take("old clock", "0001", "en", "bass", 5.5, 22050, 1, "flac", "PCM_16"),
)
_HARBOR_BPM, _CLOCK_BPM = 92, 76


def _write_album(folder: Path, rng: np.random.Generator) -> _Part:
    """folder_based: a song with its lyric in metadata.json, and one in the older layout, a json file per segment."""
    harbor = [record(take, folder / take.song / take.file_name, rng, bpm=_HARBOR_BPM) for take in _HARBOR]
    broken = record(_HARBOR_BROKEN, folder / "harbor" / _HARBOR_BROKEN.file_name, rng, bpm=_HARBOR_BPM)
    _write_song(folder / "harbor", [*harbor, broken])
    clock = [record(take, folder / take.song / take.file_name, rng, bpm=_CLOCK_BPM) for take in _CLOCK]
    _write_older_song(folder / "old clock", clock)
    return _Part(
        settings={"name": "album", "type": "folder_based", "dataset_root": str(folder)},
        files=(*harbor, *clock),
        fault=DemoFault(dataset_name="album", item_name="harbor/0003", code=FaultCode.UNKNOWN_NOTE),
    )


def _write_song(folder: Path, files: Sequence[DemoFile]) -> None:
    """The last segment gets a note value that does not exist."""
    lyric: list[dict[str, Any]] = [
        score_fields(file.score) | {"seg_id": file.path.stem, "text": transcription(file.score, "zh")} for file in files
    ]
    lyric[-1]["note"][0] = "<NOTE_3>"
    artists = [{"id": 1, "name": "Alto-2", "type": "女歌手"}]
    write_json(
        folder / "metadata.json",
        {"id": folder.name, "name": folder.name, "artists": artists, "bpmMeta": _HARBOR_BPM, "lyric": lyric},
    )


def _write_older_song(folder: Path, files: Sequence[DemoFile]) -> None:
    artists = [{"id": 2, "name": "Bass-4", "type": "男歌手"}]
    write_json(
        folder / "metadata.json", {"id": folder.name, "name": folder.name, "artists": artists, "bpm": _CLOCK_BPM}
    )
    for file in files:
        fields = {"item_name": f"{folder.name}#{file.path.stem}"} | score_fields(file.score)
        write_json(file.path.with_suffix(".json"), fields)


_OPERA = (
    Take("aria", "segment_0001", "zh", "soprano", 5.0, 44100, 2, "wav", "PCM_16"),
    Take("aria", "segment_0002", "ja", "soprano", 8.0, 16000, 1, "wav", "FLOAT"),
    Take("duet", "segment_0001", "en", "tenor", 6.0, 24000, 1, "flac", "PCM_16"),
    Take("duet", "segment_0002", "en", "tenor", 3.5, 48000, 2, "wav", "PCM_24"),
)
_CONFIDENCES = ("high", "medium", "high", "low")
_SILENT_SAMPLES = 40_000


def _write_opera(folder: Path, rng: np.random.Generator) -> _Part:
    """weak_json_file: transcriptions only; one clip is digital silence."""
    audio_root = folder / "audio"
    files = tuple(record(take, audio_root / path, rng) for take, path in zip(_OPERA, _opera_paths(), strict=True))
    items = [
        {"audio_path": path, "transcription": transcription(file.score, take.language), "confidence": confidence}
        for take, path, file, confidence in zip(_OPERA, _opera_paths(), files, _CONFIDENCES, strict=True)
    ]
    silent = "duet/segment_0003/audio"
    items.append({"audio_path": f"{silent}.wav", "transcription": "nobody sings here", "confidence": "medium"})
    write_audio(audio_root / f"{silent}.wav", np.zeros(_SILENT_SAMPLES, dtype=np.float32), 16000)
    annotations = folder / "annotations.json"
    write_json(annotations, items)
    return _Part(
        settings={
            "name": "opera",
            "type": "weak_json_file",
            "json_path": str(annotations),
            "audio_root": str(audio_root),
        },
        files=files,
        fault=DemoFault(dataset_name="opera", item_name=silent, code=FaultCode.SILENT),
    )


def _opera_paths() -> Iterator[str]:
    for take in _OPERA:
        yield f"{take.song}/{take.segment}/audio.{take.suffix}"
