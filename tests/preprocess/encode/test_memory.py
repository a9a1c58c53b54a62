"""Which errors mean that memory ran out."""

import numpy as np
import pytest
import torch

from latentprep.preprocess.encode.memory import free_memory, is_out_of_memory


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of ..."),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.70 GiB total capacity; ...)"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
        RuntimeError("CUDA driver error: out of memory"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you ..."
        ),
        MemoryError(),
    ],
    ids=lambda error: str(error)[:40],
)
def test_a_shortage_is_known_in_every_spelling(error: Exception):
    """Each of these has been the end of somebody's run."""
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Given groups=1, weight of size [4, 1, 7], expected input[1, 2, 8] to have 1 channels"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
        ValueError("out of memory"),
    ],
)
def test_any_other_error_is_none(error: Exception):
    """Retrying in halves would turn a bug into a list of skipped clips."""
    assert not is_out_of_memory(error)


def test_what_the_cpus_allocators_say_is_known():
    """The real errors, of torch and of numpy: 4 EiB are more than any machine has."""
    with pytest.raises(RuntimeError) as of_torch:
        torch.empty(1 << 60)
    with pytest.raises(MemoryError) as of_numpy:
        np.empty(1 << 59, np.float64)

    assert is_out_of_memory(of_torch.value)
    assert is_out_of_memory(of_numpy.value)
    free_memory()
