"""One private SLURM for all tests of this folder."""

from collections.abc import Iterator

import pytest

from .cluster import SlurmCluster, why_not


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """Two idle nodes; skips where SLURM is not installed."""
    if reason := why_not():
        pytest.skip(reason)
    with SlurmCluster() as cluster:
        yield cluster
