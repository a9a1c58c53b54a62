"""Precision on CUDA is set through one family of settings; a process of its own shows that nothing contradicts it."""

import subprocess
import sys

import pytest
import torch

from latentprep.preprocess.encode.precision import storage_dtype

_CODE = """
import sys, torch
from latentprep.preprocess.encode.precision import set_cuda_precision
set_cuda_precision(sys.argv[1])
print(torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.benchmark)
torch.nn.functional.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 1))
"""


@pytest.mark.parametrize(("precision", "mode"), [("tf32", "tf32"), ("float32", "ieee"), ("bf16", "ieee")])
def test_convolutions_and_products_are_set_alike(precision: str, mode: str):
    """PyTorch's own defaults differ between the two."""
    done = subprocess.run([sys.executable, "-c", _CODE, precision], capture_output=True, text=True, check=True)

    assert [mode, mode, "False"] == done.stdout.split()


def test_only_bf16_stores_less_than_float32():
    """TF32 is a way of multiplying; its values are stored in float32."""
    kinds = [storage_dtype("float32"), storage_dtype("tf32"), storage_dtype("bf16")]

    assert [torch.float32, torch.float32, torch.bfloat16] == kinds
