"""Configurations of the upstream tool."""

from pathlib import Path

import pytest

from latentprep.core.errors import ConfigError
from latentprep.preprocess.config import FolderCorpus, JsonFileCorpus
from latentprep.preprocess.config_file import load_config

UPSTREAM = """\
datasets:
  - name: muse
    type: folder_based
    dataset_root: data/muse
  - name: opensinger
    type: json_file
    json_path: data/opensinger/annotations.json
    audio_root: data/opensinger/audio
    song_id_indices: [0, 1]
    song_id_separator: "#"
  - name: opencpop
    type: json_file
    json_path: data/opencpop/annotations.json
    audio_root: data/opencpop/audio
    song_id_slice: [0, 4]
pretrained_path: pretrained_models/VoxCPM2
output_dir: data/preprocessed
max_samples: -1
sample_rate: 16000
device: cuda
num_workers: 32
shard_size: 50000
vae_batch_size: 32
vae_max_tokens: 1600000
num_gpus: -1
dispatch_chunk_size: 2000
manifest_dir: null
refresh_manifest: false
"""


@pytest.fixture
def upstream(tmp_path):
    def write(text: str = UPSTREAM) -> Path:
        path = tmp_path / "svs_preprocess.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_an_upstream_configuration_runs_unchanged(upstream):
    """Whoever moves over should not have to rewrite anything."""
    config = load_config(upstream()).config

    assert FolderCorpus(name="muse", dataset_root=Path("data/muse")) == config.datasets[0]
    assert isinstance(config.datasets[1], JsonFileCorpus)
    assert (0, 1) == config.datasets[1].song_id_indices
    assert ("voxcpm", Path("pretrained_models/VoxCPM2")) == (config.encoder.name, config.encoder.path)
    assert Path("data/preprocessed") == config.output_dir
    assert config.max_samples is None
    assert 16000 == config.sample_rate
    assert "cuda" == config.device
    assert 32 == config.decode_threads
    assert 50000 == config.shards.max_rows
    assert (32, 1600000) == (config.limits.max_batch_clips, config.limits.max_batch_samples)
    assert "all" == config.gpus


def test_keys_without_a_meaning_are_named_with_the_reason(upstream):
    path = upstream()
    notes = load_config(path).notes

    assert ["dispatch_chunk_size", "manifest_dir", "refresh_manifest"] == [
        note.split(": ")[1].split()[0] for note in notes
    ]
    assert (
        f"{path}, line 26: dispatch_chunk_size has no meaning here and is ignored: chunks are cut by rows" in notes[0]
    )


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("gpus: 2", "num_gpus and gpus are two spellings of one setting; keep one of them"),
        ("limits: {max_batch_clips: 3}", "vae_batch_size and limits.max_batch_clips are two spellings"),
        ("limits: {max_batch_samples: 3}", "vae_max_tokens and limits.max_batch_samples are two spellings"),
        ("shards: {max_rows: 3}", "shard_size and shards.max_rows are two spellings"),
        ("decode_threads: 3", "num_workers and decode_threads are two spellings"),
        ("encoder: {path: x}", "pretrained_path and encoder.path are two spellings"),
        ("encoder: {name: tiny}", "pretrained_path and encoder.name are two spellings"),
    ],
)
def test_both_spellings_of_one_setting_are_refused(upstream, more, expected):
    """One of them would win, and nobody could tell which."""
    with pytest.raises(ConfigError) as caught:
        load_config(upstream(f"{UPSTREAM}{more}\n"))

    assert expected in str(caught.value)


def test_other_settings_of_the_same_section_go_with_upstreams_keys(upstream):
    config = load_config(upstream(f"{UPSTREAM}encoder: {{precision: bf16}}\nlimits: {{max_chunk_rows: 9}}\n")).config

    assert ("voxcpm", "bf16") == (config.encoder.name, config.encoder.precision)
    assert (9, 32) == (config.limits.max_chunk_rows, config.limits.max_batch_clips)


def test_overrides_win_over_either_spelling_and_may_use_either(upstream):
    config = load_config(upstream(), ["gpus=2", "vae_batch_size=4", "device=cpu"]).config

    assert (2, 4, "cpu") == (config.gpus, config.limits.max_batch_clips, config.device)


def test_another_encoder_needs_no_checkpoint(upstream):
    """To try a configuration on a laptop one override is enough."""
    loaded = load_config(upstream(), ["encoder.name=dummy"])

    assert ("dummy", None) == (loaded.config.encoder.name, loaded.config.encoder.path)
    assert "pretrained_path is not used: the encoder 'dummy' is bundled" in loaded.notes[-1]


def test_a_checkpoint_given_as_override_means_voxcpm(upstream):
    encoder = load_config(upstream(), ["encoder.name=tiny", "pretrained_path=ckpt"]).config.encoder

    assert ("voxcpm", Path("ckpt")) == (encoder.name, encoder.path)


def test_a_problem_speaks_of_the_key_that_was_written(upstream):
    path = upstream(UPSTREAM.replace("vae_batch_size: 32", "vae_batch_size: many"))
    with pytest.raises(ConfigError) as caught:
        load_config(path)

    assert f"{path}, line 23: vae_batch_size is 'many'; expected a whole number" == str(caught.value)


def test_a_type_may_be_left_out_and_means_folders(upstream):
    config = load_config(upstream(UPSTREAM.replace("    type: folder_based\n", ""))).config

    assert "folder_based" == config.datasets[0].type
