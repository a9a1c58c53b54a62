"""One song folder: metadata.json and ``<segment>.<opus|flac|wav|mp3>`` -> its clips and refused items.

    song/metadata.json      bpm (else bpmMeta), artists, lyric: [{seg_id, word, pitch, note, pitch2word, ...}]
    song/0000.opus ...      audio of the segments

Older exports have no ``lyric``; there ``song/0000.json`` lies beside ``song/0000.opus``. Every segment and every audio
file ends up in exactly one item: a segment without audio and audio without a segment are refused, not forgotten.

An integer ``seg_id`` n means the file ``n``, or ``0007`` for 7: the exports write four digits. If both are there, the
segment is ambiguous.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...core.errors import ClipFault, Fault, FaultCode
from ..config import FolderCorpus, ScoreSettings
from ..plain_file import read_plain_file
from ..score.check import Annotation, check_annotation, shown
from .clip import RefusedClip
from .json_decode import decode_json, decode_marked
from .json_text import UTF8_BOM, json_problem
from .outcome import Outcome, clip_of, fault, read_fault

METADATA = "metadata.json"
AUDIO_SUFFIXES = (".opus", ".flac", ".wav", ".mp3")
MAX_NAME = 255
"""Characters of a file's name; a longer ``seg_id`` is none."""
MAX_BYTES = 1 << 30
"""Of one annotation file of a song."""
SOLO_TYPES = ("男歌手", "女歌手")

_NULL = msgspec.Raw(b"null")


class _Metadata(msgspec.Struct, gc=False):
    bpm: Any = None
    bpmMeta: Any = None
    artists: Any = None
    lyric: msgspec.Raw = _NULL


class _Segment(Annotation, gc=False):
    seg_id: Any = None


_METADATA = msgspec.json.Decoder(_Metadata)
_SEGMENT = msgspec.json.Decoder(_Segment)
_LYRIC = msgspec.json.Decoder(list[msgspec.Raw] | None)


class BrokenMetadata(Exception):
    """A metadata.json that isn't a JSON object; the text has path, line and column."""


@dataclass(slots=True)
class _Listing:
    """The files of a song folder that matter."""

    audio: dict[str, list[str]] = field(default_factory=dict)
    """Stem -> names of its audio files."""
    annotations: list[str] = field(default_factory=list)
    """Stems of ``<stem>.json``, sorted."""
    claimed: set[str] = field(default_factory=set)
    """Stems of audio that a segment has named."""


def read_song(corpus: FolderCorpus, folder: str, score: ScoreSettings) -> list[Outcome]:
    """The items of one song folder: segments in the order of ``lyric``, then audio that no segment names.

    Raises BrokenMetadata.
    """
    if _is_undecodable(folder):
        broken = fault(FaultCode.BAD_ITEM, "the folder's name is not UTF-8")
        return [_refused_item(corpus, _printable(folder), _printable(folder), broken)]
    return list(_Song(corpus, folder, score).items())


def _is_undecodable(name: str) -> bool:
    """Whether a file name is not UTF-8: such bytes become lone surrogates, which neither Arrow nor JSON can hold."""
    return any("\ud800" <= char <= "\udfff" for char in name)


def _printable(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _refused_item(corpus: FolderCorpus, item_name: str, path: str, why: Fault) -> RefusedClip:
    full = os.path.join(str(corpus.dataset_root), path)
    return RefusedClip(dataset_name=corpus.name, item_name=item_name, audio_path=full, fault=why)


class _Song:
    def __init__(self, corpus: FolderCorpus, folder: str, score: ScoreSettings) -> None:
        self.corpus, self.folder, self.score = corpus, folder, score
        self.root = str(corpus.dataset_root)
        self.path = os.path.join(self.root, folder)
        self.files = _Listing()
        self.metadata = _Metadata()

    def items(self) -> Iterator[Outcome]:
        try:
            self.files = _list_files(self.path)
            self.metadata = self._read_metadata()
        except ClipFault as error:  # no annotation at all
            yield from self._unannotated(error.fault)
            return
        except OSError as error:
            broken = fault(FaultCode.UNREADABLE, f"the song folder cannot be listed: {error.strerror}")
            yield _refused_item(self.corpus, self.folder, self.folder, broken)
            return
        try:
            lyric = decode_json(_LYRIC, self.metadata.lyric)
        except msgspec.DecodeError as error:
            broken = fault(FaultCode.BAD_ITEM, f"lyric of {METADATA} is not a list of segments: {error}")
            yield from self._unannotated(broken)
            return
        if lyric is None:
            yield from self._segment_files()
        else:
            yield from (self._lyric_item(index, raw) for index, raw in enumerate(lyric))
        yield from self._unannotated(fault(FaultCode.NO_ANNOTATION, f"no segment of {METADATA} names this file"))

    def _read_metadata(self) -> _Metadata:
        path = os.path.join(self.path, METADATA)
        try:
            data = read_plain_file(path, max_bytes=MAX_BYTES)
        except FileNotFoundError:
            raise read_fault(FaultCode.NO_ANNOTATION, f"the song folder has no {METADATA}") from None
        except OSError as error:
            message = f"{METADATA} of the song folder cannot be read: {error.strerror}"
            raise read_fault(FaultCode.NO_ANNOTATION, message) from error
        try:
            return decode_marked(_METADATA, data.removeprefix(UTF8_BOM))
        except msgspec.DecodeError as error:
            problem = json_problem(data, error, "an object")
            raise BrokenMetadata(f"{path}, line {problem.line}, column {problem.column}: {problem.text}") from error

    def _lyric_item(self, index: int, raw: msgspec.Raw) -> Outcome:
        try:
            segment = decode_json(_SEGMENT, raw)
        except msgspec.DecodeError as error:
            return self._refused(f"segment {index}", None, fault(FaultCode.BAD_ITEM, f"segment {index}: {error}"))
        try:
            stem = self._stem(segment.seg_id)
        except ClipFault as error:
            return self._refused(_segment_name(segment.seg_id, index), None, error.fault)
        return self._outcome(segment, stem)

    def _segment_files(self) -> Iterator[Outcome]:
        """The older layout: one ``<stem>.json`` per segment."""
        for stem in self.files.annotations:
            try:
                data = read_plain_file(os.path.join(self.path, f"{stem}.json"), max_bytes=MAX_BYTES)
                segment = decode_marked(_SEGMENT, data.removeprefix(UTF8_BOM))
            except (OSError, msgspec.DecodeError) as error:
                self.files.claimed.add(stem)
                reason = error.strerror if isinstance(error, OSError) else error
                broken = fault(FaultCode.BAD_ITEM, _printable(f"{stem}.json: {reason}"))
                yield self._refused(stem, self.files.audio.get(stem), broken)
            else:
                yield self._outcome(segment, stem)

    def _stem(self, seg_id: Any) -> str:
        """The stem of the audio files that a ``seg_id`` means."""
        if isinstance(seg_id, str | int) and len(str(seg_id)) > MAX_NAME:
            raise read_fault(FaultCode.BAD_ITEM, f"seg_id is {shown(seg_id)}, longer than any file's name")
        if type(seg_id) is int:
            stems = [stem for stem in dict.fromkeys((str(seg_id), f"{seg_id:04d}")) if stem in self.files.audio]
            if len(stems) > 1:
                self.files.claimed.update(stems)
                raise read_fault(FaultCode.AMBIGUOUS_AUDIO, f"seg_id {seg_id} may mean {' or '.join(stems)}")
            return stems[0] if stems else str(seg_id)
        if seg_id is None or seg_id == "":
            raise read_fault(FaultCode.MISSING_FIELD, "there is no seg_id")
        if not isinstance(seg_id, str):
            raise read_fault(FaultCode.BAD_ITEM, f"seg_id is {shown(seg_id)}, expected text")
        return seg_id.strip()

    def _outcome(self, segment: _Segment, stem: str) -> Outcome:
        self.files.claimed.add(stem)
        try:
            if self.corpus.solo_singer_only and not is_solo(self.metadata.artists):
                raise read_fault(FaultCode.FILTERED, "not the song of exactly one singer (solo_singer_only)")
            name = self._audio_of(stem)
            segment.bpm = self._bpm(segment)
            checked = check_annotation(segment, self.score.word_without_note)
        except ClipFault as error:
            return self._refused(stem, self.files.audio.get(stem), error.fault)
        return clip_of(
            checked,
            dataset_name=self.corpus.name,
            item_name=f"{self.folder}/{stem}",
            song_name=self.folder,
            song_folder=self.folder,
            audio_path=os.path.join(self.path, name),
            audio_root=self.root,
        )

    def _audio_of(self, stem: str) -> str:
        names = self.files.audio.get(stem, [])
        if _is_undecodable(stem):
            raise read_fault(FaultCode.BAD_ITEM, "the file's name is not UTF-8")
        if not names:
            raise read_fault(
                FaultCode.NO_AUDIO_FOR_SEGMENT, f"no audio file is called {stem}{'|'.join(AUDIO_SUFFIXES)}"
            )
        if len(names) > 1:
            raise read_fault(FaultCode.AMBIGUOUS_AUDIO, f"{' and '.join(names)} have one name; keep one of them")
        return names[0]

    def _bpm(self, segment: _Segment) -> Any:
        """The song's tempo; 0 or null in ``bpm`` means that only the author's ``bpmMeta`` is known."""
        song = self.metadata
        return next((bpm for bpm in (song.bpm, song.bpmMeta) if bpm or bpm is False), segment.bpm or song.bpm)

    def _unannotated(self, why: Fault) -> Iterator[RefusedClip]:
        for stem, names in sorted(self.files.audio.items()):
            if stem not in self.files.claimed:
                for name in names:
                    yield self._refused(stem if len(names) == 1 else name, [name], why)

    def _refused(self, segment: str, names: list[str] | None, why: Fault) -> RefusedClip:
        file = names[0] if names else METADATA
        item_name = _printable(f"{self.folder}/{segment}")
        return _refused_item(self.corpus, item_name, _printable(os.path.join(self.folder, file)), why)


def _segment_name(seg_id: Any, index: int) -> str:
    is_name = isinstance(seg_id, str | int | float) and 0 < len(str(seg_id)) <= MAX_NAME
    return str(seg_id) if is_name else f"segment {index}"


def _list_files(path: str) -> _Listing:
    """Names alone: whether a name is a file is seen when its header is read, and a stat each costs a round trip."""
    listing = _Listing()
    for name in sorted(os.listdir(path)):
        stem, suffix = os.path.splitext(name)
        if name.startswith("._"):  # AppleDouble: what macOS adds to archives
            continue
        if suffix.lower() in AUDIO_SUFFIXES:
            listing.audio.setdefault(stem, []).append(name)
        elif suffix == ".json" and name != METADATA:
            listing.annotations.append(stem)
    return listing


def is_solo(artists: Any) -> bool:
    """Whether a song has exactly one artist, of a singer's type. Artists that are plain names or null have no type."""
    if not isinstance(artists, list) or len(artists) != 1 or not isinstance(artists[0], dict):
        return False
    return artists[0].get("type") in SOLO_TYPES
