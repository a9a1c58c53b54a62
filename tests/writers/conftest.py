"""The writers sync to disk at every step, and hundreds of their folders are made and removed here."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where there is one: ten times as quick, with the same rules for names and files."""
    base = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
