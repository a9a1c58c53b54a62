"""What a worker loads at its start: torch, the encoder on its device, the tokenizer, the plan, its three stages."""

import os
import queue
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from ...core.errors import ClipFault, FaultCode
from ...core.paths import OutputPaths
from ...core.units import LatentSpec
from ...writers.records import ClosedRecord
from ...writers.shard import ShardLimits, ShardWriter
from ..audio.decode import decode
from ..config import AudioSettings
from ..encode.cpu_tuning import tune_cpu
from ..encode.fitting import FittingEncoder
from ..encode.protocol import LatentEncoder, MeasuredEncoder
from ..encode.registry import build, tokenizer_folder
from ..plan.plans import Plans
from ..score.tokenizer import SvsTokenizer
from .board import Board
from .budget import ByteBudget
from .decode_threads import DecodeThreads
from .encode_stage import EncodeStage
from .messages import Closed, FromWorker, Measured, Remark, clipped
from .orders import WorkerOrders
from .prefetch import Decode, Prefetcher
from .reuse import LazyEncoder, Reuse
from .roots import require_root
from .tuner import Tuner
from .work import ChunkWork, Decoded
from .write_stage import WriteStage

TEST_HOOK = "PREP_TEST_DECODE_HOOK"
"""Environment variable with a "module:function"; for tests of supervision only."""
_GONE = {FaultCode.MISSING_AUDIO, FaultCode.UNREADABLE}


def load_stages(
    orders: WorkerOrders,
    paths: OutputPaths,
    inbox: "queue.Queue[bytes | None]",
    board: Board,
    send: Callable[[FromWorker], None],
) -> tuple[Prefetcher, EncodeStage, WriteStage, Tuner]:
    """Load everything; nothing is started but the write thread. Raises PrepError for what the user can mend."""
    tune_cpu()
    config = orders.config
    plans = Plans.open(paths)
    reuse = None
    if orders.reuse_index is not None:
        reuse = Reuse(Path(orders.reuse_index), orders.info.spec, config.audio.max_duration)

    def load_encoder() -> FittingEncoder:
        device = "cpu" if orders.device_kind == "cpu" else "cuda:0"
        compiled = plans.identity.form == "compiled"
        made = build(config.encoder, orders.info, device, compiled=compiled)
        if orders.device_kind == "cuda" and isinstance(made, MeasuredEncoder):
            send(Measured(made.measure_precision_error()))
        return _fitting(made, send)

    def load_late() -> FittingEncoder:
        board.load_again()
        made = load_encoder()
        board.ready()
        return made

    encoder = load_encoder() if reuse is None else LazyEncoder(load_late)
    tokenizer = SvsTokenizer.load(tokenizer_folder(config.encoder))
    prefetcher = Prefetcher(
        plan=plans,
        decode=_decoder(config.audio, orders.info.spec, reuse),
        inbox=inbox,
        send=send,
        board=board,
        threads=DecodeThreads(orders.threads.most, orders.threads.start),
        budget=ByteBudget(config.prefetch_bytes),
    )
    write_stage = WriteStage(
        writer=_shard_writer(orders, paths, plans, send),
        tokenizer=tokenizer,
        info=orders.info,
        rank=orders.rank,
        device=orders.device_name,
        fingerprint_of=plans.fingerprint_of,
        board=board,
        send=send,
        wake=prefetcher.wake,
    )
    tuner = Tuner(prefetcher, board, orders.threads.most, send)
    return prefetcher, EncodeStage(encoder, orders.info, board), write_stage, tuner


def _fitting(encoder: LatentEncoder, send: Callable[[FromWorker], None]) -> FittingEncoder:
    return FittingEncoder(encoder, lambda text: send(Remark(clipped(text), "memory")))


def _shard_writer(
    orders: WorkerOrders, paths: OutputPaths, plans: Plans, send: Callable[[FromWorker], None]
) -> ShardWriter:
    def closed(shard: ClosedRecord) -> None:
        send(Closed(shard.name, shard.rows, shard.size))

    limits = ShardLimits(max_rows=orders.config.shards.max_rows, max_bytes=orders.config.shards.max_bytes)
    return ShardWriter(
        paths, orders.rank, orders.run_id, plans.fingerprints, limits, part=orders.part, on_closed=closed
    )


def _decoder(settings: AudioSettings, spec: LatentSpec, reuse: Reuse | None) -> Decode:
    hook = _test_hook()

    def decode_clip(chunk: ChunkWork, row: int) -> Decoded:
        audio = chunk.audio[row]
        if hook is not None:
            hook(audio.path)
        try:
            found = None if reuse is None else reuse.find(audio.path, audio.planned)
            return found or decode(audio.path, spec, settings, audio.planned)
        except ClipFault as error:
            if error.fault.code in _GONE:
                require_root(audio.root)
            raise

    return decode_clip


def _test_hook() -> Callable[[str], None] | None:
    """A function called with each path before it is decoded: how tests make a decoder that crashes or hangs."""
    name = os.environ.get(TEST_HOOK)
    if not name:
        return None
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)
