"""What does the number of rows per record batch cost when a dataset is opened?

Method: a million rows of the real schema with small latents (6 positions, one frame of 8 values each: 0.7 kB a row) are
written with 1,024, 256 and 32 rows a record batch, and a quarter of them with 1,024. Each folder is opened with
``datasets.load_from_disk`` in processes of their own that report wall and CPU time and growth of their memory, mapped
pages included. Command: ``python benchmarks/bench_open.py [rows]``. Result: benchmarks/results/open_2core_202612.md.
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
wall, cpu = time.perf_counter(), time.process_time()
rows = datasets.load_from_disk(sys.argv[1])
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps([len(rows), wall, cpu, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""


def batch_of(num_rows: int) -> pa.RecordBatch:
    """Small rows of the real schema."""
    length = 6
    latents = np.zeros(num_rows * length * 8, np.float16)
    inner = pa.ListArray.from_arrays(np.arange(0, latents.size + 1, 8, dtype=np.int32), pa.array(latents))
    patches = pa.ListArray.from_arrays(np.arange(0, num_rows * length + 1, dtype=np.int32), inner)
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


def opened(folder: Path, runs: int = 3) -> dict[str, float]:
    """Medians of some processes."""
    found = np.median(
        [
            json.loads(subprocess.run([sys.executable, "-c", OPEN, folder], capture_output=True, check=True).stdout)
            for _ in range(runs)
        ],
        axis=0,
    )
    return dict(zip(("rows", "wall_s", "cpu_s", "mib"), (round(float(value), 4) for value in found), strict=True))


def main() -> None:
    num_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print("| rows | rows a record batch | record batches | seconds (CPU) | MiB |\n|---|---|---|---|---|")
    for rows, per_block in ((num_rows // 4, 1024), (num_rows, 1024), (num_rows, 256), (num_rows, 32)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / str(per_block)
            write(path, rows, per_block)
            found = opened(path)
        seconds = f"{found['wall_s']:.3f} ({found['cpu_s']:.3f})"
        print(
            f"| {found['rows']:,.0f} | {per_block:,} | {rows // per_block:,} | {seconds} | {found['mib']:.0f} |",
            flush=True,
        )
    print(json.dumps({"benchmark": "open"} | machine()))


if __name__ == "__main__":
    main()
