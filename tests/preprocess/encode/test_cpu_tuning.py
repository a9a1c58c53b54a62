"""The allocator and thread settings of a CPU worker, in a process of their own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import soundfile

_CODE = """
from latentprep.preprocess.encode.cpu_tuning import tune_cpu
taken = tune_cpu()
import resource, torch
x = torch.zeros(20 << 20)  # 80 MiB, mapped anew at each use by default
for _ in range(40):
    x = x + 1
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    x = x + 1
print(taken, torch.get_num_threads(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
"""


def test_large_tensors_reuse_memory_and_there_is_one_thread():
    """Five sums of 80 MiB would fault in 102,400 pages of 4 KiB; of kept memory at most one block's worth is new."""
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    taken, threads, faults = done.stdout.split()

    assert ("True", "1") == (taken, threads)
    assert 25_000 > int(faults)


_TORCH_FIRST = """
import torch
from latentprep.preprocess.encode.cpu_tuning import tune_cpu
tune_cpu()
print(torch.get_num_threads())
"""


def test_a_torch_that_was_imported_before_has_one_thread_too():
    """Its number of threads is read from the environment once, at its import."""
    done = subprocess.run([sys.executable, "-c", _TORCH_FIRST], capture_output=True, text=True, check=True)

    assert "1" == done.stdout.strip()


_DUMMY = """
import sys
from pathlib import Path
import latentprep.preprocess.dispatch.load
from latentprep.core.units import LatentSpec
from latentprep.preprocess.audio.decode import decode
from latentprep.preprocess.audio.header import read_header
from latentprep.preprocess.config import AudioSettings, EncoderSettings
from latentprep.preprocess.encode.cpu_tuning import tune_cpu
from latentprep.preprocess.encode.fitting import FittingEncoder
from latentprep.preprocess.encode.registry import build, describe

tune_cpu()
settings = EncoderSettings(name="dummy")
info = describe(settings, "cpu")
audio = decode(sys.argv[1], info.spec, AudioSettings(), read_header(sys.argv[1]))
latents = FittingEncoder(build(settings, info, "cpu")).encode([audio.wave])
print(len(latents[0].frames_FD), "torch" in sys.modules)
"""


def test_a_worker_without_a_network_needs_no_torch(tmp_path: Path):
    """Importing it is more than half of such a worker's start, which tests and benchmarks pay for each process."""
    soundfile.write(tmp_path / "a.wav", np.random.default_rng(0).uniform(-0.5, 0.5, 16_000), 16_000)

    done = subprocess.run(
        [sys.executable, "-c", _DUMMY, tmp_path / "a.wav"], capture_output=True, text=True, check=True
    )

    assert "28 False" == done.stdout.strip()
