"""``make_plan``: from a stream of clips to a stored plan.

    clips ──► headers (threads) ──► prompt lengths ──► clip table (spilled) ──► cut ──► plan.arrow

Reading, scanning and tokenizing overlap; each clip is seen once and then lies in a file. A clip that is refused at any
point stays in the plan as a refused one, so the counts always add up.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import yaml

from ...core.errors import ClipFault, CorpusError
from ...core.units import samples_to_seconds
from ..config import RunConfig
from ..corpora.clip import Clip, RefusedClip
from ..encode.compile_choice import choose_form
from ..encode.protocol import DeviceKind, EncoderInfo
from ..events import EventSink, Scanning
from ..score.prompt import prompt_length
from ..score.tokenizer import SvsTokenizer
from .chunk_table import ChunkTable
from .clip_table import ClipTable, ClipTableWriter
from .cut import Cut, CutInput, cut
from .identity import Identity
from .limits import CutLimits
from .plan import Plan, PlanHead
from .row_bytes import row_bytes
from .scan import Probe, Scanned, refused, scan
from .signature import CorporaSignature, corpora_signature
from .store import write_plan

PLAN_NAME = "plan.arrow"
EVENT_SECONDS = 0.5
"""Between two ``Scanning`` events."""


def device_kind(config: RunConfig) -> DeviceKind:
    """The kind of device of a run: GPUs unless the configuration says CPU."""
    return config.device or "cuda"


def make_plan(
    config: RunConfig,
    info: EncoderInfo,
    tokenizer: SvsTokenizer,
    clips: Iterable[Clip | RefusedClip],
    *,
    probe: Probe,
    work_dir: Path,
    on_event: EventSink,
) -> Plan:
    """Plan a run and store the plan as ``work_dir``/plan.arrow, in place of the one that is there.

    Raises ``CorpusError`` if no clip is left, ``OSError`` for a full or read-only disk, and what reading ``clips``
    raises.
    """
    signature = corpora_signature(config)  # before reading: a corpus that changes meanwhile is read again next time
    with read_clips(info, tokenizer, clips, probe=probe, work_dir=work_dir, on_event=on_event) as table:
        head, pieces = cut_table(config, info, tokenizer.hash, table, signature)
        write_plan(work_dir / PLAN_NAME, head, table, pieces)
    return Plan.open(work_dir / PLAN_NAME)


def cut_table(
    config: RunConfig, info: EncoderInfo, tokenizer_hash: str, table: ClipTable, signature: CorporaSignature
) -> tuple[PlanHead, Cut]:
    """Cut all clips of a table into batches and chunks; what the plan says about itself, and the pieces."""
    device = device_kind(config)
    limits = CutLimits.of(config.limits, info, device)
    seconds = samples_to_seconds(int(table.num_samples.sum()), info.spec.sample_rate)
    form = choose_form(config.encoder, info, device, seconds)
    identity = Identity.of(config, info, tokenizer_hash, device, form)
    sizes = cut_input(table, info)
    pieces = cut(sizes, limits, seed=identity.seed)
    head = PlanHead(
        identity=identity,
        limits=limits,
        spec=info.spec,
        config_yaml=config_yaml(config),
        corpora_signature=signature,
        chunks=chunk_table(table, sizes, pieces, info),
        refused_counts=refused_counts(table),
    )
    return head, pieces


def config_yaml(config: RunConfig) -> str:
    """The resolved configuration, as a plan keeps it."""
    return yaml.safe_dump(config.model_dump(mode="json"), allow_unicode=True, sort_keys=False)


def refused_counts(table: ClipTable) -> tuple[tuple[str, str, int], ...]:
    """(dataset name, fault code, number of clips) of the refused clips."""
    return tuple((name, code, count) for (name, code), count in sorted(table.refused_counts.items()))


@contextmanager
def read_clips(
    info: EncoderInfo,
    tokenizer: SvsTokenizer,
    clips: Iterable[Clip | RefusedClip],
    *,
    probe: Probe,
    work_dir: Path,
    on_event: EventSink,
) -> Iterator[ClipTable]:
    """All clips with the facts of their audio, in a table that lies below ``work_dir`` until the end of the context.

    Raises as ``make_plan``.
    """
    work_dir.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=work_dir, prefix="planning-") as folder, ClipTableWriter(Path(folder)) as writer:
        for scanned in _reported(scan(clips, probe, info.spec), on_event):
            _take(scanned, tokenizer, writer)
        table = writer.finish()
        _check_not_empty(table)
        yield table


def _take(scanned: Scanned, tokenizer: SvsTokenizer, writer: ClipTableWriter) -> None:
    if isinstance(scanned, RefusedClip):
        writer.refuse(scanned)
        return
    clip, facts = scanned
    try:
        writer.add(clip, facts, prompt_length(clip.word, clip.pitch2word, clip.has_score, tokenizer))
    except ClipFault as error:
        writer.refuse(refused(clip, error))


def _reported(scanned: Iterable[Scanned], on_event: EventSink) -> Iterator[Scanned]:
    done, last = 0, time.monotonic()
    for done, item in enumerate(scanned, start=1):
        yield item
        if time.monotonic() - last > EVENT_SECONDS:
            last = time.monotonic()
            on_event(Scanning(done, done))
    on_event(Scanning(done, done))


def _check_not_empty(table: ClipTable) -> None:
    if len(table):
        return
    codes = ", ".join(f"{name}: {count} {code}" for (name, code), count in table.refused_counts.most_common(5))
    raise CorpusError(
        "not one clip of the corpora can be used" + (f" ({codes})" if codes else ": they are empty"),
        why="there is nothing to encode",
        fix="look at the paths in the configuration, above all audio_root; `prep svs --dry-run` lists refused clips",
    )


def cut_input(table: ClipTable, info: EncoderInfo) -> CutInput:
    """What the cut needs to know of all clips of a table."""
    patches = -(-table.num_samples // info.spec.patch_samples)
    sizes = row_bytes(table.prompt_length, patches, info.spec)
    return CutInput(corpus=table.corpus, num_samples=table.num_samples, row_bytes=sizes)


def chunk_table(table: ClipTable, sizes: CutInput, pieces: Cut, info: EncoderInfo) -> ChunkTable:
    """The sizes of the chunks of a cut."""
    if not len(pieces.order):
        return ChunkTable.none(table.corpora)
    first_clips = pieces.order[pieces.batch_starts[:-1]]  # a batch's longest clip
    patch = info.spec.patch_samples
    longest = -(-table.num_samples[first_clips] // patch) * patch
    chunk_starts = pieces.chunk_starts[:-1]
    first_batches = np.searchsorted(pieces.batch_starts, pieces.chunk_starts)
    return ChunkTable(
        corpora=table.corpora,
        corpus=table.corpus[pieces.order[chunk_starts]].astype(np.int64),
        rows=np.diff(pieces.chunk_starts),
        weak=np.add.reduceat(table.weak[pieces.order].astype(np.int64), chunk_starts),
        batches=np.diff(first_batches),
        samples=np.add.reduceat(table.num_samples[pieces.order], chunk_starts),
        padded_samples=np.add.reduceat(longest * np.diff(pieces.batch_starts), first_batches[:-1]),
        row_bytes=np.add.reduceat(sizes.row_bytes[pieces.order], chunk_starts),
    )
