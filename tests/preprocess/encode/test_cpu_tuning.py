"""The allocator and thread settings of a CPU worker, in a process of their own."""

import subprocess
import sys

_CODE = """
from latentprep.preprocess.encode.cpu_tuning import tune_cpu
taken = tune_cpu()
import resource, torch
x = torch.zeros(20 << 20)  # 80 MiB, mapped anew at each use by default
for _ in range(10):
    x = x + 1
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    x = x + 1
print(taken, torch.get_num_threads(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
"""


def test_large_tensors_reuse_memory_and_there_is_one_thread():
    """Five sums of 80 MiB would fault in 102,400 pages of 4 KiB; kept memory is faulted in while warming up."""
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    taken, threads, faults = done.stdout.split()

    assert ("True", "1") == (taken, threads)
    assert 5_000 > int(faults)
