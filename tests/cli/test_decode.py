from pathlib import Path

import numpy as np
import pytest
import soundfile

from latentprep.cli.main import run_command
from latentprep.core.errors import ExitCode
from latentprep.preprocess.synth.demo_corpus import write_demo_corpus

pytestmark = pytest.mark.slow  # imports torch twice and runs the VAE


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One clip of the demo, encoded with the bundled VAE."""
    corpus = write_demo_corpus(tmp_path_factory.mktemp("demo") / "demo")
    options = ["--device", "cpu", "--workers", "1", "--set", "max_samples=1"]
    assert ExitCode.OK == run_command(["svs", "--config", str(corpus.config_path), *options])
    return corpus.output_dir


def test_a_row_becomes_a_wav_that_sounds(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """From the shard alone: whoever gets only the dataset can listen to it."""
    wav = tmp_path / "row0.wav"
    assert ExitCode.OK == run_command(["decode", str(dataset), "--row", "0", "--wav", str(wav)])

    samples, sample_rate = soundfile.read(wav)
    assert f"{wav}: 6.1 s at 16,000 Hz, row 0 (" in capsys.readouterr().out
    assert 16_000 == sample_rate
    assert 0.01 < np.sqrt(np.mean(samples**2)) < 0.5


def test_a_row_that_is_not_there_writes_nothing(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wav = tmp_path / "row.wav"
    assert ExitCode.FAILED == run_command(["decode", str(dataset), "--row", "7", "--wav", str(wav)])

    assert "has no row 7" in capsys.readouterr().err
    assert not wav.exists()


def test_a_bundled_encoder_takes_no_path(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wav = tmp_path / "row.wav"
    arguments = ["decode", str(dataset), "--row", "0", "--wav", str(wav), "--encoder-path", str(tmp_path)]

    assert ExitCode.USAGE == run_command(arguments)
    assert "the encoder tiny is bundled" in capsys.readouterr().err
