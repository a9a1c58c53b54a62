"""The write thread: a chunk's outcomes become rows, a block and a journal line, while the next chunk is encoded."""

import contextlib
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.errors import Fault, FaultCode, Stage, WarningCode
from ...core.units import LatentSpec, samples_to_seconds
from ...writers.block import BlockMetadata
from ...writers.records import BlockRecord, ReusedRows, SkippedClip
from ...writers.shard import ShardWriter
from ..encode.protocol import EncoderInfo
from ..rows.assemble import assemble
from ..rows.facts import RowFacts, annotation_hashes, encode_facts
from ..score.note_value import score_seconds
from ..score.prompt import build_prompt, prompt_text
from ..score.tokenizer import SvsTokenizer
from .board import Board
from .messages import Committed, FromWorker
from .work import ChunkWork

CHUNKS_WAITING = 2
"""Finished chunks that may wait for the disk before the encoder does."""


class WriteStage:
    """Takes finished chunks; each is on disk when its ``Committed`` message goes out."""

    def __init__(
        self,
        *,
        writer: ShardWriter,
        tokenizer: SvsTokenizer,
        info: EncoderInfo,
        rank: int,
        device: str,
        fingerprint_of: Callable[[int], str],
        board: Board,
        send: Callable[[FromWorker], None],
        wake: Callable[[], None],
    ) -> None:
        """``wake`` is called when the thread has ended with an error, which ``check`` then raises."""
        self._writer, self._tokenizer, self._spec = writer, tokenizer, info.spec
        self._rank, self._device, self._fingerprint_of = rank, device, fingerprint_of
        self._board, self._send, self._wake = board, send, wake
        self._chunks: queue.Queue[ChunkWork | None] = queue.Queue(CHUNKS_WAITING)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="write", daemon=True)
        self._thread.start()

    def put(self, chunk: ChunkWork) -> None:
        """Hand over a chunk whose every clip has an outcome. Raises what stopped the thread."""
        with self._board.timed("blocked"):
            while True:
                self.check()
                try:
                    return self._chunks.put(chunk, timeout=0.5)
                except queue.Full:
                    continue

    def close(self) -> None:
        """Wait until all is committed, then close the shard. Raises what stopped the thread."""
        while self._thread.is_alive():
            try:
                self._chunks.put(None, timeout=0.5)
                break
            except queue.Full:
                continue
        self._thread.join()
        self.check()
        self._writer.close()

    def check(self) -> None:
        """Raise what stopped the thread, if something did."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while (chunk := self._next()) is not None:
                self._commit(chunk)
        except Exception as error:  # raised again on the main thread
            self._error = error
            with contextlib.suppress(OSError):
                self._writer.abandon()
            self._wake()

    def _next(self) -> ChunkWork | None:
        with self._board.timed("write_idle"):
            return self._chunks.get()

    def _commit(self, chunk: ChunkWork) -> None:
        began = time.perf_counter()
        rows = _Rows(chunk, self._tokenizer, self._spec)
        batch = rows.batch() if rows.kept else None
        fingerprint = self._fingerprint_of(chunk.chunk_id)
        metadata = BlockMetadata(chunk=chunk.chunk_id, fingerprint=fingerprint, facts=self._facts(rows))
        skipped = _skipped(chunk)
        built = time.perf_counter()
        record = self._writer.write(
            batch, metadata, skipped=skipped, warnings=rows.warning_counts(), reused=rows.reused(self._spec)
        )
        self._board.add("rows", built - began)
        self._board.add("write", time.perf_counter() - built)
        self._board.add("written_bytes", record.length)
        self._board.add("committed_rows", record.rows)
        self._board.add("committed_chunks", 1)
        self._send(_committed(record))

    def _facts(self, rows: "_Rows") -> str:
        hashes = annotation_hashes(rows.annotations)
        batches = rows.annotations.column("batch").to_pylist()
        facts: list[RowFacts] = []
        for position, number, annotation_hash in zip(rows.kept, batches, hashes, strict=True):
            audio = rows.chunk.outcomes[position].audio
            assert audio is not None
            facts.append(
                RowFacts(
                    audio_hash=audio.audio_hash,
                    audio_bytes=audio.file_size,
                    sample_rate=audio.source_rate,
                    channels=audio.channels,
                    num_samples=audio.num_frames,
                    peak=audio.peak,
                    rms=audio.rms,
                    annotation_hash=annotation_hash,
                    warnings=rows.warnings(position),
                    encode_batch=number,
                    rank=self._rank,
                    device=rows.chunk.outcomes[position].encoded_by or self._device,
                )
            )
        return encode_facts(facts)


class _Rows:
    """The clips of a chunk that become rows: those with latents and a prompt."""

    def __init__(self, chunk: ChunkWork, tokenizer: SvsTokenizer, spec: LatentSpec) -> None:
        self.chunk, self._tokenizer, self._spec = chunk, tokenizer, spec
        self.kept = [i for i, outcome in enumerate(chunk.outcomes) if outcome.latents is not None]
        self.annotations = chunk.clips.take(pa.array(self.kept, pa.int64()))
        self._planned_warnings: list[list[str]] = chunk.clips.column("warnings").to_pylist()

    def batch(self) -> pa.RecordBatch:
        """The record batch of the kept clips."""
        columns = {n: self.annotations.column(n).to_pylist() for n in ("word", "pitch", "note", "pitch2word")}
        bpm, scored = self.annotations.column("bpm").to_pylist(), self.annotations.column("has_score").to_pylist()
        prompts = [
            build_prompt(word, pitch, note, pitch2word, tempo, has_score, self._tokenizer)
            for word, pitch, note, pitch2word, tempo, has_score in zip(*columns.values(), bpm, scored, strict=True)
        ]
        return assemble(
            self.annotations,
            prompts=[prompt.ids for prompt in prompts],
            text_token_counts=[prompt.text_token_count for prompt in prompts],
            prompt_texts=[prompt_text(prompt.ids, self._tokenizer) for prompt in prompts],
            estimated_durations=self._estimated(columns["note"], bpm, scored),
            latents=self._latents(),
            spec=self._spec,
        )

    def _latents(self) -> list[np.ndarray[Any, np.dtype[np.float16]]]:
        return [latents.frames_FD for i in self.kept if (latents := self.chunk.outcomes[i].latents) is not None]

    def _estimated(self, notes: list[list[str]], bpm: list[int], scored: list[bool]) -> list[float]:
        """Seconds: the score's, or for a weak clip the audio's before padding."""
        seconds: list[float] = []
        for position, clip_notes, tempo, has_score in zip(self.kept, notes, bpm, scored, strict=True):
            audio = self.chunk.outcomes[position].audio
            assert audio is not None
            seconds.append(
                score_seconds(clip_notes, tempo)
                if has_score
                else samples_to_seconds(audio.num_samples, self._spec.sample_rate)
            )
        return seconds

    def warnings(self, position: int) -> tuple[WarningCode, ...]:
        """All that was noticed about a clip, from its annotation to its encoding."""
        audio, latents = self.chunk.outcomes[position].audio, self.chunk.outcomes[position].latents
        assert audio is not None
        assert latents is not None
        codes = [*map(WarningCode, self._planned_warnings[position]), *audio.warnings]
        if latents.windowed:
            codes.append(WarningCode.WINDOWED)
        return tuple(dict.fromkeys(codes))

    def reused(self, spec: LatentSpec) -> ReusedRows:
        """The rows whose latents were not made here."""
        outcomes = [self.chunk.outcomes[position] for position in self.kept]
        audio = [outcome.audio for outcome in outcomes if outcome.encoded_by is not None and outcome.audio is not None]
        samples = sum(one.num_samples for one in audio)
        return ReusedRows(rows=len(audio), seconds=samples_to_seconds(samples, spec.sample_rate))

    def warning_counts(self) -> dict[str, int]:
        """Rows with a warning, by code."""
        return dict(Counter(str(code) for position in self.kept for code in self.warnings(position)))


def _skipped(chunk: ChunkWork) -> list[SkippedClip]:
    lost = [(i, outcome) for i, outcome in enumerate(chunk.outcomes) if outcome.latents is None]
    names = [chunk.clips.column(n) for n in ("dataset_name", "item_name", "audio_path")]
    skipped: list[SkippedClip] = []
    for position, outcome in lost:
        fault = outcome.fault or Fault(Stage.ENCODE, FaultCode.LATENT_NOT_FINITE, "the encoder gave nothing")
        dataset, item, path = (column[position].as_py() for column in names)
        skipped.append(
            SkippedClip(
                position=position,
                dataset=dataset,
                item=item,
                path=path,
                stage=fault.stage,
                code=fault.code,
                message=fault.message,
            )
        )
    return skipped


def _committed(record: BlockRecord) -> Committed:
    return Committed(record.chunk, record.rows, len(record.skipped))
