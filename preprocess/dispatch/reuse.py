"""``Reuse``: latents of rows that exist, in place of decoding and encoding, for audio files with the same bytes.

Asked by the decode threads. A file is hashed first (19 GB/s once it is read, and decoding reads it anyway); if the index
knows it, the row's patches are copied out of the mapped block: for a clip of 8 s 25 kB. Whatever is not as it should
be (a block that can't be read, a latent that is not finite, another number of frames) means that the clip is encoded.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...core.errors import Fault, Stage, WarningCode
from ...core.schema import row_schema
from ...core.units import LatentSpec, num_latent_frames, resampled_length
from ..audio.content import read_content, require_unchanged
from ..audio.decode import DecodedAudio
from ..audio.header import AudioHeader
from ..audio.regular_file import RegularFile
from ..encode.fitting import FittingEncoder
from ..encode.protocol import Latents
from ..reuse_index import BlockPlace, ReuseIndex, RowPlace
from ..stored_facts import block_facts
from .work import Reused

BLOCKS_OPEN = 128
"""Blocks whose facts and mapped columns are kept: about 100 kB each."""
_OF_AUDIO = (WarningCode.TRUNCATED, WarningCode.LENGTH_MISMATCH, WarningCode.LOUD)


class Reuse:
    """Reading is safe from several threads."""

    def __init__(self, index: Path, spec: LatentSpec, max_duration: float | None) -> None:
        """``max_duration`` in seconds: a longer clip is left to the decoder, which refuses it."""
        self._index, self._spec, self._max_duration = ReuseIndex(index), spec, max_duration
        self._block = lru_cache(BLOCKS_OPEN)(_open_block)

    def find(self, path: str, planned: AudioHeader) -> Reused | None:
        """Latents and facts of the audio file ``path``; None if no row was made of its bytes.

        Raises ClipFault as ``decode`` does for a file that isn't there, or not as it was planned.
        """
        with RegularFile(path, Stage.DECODE) as file:
            require_unchanged(file, planned)
            digest = read_content(file).hash
            linked = (WarningCode.SYMLINKED,) if file.is_link else ()
        place = self._index.find(digest)
        found = None if place is None else self._read(place, linked)
        if found is None or found.audio.audio_hash != digest or self._is_too_long(found.audio):
            return None
        return found

    def _is_too_long(self, audio: DecodedAudio) -> bool:
        return self._max_duration is not None and audio.num_frames > self._max_duration * audio.source_rate

    def _read(self, place: RowPlace, linked: tuple[WarningCode, ...]) -> Reused | None:
        try:
            rows, facts = self._block(place.block)
            row = {name: facts.column(name)[place.row].as_py() for name in facts.column_names}
            frames_FD = _frames(rows, place.row)
        except (OSError, ValueError, IndexError, pa.ArrowException):
            return None
        audio = _audio(row, self._spec, linked)
        if frames_FD.shape != (num_latent_frames(audio.num_samples, self._spec), self._spec.latent_dim):
            return None
        peak = float(np.abs(frames_FD.astype(np.float32)).max())
        if not np.isfinite(peak):
            return None
        windowed = WarningCode.WINDOWED in row["warnings"]
        return Reused(audio=audio, latents=Latents(frames_FD, peak, windowed), device=row["device"])


def _open_block(place: BlockPlace) -> tuple[pa.RecordBatch, pa.Table]:
    """The rows of a block, mapped, and their facts. Raises OSError, ValueError or ArrowException if it is damaged."""
    facts = block_facts(place.shard, place.offset)
    if facts is None:
        raise ValueError("its facts can't be read")
    with pa.memory_map(str(place.shard)) as source:
        source.seek(place.offset)
        rows = pa.ipc.read_record_batch(pa.ipc.read_message(source), row_schema())
    for name in ("audio_feats", "audio_mask"):
        rows.column(name).validate(full=True)  # a wrong offset would read beyond the map
    return rows, facts


def _frames(rows: pa.RecordBatch, row: int) -> npt.NDArray[np.float16]:
    """The latent frames [F, D] of a row's patches, copied out of the map."""
    cell = rows.column("audio_feats").slice(row, 1)
    positions = cell.flatten()
    patches = positions.flatten()
    flat_LPD = patches.flatten().to_numpy().reshape(len(positions), len(patches) // len(positions), -1)
    is_patch = rows.column("audio_mask").slice(row, 1).flatten().to_numpy() == 1
    return flat_LPD[is_patch].reshape(-1, flat_LPD.shape[-1])


def _audio(facts: Mapping[str, Any], spec: LatentSpec, linked: tuple[WarningCode, ...]) -> DecodedAudio:
    """What decoding the file would tell, without its waveform."""
    return DecodedAudio(
        wave=np.zeros(0, np.float32),
        num_samples=resampled_length(facts["num_samples"], facts["sample_rate"], spec.sample_rate),
        file_size=facts["audio_bytes"],
        audio_hash=facts["audio_hash"],
        source_rate=facts["sample_rate"],
        channels=facts["channels"],
        num_frames=facts["num_samples"],
        peak=facts["peak"],
        rms=facts["rms"],
        warnings=(*(code for code in _OF_AUDIO if code in facts["warnings"]), *linked),
    )


class LazyEncoder:
    """A worker's encoder that is loaded when there is something to encode: reuse alone costs no device time."""

    def __init__(self, load: Callable[[], FittingEncoder]) -> None:
        self._load = load
        self._encoder: FittingEncoder | None = None

    def encode(self, waveforms: Sequence[npt.NDArray[np.float32]], name: str = "a batch") -> list[Latents | Fault]:
        """See ``FittingEncoder.encode``."""
        if self._encoder is None:
            self._encoder = self._load()
        return self._encoder.encode(waveforms, name)
