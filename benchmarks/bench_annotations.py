"""What does reading a large annotation file cost, in time and memory?

Method: a JSON array of clips of 12 words and 15 notes is written until it has the wanted size. Each way of reading it runs
in a process of its own that counts clips and reports seconds of CPU, wall seconds and its peak memory, mapped pages
included: *ours* is ``read_corpora``, the whole way to checked clips; *split* is the same file only split into its items;
*json* is Python's own parser, which builds everything before the first clip and checks nothing.
Command: ``python benchmarks/bench_annotations.py [MB]``. Result: benchmarks/results/annotations_2core_202612.md.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import machine

READ = """
import json, resource, sys, time
from pathlib import Path
from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.corpora.json_array import read_array
from latentprep.preprocess.corpora.registry import read_corpora

path, way = Path(sys.argv[1]), sys.argv[2]

def ours():
    corpus = {"name": "x", "type": "json_file", "json_path": path, "audio_root": path.parent}
    settings = {"datasets": [corpus], "encoder": {"name": "dummy"}, "output_dir": "x", "device": "cpu"}
    return sum(1 for _ in read_corpora(RunConfig.model_validate(settings), lambda event: None))

WAYS = {"ours": ours, "split": lambda: sum(1 for _ in read_array(path)), "json": lambda: len(json.loads(path.read_bytes()))}
wall, cpu = time.perf_counter(), time.process_time()
clips = WAYS[way]()
print(json.dumps({
    "clips": clips,
    "cpu_s": round(time.process_time() - cpu, 1),
    "wall_s": round(time.perf_counter() - wall, 1),
    "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
}))
"""


def item(number: int) -> dict[str, object]:
    """One annotated clip."""
    words = ["我", "们", "在", "夜", "里", "唱", "一", "首", "歌", "SP", "la", "love"]
    song = f"Singer-{number // 10 % 97}#song {number // 10}"
    return {
        "item_name": f"{song}#{number:08d}",
        "wav_fn": f"{song}/{number % 10:04d}.wav",
        "word": words,
        "word_dur": [round(0.2 + number % 7 * 0.05 + at * 0.01, 3) for at in range(12)],
        "pitch": [55 + (number + at) % 20 for at in range(15)],
        "pitch_dur": [round(0.15 + at * 0.01, 3) for at in range(15)],
        "note": ["<NOTE_8>", "<NOTE_4>", "<NOTE_DOT_8>"] * 5,
        "pitch2word": [0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 11],
        "bpm": 60 + number % 120,
    }


def write(path: Path, num_bytes: int) -> None:
    """An array of at least ``num_bytes``."""
    with path.open("w", encoding="utf-8") as file:
        written, number = file.write("["), 0
        texts = [json.dumps(item(number), ensure_ascii=False) for number in range(1000)]
        while written < num_bytes:
            text = texts[number % 1000].replace("#00000", f"#{number // 1000:05d}", 1)  # another name each time
            written += len(text) + 18  # nine words of one character each take three bytes
            file.write("," * (number > 0) + text)
            number += 1
        file.write("]")


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "annotations.json"
        write(path, megabytes * 1_000_000)
        result: dict[str, object] = {"benchmark": "annotations", "file_mib": path.stat().st_size >> 20}
        for way in ("ours", "split", "json")[: 3 if megabytes <= 200 else 2]:
            done = subprocess.run([sys.executable, "-c", READ, path, way], capture_output=True, check=True)
            result[way] = json.loads(done.stdout)
    print(json.dumps(result | machine()))


if __name__ == "__main__":
    main()
