"""What a worker's libraries print goes into its log, and an empty log goes away."""

import subprocess
import sys
from pathlib import Path

from latentprep.preprocess.dispatch.guard import remove_if_empty

_PRINTS = """
import ctypes, os, sys
from pathlib import Path
from latentprep.preprocess.dispatch.guard import log_stderr_into

log_stderr_into(Path(sys.argv[1]))
os.write(2, b"from C\\n")
print("from Python", file=sys.stderr, flush=True)
ctypes.CDLL(None).perror(b"from libc")
print("on the terminal")
"""


def test_whatever_is_written_to_stderr_is_in_the_log(tmp_path: Path):
    """C libraries know nothing of sys.stderr: the descriptor itself must lead elsewhere."""
    log = tmp_path / "worker.log"
    log.write_text("before\n")

    done = subprocess.run([sys.executable, "-c", _PRINTS, log], capture_output=True, text=True, check=True)

    assert ("on the terminal\n", "") == (done.stdout, done.stderr)
    lines = log.read_text().splitlines()
    assert ["before", "from C", "from Python"] == lines[:3]
    assert lines[3].startswith("from libc: ")


def test_only_an_empty_log_is_removed(tmp_path: Path):
    """One that says something is for whoever asks why a worker died."""
    empty, full = tmp_path / "empty.log", tmp_path / "full.log"
    empty.touch()
    full.write_text("why")

    for log in (empty, full, tmp_path / "none.log"):
        remove_if_empty(log)

    assert [full] == list(tmp_path.iterdir())
