"""What running out of memory looks like, and how to get some back.

PyTorch's own allocator raises ``torch.OutOfMemoryError``; the driver, cuDNN, cuBLAS and the CPU's allocator report the same
trouble as a plain ``RuntimeError``, so its text decides. Errors that only may be a shortage ("unable to find an engine")
are not taken for one: a fault of the program must not end as a list of skipped clips.
"""

import gc
import sys

_WORDS = (
    "out of memory",  # CUDA out of memory, CUDA error: out of memory, CUDA driver error: out of memory, HIP ...
    "alloc_failed",  # CUDNN_STATUS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED
    "allocation_failed",  # CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED and its HOST sister, cuDNN 9
    "can't allocate memory",  # the CPU's allocator
    "not enough memory: you tried to allocate",  # the same, elsewhere
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of an encoder, or of a decoder, means that memory of the device or of the host ran out."""
    if isinstance(error, MemoryError):
        return True
    if not isinstance(error, RuntimeError):
        return False
    torch = sys.modules.get("torch")  # not imported: no error of its allocator, either
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return any(words in text for words in _WORDS)


def free_memory() -> None:
    """Give unused memory back to the device. Call it outside the except block, whose traceback holds tensors."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
