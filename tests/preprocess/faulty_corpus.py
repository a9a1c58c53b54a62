"""A corpus of good clips and of every fault that an audio file can have; docs/audio-faults.md says what becomes of each."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .audio.builders import (
    encode,
    extensible,
    put,
    rf64,
    tone,
    with_data_size,
    with_flac_total,
    with_mp3_count,
    with_wav_rate,
    without_xing,
)

NUM_GOOD = 50
MAX_DURATION = 6.0
"""Seconds; the corpus is read with this limit."""

WAV = encode(tone())
FLAC = encode(tone(4.0), format="FLAC")
VORBIS = encode(tone(4.0, 44_100), 44_100, "OGG", "VORBIS")
OPUS = encode(tone(4.0, 48_000), 48_000, "OGG", "OPUS")
MP3 = encode(tone(4.0, 44_100), 44_100, "MP3")
NOISE = np.random.default_rng(0).bytes(5000)
PAGE = b"<!DOCTYPE html><html><body>404 Not Found</body></html>"


def adts(num_frames: int = 50, payload: int = 200) -> bytes:
    """AAC as raw ADTS frames: 44.1 kHz mono, with noise for sound (ISO 13818-7, table 8)."""
    rng = np.random.default_rng(1)
    size = payload + 7
    header = bytes((0xFF, 0xF1, 0x50, 0x40 | size >> 11, size >> 3 & 0xFF, (size & 7) << 5 | 0x1F, 0xFC))
    return b"".join(header + rng.bytes(payload) for _ in range(num_frames))


def _with(wave: np.ndarray, value: float) -> bytes:
    broken = wave.copy()
    broken[5000] = value
    return encode(broken, subtype="FLOAT")


def _rf64_of_absurd_length() -> bytes:
    content = rf64(tone())
    start = content.index(b"ds64") + 8
    return content[: start + 8] + (2**63 - 1).to_bytes(8, "little") + content[start + 16 :]


FILES: dict[str, bytes] = {
    "empty file": b"",
    "WAV without samples": WAV[:44],
    "FLAC without samples": FLAC[:90],
    "WAV cut in its header": WAV[:30],
    "a web page": PAGE,
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
    "AAC named .wav": adts(),
    "noise behind an MP3 header": b"\xff\xfb\x90\x44" + NOISE,
    "44,101 Hz": with_wav_rate(WAV, 44_101),
    "1 Hz": with_wav_rate(WAV, 1),
    "NaN sample": _with(tone(), np.nan),
    "infinite sample": _with(tone(), np.inf),
    "silence": encode(tone(amplitude=0.9e-4), subtype="FLOAT"),
    "antiphase": encode(np.stack([tone(), -tone()], axis=1)),
    "too short": encode(tone()[:2559]),
    "too long": encode(tone(MAX_DURATION + 0.1)),
    "WAV cut": WAV[:20_000],
    "FLAC cut": FLAC[: len(FLAC) // 2],
    "Ogg Vorbis cut": VORBIS[: len(VORBIS) * 2 // 3],
    "Ogg Opus cut": OPUS[: len(OPUS) * 2 // 3],
    "MP3 cut": MP3[: len(MP3) // 2],
    "damage inside a FLAC": FLAC[:30_000] + bytes(3000) + FLAC[33_000:],
    "damage inside an MP3": MP3[:18_000] + NOISE + MP3[18_000:],
    "WAV of 0xFFFFFFFF bytes": with_data_size(WAV, 0xFFFFFFFF),
    "WAV of 2^31-1 bytes": with_data_size(WAV, 0x7FFFFFFF),
    "WAV of 0 bytes": with_data_size(WAV, 0),
    "FLAC of 2^31-1 frames": with_flac_total(FLAC, 0x7FFFFFFF),
    "FLAC of unknown length": with_flac_total(FLAC, 0),
    "RF64 of 2^63-1 bytes": _rf64_of_absurd_length(),
    "24-bit": encode(tone(), subtype="PCM_24"),
    "24-bit WAVE_FORMAT_EXTENSIBLE": extensible(tone()),
    "float above 1.0": encode(tone(amplitude=2.5), subtype="FLOAT"),
    "8 kHz": encode(tone(1.0, 8_000), 8_000),
    "11,025 Hz": encode(tone(1.0, 11_025), 11_025),
    "44,056 Hz": encode(tone(1.0, 44_056), 44_056),
    "96 kHz": encode(tone(1.0, 96_000), 96_000),
    "192 kHz": encode(tone(1.0, 192_000), 192_000),
    "MP3 count too low": with_mp3_count(MP3, 60),
    "MP3 count too high": with_mp3_count(MP3, 310),
    "MP3 without a count": without_xing(MP3),
    "disappears after the plan": WAV,
    "replaced after the plan": WAV,
    "no permission": WAV,
}
"""Kind of fault -> what lies in its file. All of them are called .wav, as libsndfile looks at contents alone."""


def _folder(path: Path) -> None:
    path.mkdir()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = os.open(path.parent, os.O_PATH)  # the name of a socket has 108 bytes at most
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def _link(path: Path) -> None:
    path.symlink_to("good-00.wav")


def _link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def _nothing(path: Path) -> None:
    pass


PLACES: dict[str, Callable[[Path], None]] = {
    "missing file": _nothing,
    "folder": _folder,
    "FIFO": _fifo,
    "socket": _socket,
    "link": _link,
    "link to nothing": _link_to_nothing,
    "link to itself": _link_to_itself,
}
"""Kind of fault -> what stands in place of a file."""

PATHS: dict[str, str] = {
    "path with ..": "../outside.wav",
    "absolute path": "{root}/outside.wav",
    "link in the path": "linked/good-01.wav",
    "name that no file can have": "a" * 300 + ".wav",
}
"""Kind of fault -> how an annotation spells its path; the files themselves are good."""

KINDS = (*FILES, *PLACES, *PATHS)


def write_faulty_corpus(root: Path) -> Path:
    """Write annotations and audio into ``root``; returns the annotation file. Items are called like their kind."""
    audio = root / "audio"
    audio.mkdir(parents=True)
    items = [(f"good {i:02}", put_good(audio, i)) for i in range(NUM_GOOD)]
    items += [(kind, Path(put(audio, _name(kind), content)).name) for kind, content in FILES.items()]
    (audio / _name("no permission")).chmod(0)
    for kind, make in PLACES.items():
        make(audio / _name(kind))
        items.append((kind, _name(kind)))
    put(root, "outside.wav", WAV)
    (audio / "linked").symlink_to(".")
    items += [(kind, spelling.format(root=root)) for kind, spelling in PATHS.items()]
    path = root / "annotations.json"
    path.write_text(json.dumps([{"item_name": name, "wav_fn": wav_fn, "word": ["la"]} for name, wav_fn in items]))
    return path


def put_good(folder: Path, number: int) -> str:
    """A clip of 0.5 to 1.5 s; returns its file's name."""
    name = f"good-{number:02}.wav"
    put(folder, name, encode(tone(0.5 + number / NUM_GOOD)))
    return name


def change_after_the_plan(root: Path) -> None:
    """What happens to a corpus while a run waits in its queue."""
    (root / "audio" / _name("disappears after the plan")).unlink()
    put(root / "audio", _name("replaced after the plan"), encode(tone(1.1)))


def _name(kind: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in kind) + ".wav"
