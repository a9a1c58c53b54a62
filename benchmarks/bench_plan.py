"""What does a plan cost in the parent process, from 10 thousand to 10 million clips?

Method: synthetic clips of 15 notes with log-normal lengths, and an audio header made up on the spot, so neither annotation
files nor audio are touched; everything else is the real code. Four times are taken: *reading* (making the clips, the
threads of the scan, prompt lengths, the spill), *cutting* (sort, batches, chunks), *storing* (gathering clips in plan
order, fingerprint, plan.arrow), and *resuming*: ``ready_plans`` over that plan, with a journal of half its chunks, up to
the first chunk. Each size runs in a process of its own that reports its peak memory. For ``NxR`` a table of N clips is
written R times over before it is cut, since reading ten million synthetic clips takes longer than all the rest; *reading*
is then of N clips.
Command: ``python benchmarks/bench_plan.py [N or NxR ...]``. Result: benchmarks/results/plan_2core_202612.md.
"""

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from side_by_side import machine

from latentprep.core.paths import OutputPaths
from latentprep.preprocess.audio.header import AudioHeader
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.corpora.clip import Clip, RefusedClip
from latentprep.preprocess.corpora.name_set import NameSet
from latentprep.preprocess.dispatch.devices import choose_devices
from latentprep.preprocess.encode.protocol import EncoderInfo
from latentprep.preprocess.encode.registry import tokenizer_folder
from latentprep.preprocess.plan.clip_table import CLIP_SCHEMA, SPILL_ROWS, ClipTable, ClipTableWriter
from latentprep.preprocess.plan.make import cut_table, read_clips
from latentprep.preprocess.plan.plan import Plan
from latentprep.preprocess.plan.scan import scan
from latentprep.preprocess.plan.signature import corpora_signature
from latentprep.preprocess.plan.store import write_plan
from latentprep.preprocess.ready_plan import ready_plans
from latentprep.preprocess.score.prompt import prompt_length
from latentprep.preprocess.score.tokenizer import SvsTokenizer
from latentprep.preprocess.setup import set_up
from latentprep.writers.journal import journal_header
from latentprep.writers.ledger import read_journals
from latentprep.writers.records import BlockRecord, encode_line

WORDS = ("我", "们", "在", "夜", "里", "唱", "一", "首", "歌", "SP", "la", "love")
NOTES = ("<NOTE_8>", "<NOTE_4>", "<NOTE_DOT_8>")


def clips(count: int) -> Iterator[Clip]:
    """Clips of 12 words and 15 notes; names like those of a real corpus."""
    pitch2word = (0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 11)
    pitch = tuple(55 + index % 20 for index in range(15))
    note = tuple(NOTES[index % 3] for index in range(15))
    names = NameSet()
    for number in range(count):
        song = number // 10
        names.add(f"{number} of {song}")  # as readers do, to find duplicates
        yield Clip(
            dataset_name=f"corpus{number * 4 // count}",
            item_name=f"Singer-{song % 97}#song {song}#{number % 10:04d}",
            song_name=f"Singer-{song % 97}#song {song}",
            song_folder=f"Singer-{song % 97}#song {song}",
            audio_path=f"data/audio/Singer-{song % 97}#song {song}/{number % 10:04d}.flac",
            audio_root="data/audio",
            word=WORDS,
            pitch=pitch,
            note=note,
            pitch2word=pitch2word,
            bpm=60 + number % 120,
            has_score=True,
        )


class Phases:
    """Wall and CPU seconds of what happens one after another."""

    def __init__(self) -> None:
        self.facts: dict[str, float] = {}
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def end(self, name: str) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.facts |= {f"{name}_s": round(wall - self._wall, 2), f"{name}_cpu_s": round(cpu - self._cpu, 2)}
        self.facts[f"peak_mib_after_{name}"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        self._wall, self._cpu = time.perf_counter(), time.process_time()


def measure(count: int, times: int, results: "multiprocessing.SimpleQueue[dict[str, float]]") -> None:
    """Plan ``count`` clips ``times`` over, then begin a resume."""
    dataset = {"name": "x", "type": "json_file", "json_path": "x.json", "audio_root": "x"}
    with tempfile.TemporaryDirectory() as folder:
        paths = OutputPaths(Path(folder))
        config = RunConfig.model_validate(
            {
                "datasets": [dataset],
                "encoder": {"name": "tiny", "compile": "never"},
                "output_dir": folder,
                "device": "cpu",
            }
        )
        setup = set_up(config, choose_devices(config))
        info = setup.info
        tokenizer = SvsTokenizer.load(tokenizer_folder(config.encoder))
        paths.work.mkdir()
        phases = Phases()
        plan(reading(count, times, info, tokenizer, paths.work), config, info, tokenizer, paths, phases)
        write_half_a_journal(paths)
        phases.end("journal")
        plans, resumed = ready_plans(setup, lambda event: None)
        assert resumed
        done = read_journals(paths, plans.fingerprints).done
        todo = [chunk for chunk in plans.live if chunk not in done]
        plans.chunk(todo[0])
        phases.end("resume")
        chunks, size = plans.chunks, paths.plan.stat().st_size
        padding = 1 - int(chunks.samples.sum()) / int(chunks.padded_samples.sum())
        facts = {"chunks": plans.num_chunks, "plan_mb": round(size / 1e6), "padding": round(padding, 5)}
        results.put({"clips": plans.num_clips, **phases.facts, **facts})


def repeated(count: int, times: int, info: EncoderInfo, tokenizer: SvsTokenizer, folder: Path) -> ClipTable:
    """A table of ``count`` clips, a multiple of ``SPILL_ROWS``, ``times`` over."""
    with ClipTableWriter(folder) as writer:
        for item in scan(clips(count), header_of(), info.spec):
            assert not isinstance(item, RefusedClip)
            clip, facts = item
            writer.add(clip, facts, prompt_length(clip.word, clip.pitch2word, clip.has_score, tokenizer))
        writer.finish()
    with (
        pa.OSFile(str(folder / "clips.arrow")) as file,
        pa.ipc.open_file(file) as reader,
        pa.ipc.new_file(str(folder / "many.arrow"), CLIP_SCHEMA) as many,
    ):
        for number in list(range(reader.num_record_batches)) * times:
            many.write_batch(reader.get_batch(number))
    for column in (writer.corpus, writer.num_samples, writer.prompt_length, writer.weak):
        column *= times
    return ClipTable(folder / "many.arrow", writer)


@contextmanager
def reading(count: int, times: int, info: EncoderInfo, tokenizer: SvsTokenizer, folder: Path) -> Generator[ClipTable]:
    """The table of the clips, below ``folder``."""
    if times == 1:
        with read_clips(
            info, tokenizer, clips(count), probe=header_of(), work_dir=folder, on_event=lambda event: None
        ) as table:
            yield table
    else:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            yield repeated(-(-count // SPILL_ROWS) * SPILL_ROWS, times, info, tokenizer, Path(scratch))


def plan(
    table_of: AbstractContextManager[ClipTable],
    config: RunConfig,
    info: EncoderInfo,
    tokenizer: SvsTokenizer,
    paths: OutputPaths,
    phases: Phases,
) -> None:
    """What ``make_plan`` does, with a look at the clock between its parts."""
    with table_of as table:
        phases.end("reading")
        head, pieces = cut_table(config, info, tokenizer.hash, table, corpora_signature(config))
        phases.end("cutting")
        write_plan(paths.plan, head, table, pieces)
        phases.end("storing")


def header_of() -> Callable[[Clip], AudioHeader]:
    """A probe: lengths are log-normal, 7.6 s on average, and the same in every run."""
    lengths = np.random.default_rng(0).lognormal(1.9, 0.5, 1 << 16)
    headers = [
        AudioHeader(file_size=700_000, mtime_ns=0, num_frames=int(44100 * s), sample_rate=44100, channels=1)
        for s in lengths
    ]
    return lambda clip: headers[(clip.bpm * 7919 + int(clip.item_name[-4:]) * 104729 + len(clip.item_name)) & 0xFFFF]


def write_half_a_journal(paths: OutputPaths) -> None:
    """One line for every second chunk, without rows: no shard has to be there for those to count."""
    stored = Plan.open(paths.plan)
    lines = [encode_line(journal_header(0, "bench", stored.fingerprint))]
    lines += [encode_line(BlockRecord(chunk=chunk, number=None)) for chunk in range(0, stored.num_chunks, 2)]
    paths.journal_dir.mkdir()
    paths.journal(0, "bench").write_bytes(b"".join(lines))


def table(results: list[dict[str, float]]) -> str:
    """For a page of results; wall and, in brackets, CPU seconds."""
    times = ("reading", "cutting", "storing", "resume")
    lines = ["| clips | " + " | ".join(times) + " | peak MiB | plan MB | chunks |", "|---|" + "---|" * (len(times) + 3)]
    for result in results:
        seconds = [f"{result[f'{name}_s']:.1f} ({result[f'{name}_cpu_s']:.1f})" for name in times]
        rest = [f"{result[key]:,.0f}" for key in ("peak_mib_after_resume", "plan_mb", "chunks")]
        lines.append(f"| {result['clips']:,.0f} | " + " | ".join([*seconds, *rest]) + " |")
    return "\n".join(lines)


def main() -> None:
    sizes = [argument.partition("x") for argument in sys.argv[1:] or ("10000", "100000", "1000000")]
    context = multiprocessing.get_context("spawn")
    found = []
    for count, _, times in sizes:
        results: multiprocessing.SimpleQueue[dict[str, float]] = context.SimpleQueue()
        process = context.Process(target=measure, args=(int(count), int(times or 1), results))
        process.start()
        process.join()
        found.append(results.get())
        print(json.dumps({"benchmark": "plan", **found[-1], **machine()}), flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
