import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from latentprep.core.errors import OutputError
from latentprep.core.paths import OutputPaths
from latentprep.writers import provenance as module
from latentprep.writers.provenance import (
    Counts,
    EncoderFacts,
    GitState,
    Provenance,
    Timings,
    describe_environment,
    read_provenance,
    write_provenance,
)


def example() -> Provenance:
    return Provenance(
        environment=describe_environment(),
        command=("prep", "svs"),
        config={"datasets": [{"name": "合唱"}]},
        fingerprint="fp",
        encoder=EncoderFacts(
            name="tiny",
            checkpoint="bundled",
            weights_hash="w",
            tokenizer_hash="t",
            sample_rate=16_000,
            hop_length=640,
            patch_size=4,
            latent_dim=64,
            precision="float32",
        ),
        devices=("cpu",),
        counts=Counts(
            planned=3,
            written=1,
            skipped={"silent": 1},
            remaining=1,
            warnings={},
            audio_seconds=1.5,
            chunks=1,
            shards=1,
            bytes=10,
        ),
        digest="0" * 32,
        content_digest="1" * 32,
        timings=Timings(started="2026-01-01T00:00:00+00:00", finished="-", wall_seconds=1.0, encoded_seconds=1.5),
    )


def test_provenance_survives_its_file(tmp_path: Path):
    paths = OutputPaths(tmp_path)
    write_provenance(paths, example())

    assert example() == read_provenance(paths.provenance)
    assert "合唱" in paths.provenance.read_text("utf-8"), "people read it"
    assert 1 == json.loads(paths.provenance.read_text("utf-8"))["format_version"]


def test_a_field_of_a_later_version_does_not_stop_this_one(tmp_path: Path):
    paths = OutputPaths(tmp_path)
    paths.provenance.write_bytes(msgspec.json.encode(msgspec.to_builtins(example()) | {"later": 1}))

    assert example() == read_provenance(paths.provenance)


def test_what_is_no_provenance_file_is_named(tmp_path: Path):
    (tmp_path / "p.json").write_text("{}")

    with pytest.raises(OutputError, match=r"p\.json is not a provenance file"):
        read_provenance(tmp_path / "p.json")


def test_the_environment_names_the_libraries_without_importing_them():
    """The parent process must stay without torch."""
    script = (
        "import sys; from latentprep.writers.provenance import describe_environment as d; e = d()\n"
        "print(e.libraries['torch'] != '', 'torch' in sys.modules, e.tool_version != 'unknown', e.num_cpus > 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert "True False True True\n" == done.stdout, done.stderr


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_is_told_by_commit_and_by_whether_it_was_changed(tmp_path: Path):
    git(tmp_path, "init", "-q")
    (tmp_path / "f").write_text("1")
    git(tmp_path, "add", "f")
    git(tmp_path, "commit", "-qm", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "not followed").write_text("")
    clean = module._git_state(tmp_path)
    (tmp_path / "f").write_text("2")

    assert GitState(commit=commit, dirty=False) == clean
    assert GitState(commit=commit, dirty=True) == module._git_state(tmp_path)


def test_an_installed_package_has_no_git_state(tmp_path: Path):
    """Not even if it lies inside somebody else's checkout."""
    git(tmp_path, "init", "-q")
    (tmp_path / "site-packages").mkdir()

    assert module._git_state(tmp_path / "site-packages") is None
