"""What an output folder may hold before a run, and what becomes of it."""

import os
from pathlib import Path

import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.preprocess.lock import part_lock
from latentprep.preprocess.output_folder import check_output, clear_output, output_folder, sweep

METADATA = ("state.json", "dataset_info.json", "skipped.jsonl", "provenance.json", "README.md")


def finished(root: Path) -> OutputPaths:
    """Names alone matter here."""
    paths = OutputPaths(root)
    for name in (*METADATA, "data-r0-00000.arrow", ".prep/plan.arrow", ".prep/journal/r0-x.jsonl", ".prep/lock-1-of-1"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    return paths


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_overwrite_leaves_nothing_but_the_lock(tmp_path: Path):
    """The card, too: without provenance.json it would be taken for somebody else's, and the folder refused for ever."""
    clear_output(finished(tmp_path))

    assert {".prep", ".prep/lock-1-of-1"} == names(tmp_path)


class Killed(BaseException):
    """Stands for kill -9."""


@pytest.mark.parametrize("survived", range(9))
def test_overwrite_may_be_killed_at_any_file(survived: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is left is still a run of ours, and no half of a dataset opens."""
    paths, unlink, deleted = finished(tmp_path), Path.unlink, []

    def dying(path: Path, missing_ok: bool = False) -> None:
        if len(deleted) == survived:
            raise Killed
        deleted.append(path.name)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", dying)
    try:
        clear_output(paths)
    except Killed:
        assert paths.plan.exists()
        assert not paths.state.exists() or (tmp_path / "data-r0-00000.arrow").exists()

    check_output(paths)


@pytest.mark.parametrize(
    "name",
    [
        *METADATA,
        "data-r0-00001.arrow",
        ".prep",
        ".prep/plan.arrow",
        ".prep/headers.bin",
        ".prep/lock-1-of-1",
        ".prep/journal",
        ".prep/journal/r0-y.jsonl",
        ".prep/open",
        ".prep/open/data-r0-00002.arrow.y.part",
    ],
)
@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling link"])
def test_something_else_under_one_of_our_names_is_named(name: str, kind: str, tmp_path: Path):
    """A folder would end the run with a traceback after hours; opening a FIFO never returns."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    is_folder = name in (".prep", ".prep/journal", ".prep/open")
    if is_folder or kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")

    with pytest.raises(OutputError, match=f"is not a {'folder' if is_folder else 'file'}") as caught:
        check_output(OutputPaths(tmp_path))

    assert str(path) in caught.value.what


def test_a_link_to_a_file_is_a_file(tmp_path: Path):
    """Shards may lie on another disk."""
    paths = finished(tmp_path / "out")
    (tmp_path / "elsewhere").write_text("x")
    (tmp_path / "out/data-r0-00001.arrow").symlink_to(tmp_path / "elsewhere")

    check_output(paths)


def test_a_folder_of_another_user_is_an_error_with_words(tmp_path: Path):
    """A group's folder whose journals only their writer may read."""
    paths = OutputPaths(tmp_path)

    with pytest.raises(OutputError, match="belongs to another user"), output_folder(paths):
        raise PermissionError(13, "Permission denied", str(paths.journal_dir / "r0-x.jsonl"))
    with pytest.raises(PermissionError), output_folder(paths):
        raise PermissionError(13, "Permission denied", str(tmp_path.parent / "corpus.json"))


def test_a_run_that_fails_leaves_the_folder_of_one_that_came_at_the_same_moment(tmp_path: Path):
    """Both found no folder; the one that is refused must not delete what the other one works in."""
    paths = OutputPaths(tmp_path / "out")

    def refused() -> None:
        with output_folder(paths), part_lock(OutputPaths(tmp_path / "other")):
            (paths.work / "lock-1-of-1").write_text("of the other run")
            raise KeyError

    with pytest.raises(KeyError):
        refused()

    assert {".prep", ".prep/lock-1-of-1"} == names(paths.root)


def test_what_killed_runs_left_is_swept(tmp_path: Path):
    """Metadata half written, a beat of the lock; but no file of somebody else's, and no lock that is being taken."""
    paths = finished(tmp_path)
    before = names(tmp_path)
    old = [".state.json.12.tmp", ".README.md.7.tmp", ".prep/journal/.r0-x.jsonl.3.tmp", ".prep/plan-2.arrow.5.part"]
    for name in (*old, ".prep/lock-1-of-1.a.beat", ".prep/lock-1-of-1.a.new"):
        (tmp_path / name).write_text("x")
    os.utime(tmp_path / ".prep/lock-1-of-1.a.beat", (0, 0))
    (tmp_path / ".notes.12.tmp").write_text("mine")

    sweep(paths)

    assert before | {".notes.12.tmp", ".prep/lock-1-of-1.a.new"} == names(tmp_path)
