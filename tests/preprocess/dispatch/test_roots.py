"""One file that is missing is a fault of its clip; a folder that is missing is none of its clips'."""

from pathlib import Path

import pytest

from latentprep.core.errors import DiskError
from latentprep.preprocess.dispatch.roots import require_root


def test_a_folder_with_anything_in_it_is_there(tmp_path: Path):
    (tmp_path / "song").mkdir()

    require_root(str(tmp_path))


@pytest.mark.parametrize(("name", "words"), [("empty", "is empty"), ("gone", "is gone"), ("file", "can't be read: ")])
def test_a_folder_that_is_not_there_stops_the_run(name: str, words: str, tmp_path: Path):
    """A mount point without its mount is an empty folder."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()

    with pytest.raises(DiskError, match=words):
        require_root(str(tmp_path / name))
