"""The encode stage: waits for a batch's audio, encodes it, puts latents or faults into the chunk's outcomes."""

import math
import time

from ...core.errors import Fault, FaultCode, Stage
from ..encode.fitting import FittingEncoder
from ..encode.protocol import EncoderInfo, Latents
from .board import Board
from .reuse import LazyEncoder
from .work import BatchWork, Reused

FLOAT16_MAX = 65504.0
SLOW = 10.0
"""A call may take this many times its estimate before it counts as stalled: a card that others use, a cold cache."""
FIRST_CALL_S = 1800.0
"""Allowed besides for the first call, which loads or compiles."""


class EncodeStage:
    """Runs on the worker's main thread."""

    def __init__(self, encoder: FittingEncoder | LazyEncoder, info: EncoderInfo, board: Board) -> None:
        self._encoder = encoder
        self._board = board
        self._stated_rate = (info.stated_rate or math.inf) * info.spec.sample_rate
        self._samples = 0
        self._seconds = 0.0

    def run(self, batch: BatchWork) -> None:
        """Encode one batch. What can't be decoded or encoded becomes a fault of its clip."""
        rows = self._collect(batch)
        if not rows:
            return
        began = time.perf_counter()
        outcomes = [batch.chunk.outcomes[row] for row in rows]
        waves = [outcome.audio.wave for outcome in outcomes if outcome.audio is not None]
        self._board.allow(self._allowance(sum(len(wave) for wave in waves)))
        for outcome, latents in zip(outcomes, self._encoder.encode(waves, _name(batch)), strict=True):
            if isinstance(latents, Fault):
                outcome.fault = latents
            elif (fault := _fault_of(latents)) is not None:
                outcome.fault = fault
            else:
                outcome.latents = latents
            if outcome.audio is not None:
                outcome.audio = outcome.audio.without_wave()
        self._board.add("encoded_clips", len(waves))
        self._board.add("encoded_bytes", sum(wave.nbytes for wave in waves))
        self._count(sum(len(wave) for wave in waves), time.perf_counter() - began)

    def rest_seconds(self, batch: BatchWork) -> float:
        """Estimated seconds to encode the chunk from this batch on."""
        samples = batch.chunk.clips.column("num_samples").to_numpy()[batch.rows[0] :].sum()
        rate = self._samples / self._seconds if self._seconds else math.inf
        return float(samples) / rate

    def _allowance(self, samples: int) -> float:
        """Seconds that the encoder may take, by its measured rate or the stated one, whichever is less."""
        if not self._seconds:
            return FIRST_CALL_S + SLOW * samples / self._stated_rate
        return SLOW * samples / min(self._stated_rate, self._samples / self._seconds)

    def _collect(self, batch: BatchWork) -> list[int]:
        """Wait for the batch's audio; rows whose audio is to be encoded."""
        began = time.perf_counter()
        good: list[int] = []
        for row, future in zip(batch.rows, batch.audio, strict=True):
            audio = future.result()
            outcome = batch.chunk.outcomes[row]
            if isinstance(audio, Fault):
                outcome.fault = audio
            elif isinstance(audio, Reused):
                outcome.audio, outcome.latents, outcome.encoded_by = audio.audio, audio.latents, audio.device
            else:
                outcome.audio = audio
                good.append(row)
        batch.audio.clear()
        self._board.add("wait", time.perf_counter() - began)
        return good

    def _count(self, samples: int, seconds: float) -> None:
        self._samples += samples
        self._seconds += seconds
        self._board.allow(0.0)
        self._board.add("encode", seconds)
        self._board.add("encoded_batches", 1)


def _name(batch: BatchWork) -> str:
    """What people are told of a batch in trouble."""
    clips = batch.chunk.clips.slice(batch.rows[0], 1)
    number, dataset, item = (clips.column(n)[0].as_py() for n in ("batch", "dataset_name", "item_name"))
    return f"batch {number} of chunk {batch.chunk.chunk_id} ({len(batch.rows)} clips from {dataset}/{item})"


def _fault_of(latents: Latents) -> Fault | None:
    """NaN, infinite, or beyond what float16 holds: never stored."""
    if not math.isfinite(latents.peak):
        return Fault(Stage.ENCODE, FaultCode.LATENT_NOT_FINITE, "the VAE made NaN or infinite latents of it")
    if latents.peak > FLOAT16_MAX:
        return Fault(Stage.ENCODE, FaultCode.LATENT_OVERFLOW, f"a latent of {latents.peak:g} is beyond float16's 65504")
    return None
