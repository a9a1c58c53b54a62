import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from latentprep.core.errors import DiskError, ExitCode
from latentprep.writers import atomic
from latentprep.writers.atomic import atomic_file, atomic_write, disk_errors, rename_noreplace


def test_a_file_gets_its_new_content_and_nothing_else_is_left(tmp_path: Path):
    path = tmp_path / "state.json"
    atomic_write(path, "old")
    atomic_write(path, "新")

    assert "新" == path.read_text("utf-8")
    assert ["state.json"] == os.listdir(tmp_path)


def test_the_old_content_stays_when_writing_fails(tmp_path: Path):
    """Half a state.json would make the whole dataset unreadable."""
    path = tmp_path / "state.json"
    atomic_write(path, "old")

    with pytest.raises(TypeError), atomic_file(path) as file:
        file.writelines([b"half", "not bytes"])  # type: ignore[list-item]

    assert "old" == path.read_text()
    assert ["state.json"] == os.listdir(tmp_path)


def test_a_rename_moves_the_file(tmp_path: Path):
    (tmp_path / "a").write_text("a")
    rename_noreplace(tmp_path / "a", tmp_path / "b")

    assert ["b"] == os.listdir(tmp_path)


WAYS = ["renameat2", "link", "look"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the three ways; file systems that refuse the first ones can't be had in a test, so they are refused here."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "not offered")

    if request.param != "renameat2":
        monkeypatch.setattr(atomic, "_renameat2", refuse)
    if request.param == "look":
        monkeypatch.setattr(os, "link", refuse)
    return request.param


def test_no_way_of_renaming_replaces(tmp_path: Path, way: str):
    """The other file is a finished shard of another run."""
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")

    with pytest.raises(FileExistsError):
        rename_noreplace(tmp_path / "a", tmp_path / "b")

    assert ("a", "b") == ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()), way


def test_every_way_of_renaming_moves(tmp_path: Path, way: str):
    (tmp_path / "a").write_text("a")
    rename_noreplace(tmp_path / "a", tmp_path / "b")

    assert ["b"] == os.listdir(tmp_path), way


@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT", "EROFS", "EIO", "ENODEV", "ESTALE", "EFBIG"])
def test_a_disk_that_refuses_is_a_stop_not_a_failure(tmp_path: Path, code: str):
    """Exit code 75: a scheduler starts the same command again, and it goes on."""
    path = tmp_path / "data.arrow"

    with pytest.raises(DiskError) as caught, disk_errors(path, needed=1234):
        raise OSError(getattr(errno, code), "refused")

    assert ExitCode.STOPPED == caught.value.exit_code
    assert str(path) in str(caught.value)
    assert "1,234 bytes" in caught.value.why
    assert "free there:" in caught.value.why


def test_other_errors_pass(tmp_path: Path):
    with pytest.raises(PermissionError), disk_errors(tmp_path):
        raise PermissionError(errno.EACCES, "no")


def test_a_device_without_space_is_named():
    """/dev/full answers every write as a full disk does."""
    with pytest.raises(DiskError, match="no space left"), disk_errors(Path("/dev/full")):
        Path("/dev/full").write_bytes(b"x")


def test_the_file_that_an_error_names_is_the_one_that_is_told(tmp_path: Path):
    """It may lie on another disk than the one at work: in the temporary folder, say."""
    error = OSError(errno.ENOSPC, "No space left on device", "/elsewhere/board")

    with pytest.raises(DiskError) as caught, disk_errors(tmp_path):
        raise error

    assert "no space left: /elsewhere/board" == caught.value.what


def test_a_file_size_limit_leaves_the_old_file(tmp_path: Path):
    """Run apart: the limit holds for a whole process."""
    path = tmp_path / "index.arrow"
    path.write_text("old")
    script = (
        "import sys; from pathlib import Path\n"
        "from latentprep.core.errors import DiskError; from latentprep.writers.atomic import atomic_write\n"
        "try: atomic_write(Path(sys.argv[1]), b'x' * 100_000)\n"
        "except DiskError as error: print(error.what)\n"
    )

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run([sys.executable, "-c", script, str(path)], preexec_fn=limit, capture_output=True, text=True)

    assert f"a file size limit is reached: {path}\n" == done.stdout, done.stderr
    assert "old" == path.read_text()
    assert ["index.arrow"] == os.listdir(tmp_path)
