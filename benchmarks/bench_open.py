"""What does the number of rows per record batch cost when a dataset is opened?

Method: the same rows (a prompt of 4 tokens, one patch) written with 1,024 and with 32 rows a record batch, each opened
with ``datasets.load_from_disk`` in a process of its own that reports time and growth of its memory. Command:
``python benchmarks/bench_open.py [rows]``. Result: benchmarks/results/open_2core_202612.md.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from side_by_side import machine

from latentprep.core.schema import COLUMNS, features, row_schema

OPEN = """
import json, resource, sys, time
import datasets
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
rows = datasets.load_from_disk(sys.argv[1])
seconds = time.perf_counter() - began
print(json.dumps([len(rows), seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""


def batch_of(num_rows: int) -> pa.RecordBatch:
    """Small rows of the real schema."""
    length = 6
    latents = np.zeros(num_rows * length * 4 * 64, np.float16)
    inner = pa.ListArray.from_arrays(np.arange(0, latents.size + 1, 64, dtype=np.int32), pa.array(latents))
    patches = pa.ListArray.from_arrays(np.arange(0, num_rows * length * 4 + 1, 4, dtype=np.int32), inner)
    cells: dict[str, pa.Array] = {}
    for name, kind in COLUMNS.items():
        if name == "audio_feats":
            offsets = np.arange(0, num_rows * length + 1, length, dtype=np.int32)
            cells[name] = pa.ListArray.from_arrays(offsets, patches)
        elif pa.types.is_list(kind):
            filler = ["x"] if pa.types.is_string(kind.value_type) else [1]
            cells[name] = pa.array([filler * length] * num_rows, kind)
        elif pa.types.is_string(kind):
            cells[name] = pa.array(["name"] * num_rows, kind)
        else:
            cells[name] = pa.array([1] * num_rows).cast(kind)
    return pa.RecordBatch.from_arrays(list(cells.values()), schema=row_schema())


def write(folder: Path, num_rows: int, per_block: int) -> None:
    """A dataset folder with ``per_block`` rows a record batch."""
    folder.mkdir()
    batch = batch_of(per_block)
    with pa.OSFile(str(folder / "data-r0-00000.arrow"), "wb") as sink, pa.ipc.new_stream(sink, row_schema()) as writer:
        for _ in range(num_rows // per_block):
            writer.write_batch(batch)
    state = {"_data_files": [{"filename": "data-r0-00000.arrow"}], "_fingerprint": "0" * 16, "_split": None}
    state |= {"_format_columns": None, "_format_kwargs": {}, "_format_type": None, "_output_all_columns": False}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features()}))


def opened(folder: Path) -> tuple[float, float]:
    """(seconds, MiB), the median of five processes."""
    runs = [
        json.loads(subprocess.run([sys.executable, "-c", OPEN, folder], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    return float(np.median([run[1] for run in runs])), float(np.median([run[2] for run in runs]))


def main() -> None:
    num_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 262_144
    with tempfile.TemporaryDirectory() as folder:
        result: dict[str, object] = {"benchmark": "open", "rows": num_rows}
        for per_block in (1024, 32):
            path = Path(folder) / str(per_block)
            write(path, num_rows, per_block)
            seconds, mib = opened(path)
            result[f"block_of_{per_block}"] = {"seconds": round(seconds, 4), "mib": round(mib, 1)}
        print(json.dumps(result | machine()))


if __name__ == "__main__":
    main()
