"""Identity: what a resume may not change, and how the refusal reads."""

import pytest

from latentprep.preprocess.config import RunConfig
from latentprep.preprocess.encode.protocol import DeviceKind
from latentprep.preprocess.plan.identity import Identity, differences

from .builders import config, info


def _identity(run: RunConfig | None = None, *, tokenizer: str = "cafe", device: DeviceKind = "cpu") -> Identity:
    return Identity.of(run or config(), info(), tokenizer, device)


def test_identity_is_a_flat_list_of_named_values() -> None:
    """People read it in a refusal, tools in the provenance."""
    values = _identity().values

    assert "choir" == values["datasets.0.name"]
    assert "choir.json" == values["datasets.0.json_path"]
    assert "dummy" == values["encoder.name"]
    assert "0123" == values["encoder.weights"]
    assert 640 == values["encoder.hop_length"]
    assert "eager" == values["encoder.compiled"]
    assert "cafe" == values["tokenizer"]
    assert "cpu" == values["device"]
    assert 1 == values["row_format"]
    assert values["max_samples"] is None
    assert values["audio.allow_symlinks"] is True
    assert "error" == values["score.word_without_note"]


def test_run_time_and_shape_are_no_part_of_it() -> None:
    """A run may go on with other workers, threads, shard sizes, limits, and in another folder."""
    free = {"workers": 7, "decode_threads": 9, "shards": {"max_rows": 3}, "limits": {"max_chunk_rows": 5}}

    assert _identity() == _identity(config(output_dir="elsewhere", max_skip_rate=0.5, **free))


def test_a_cpu_computes_in_float32_whatever_the_setting() -> None:
    """The setting speaks of GPUs; on a CPU it changes nothing and must not refuse a resume."""
    run = config(encoder={"name": "dummy", "precision": "bf16"})

    assert "float32" == _identity(run).values["encoder.precision"]
    assert "bf16" == _identity(run, device="cuda").values["encoder.precision"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"max_samples": 5}, "max_samples: was None, is 5"),
        ({"audio": {"max_duration": 30}}, "audio.max_duration: was None, is 30.0"),
        ({"score": {"word_without_note": "warn"}}, "score.word_without_note: was 'error', is 'warn'"),
    ],
)
def test_a_difference_names_the_value_before_and_after(changes: dict[str, object], line: str) -> None:
    """The message is all that people have to find out what to undo."""
    assert [line] == differences(_identity(), _identity(config(**changes)))


def test_a_difference_in_a_corpus_names_the_corpus() -> None:
    """Nobody counts corpora from 0."""
    corpora = [{"type": "folder_based", "name": "album", "dataset_root": "songs"}]

    lines = differences(_identity(), _identity(config(datasets=corpora)))

    assert "datasets.0.name (corpus album): was 'choir', is 'album'" in lines
    assert "datasets.0.json_path (corpus album): was 'choir.json', is '(not set)'" in lines
    assert "datasets.0.dataset_root (corpus album): was '(not set)', is 'songs'" in lines


def test_equal_identities_differ_in_nothing_and_survive_the_plan_file() -> None:
    """Numbers must not come back as strings."""
    identity = _identity()

    again = Identity.from_json(identity.to_json())

    assert identity == again
    assert [] == differences(identity, again)
    assert identity.seed == again.seed
    assert 0 <= identity.seed < 1 << 64
    assert identity.seed != _identity(tokenizer="beef").seed
