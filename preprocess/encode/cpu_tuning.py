"""What a worker on a CPU does before its first tensor: one thread, and glibc kept from unmapping large tensors.

By default glibc maps every block over 32 MiB anew and gives it back when freed, so each operation of the encoder faults
in and zeroes its output: 39 GiB of zeroed pages for one call of 32 clips of 8 s, system time 2 to 4 times user time.
With the thresholds below freed memory stays with the process: 14 -> 62 times real time for a small VAE. The cost is that
a worker keeps its largest working set for good.

One thread, because two threads change 0.6 to 0.9 % of the float16 cells: rows would depend on the number of workers.
It is set in the environment, which torch reads when it is imported, if it ever is: 2.7 s of CPU time that a worker of the
dummy encoder saves.
"""

import ctypes
import os
import sys

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_MALLOPT = (
    (_M_MMAP_THRESHOLD, 1 << 30),  # blocks under 1 GiB come from the heap
    (_M_TRIM_THRESHOLD, -1),  # the heap's free end is never given back
    (_M_TOP_PAD, 64 << 20),  # and grows in steps of 64 MiB
)

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Of OpenMP and of MKL; torch takes the lesser."""


def tune_cpu() -> bool:
    """Set allocator and thread count of this process; call it first, from the main thread.

    Returns:
        Whether the allocator took the settings; a C library without mallopt (musl) is slower, not wrong.
    """
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
    return _keep_freed_memory()


def _keep_freed_memory() -> bool:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    taken = [mallopt(option, value) == 1 for option, value in _MALLOPT]
    return all(taken)
