"""Compiled or eager is decided from constants and planned audio, once, and stays."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from latentprep.preprocess.config import EncoderSettings
from latentprep.preprocess.encode import compile_choice
from latentprep.preprocess.encode.checkpoint_info import describe_audio_vae
from latentprep.preprocess.encode.compile_cache import CACHE_VARIABLE, cache_folder, use_cache
from latentprep.preprocess.encode.compile_choice import can_compile, choose_form, kept_form

from .builders import GOLDEN_V2

INFO = describe_audio_vae("voxcpm", GOLDEN_V2, "cpu", 3.0)


def settings(compile: str) -> EncoderSettings:
    return EncoderSettings.model_validate({"name": "voxcpm", "path": GOLDEN_V2, "compile": compile})


@pytest.mark.parametrize(
    ("compile", "device", "audio_seconds", "expected"),
    [
        ("auto", "cpu", 1_799, "eager"),
        ("auto", "cpu", 1_800, "compiled"),
        ("auto", "cuda", 1e9, "eager"),
        ("never", "cpu", 1e9, "eager"),
        ("always", "cpu", 1, "compiled"),
        ("always", "cuda", 1, "compiled"),
    ],
)
def test_auto_compiles_from_ten_minutes_of_work(compile, device, audio_seconds, expected, monkeypatch):
    """600 s at 3 times real time are 1,800 s of audio, whatever the number of workers."""
    monkeypatch.setattr(compile_choice, "can_compile", lambda: True)

    assert expected == choose_form(settings(compile), INFO, device, audio_seconds)


def test_without_a_compiler_auto_is_eager(monkeypatch):
    """Asked once, in the parent, before the plan is stored."""
    monkeypatch.setattr(compile_choice, "can_compile", lambda: False)

    assert "eager" == choose_form(settings("auto"), INFO, "cpu", 1e9)


def test_an_encoder_of_unbounded_rate_is_never_compiled():
    """dummy has nothing to compile."""
    info = replace(INFO, stated_rate=None)

    assert "eager" == choose_form(settings("always"), info, "cpu", 1e9)
    assert "eager" == kept_form(settings("always"), info, "compiled")


@pytest.mark.parametrize("stored", ["eager", "compiled"])
def test_a_resume_takes_the_stored_decision_unless_told_otherwise(stored):
    """Another machine without a compiler must not turn a compiled run into an eager one."""
    assert stored == kept_form(settings("auto"), INFO, stored)
    assert "compiled" == kept_form(settings("always"), INFO, stored)
    assert "eager" == kept_form(settings("never"), INFO, stored)


def test_the_cache_folder_is_the_users_and_tells_versions_and_threads_apart():
    """Artefacts of another torch are useless, those of two threads compute in another order."""
    folder = cache_folder({"XDG_CACHE_HOME": "/home/me/.cache"})
    environ = {"XDG_CACHE_HOME": "/home/me/.cache"}

    assert "/home/me/.cache/latentprep" == str(folder.parent)
    assert folder.name.startswith("inductor-2.")
    assert folder.name.endswith("-1")
    assert cache_folder({}, threads=2) != cache_folder({})
    assert "/own" == str(cache_folder({CACHE_VARIABLE: "/own"}))
    assert folder == use_cache(environ)
    assert str(folder) == environ[CACHE_VARIABLE]


def test_choosing_imports_no_torch():
    """The parent decides."""
    code = "import sys, latentprep.preprocess.encode.compile_choice; print('torch' in sys.modules)"

    assert "False" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
def test_the_probe_finds_out_whether_there_is_a_compiler(tmp_path, monkeypatch):
    """torch fails at the first call only: g++ and Python.h are asked for by compiling a line."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("CXX", os.environ.get("CXX", "g++"))
    assert can_compile()

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "other"))
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    assert not can_compile()
