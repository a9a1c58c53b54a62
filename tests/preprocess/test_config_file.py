"""The way from what a user writes to a RunConfig."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentprep.core.errors import ConfigError, ExitCode
from latentprep.preprocess.config import (
    EncoderSettings,
    FolderCorpus,
    JsonFileCorpus,
    LimitSettings,
    RunConfig,
    WeakJsonCorpus,
)
from latentprep.preprocess.config_file import load_config, resolved_yaml

MINIMAL = "datasets: [{name: album, dataset_root: songs}]\nencoder: {name: tiny}\noutput_dir: out\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes prep.yaml into a fresh current folder and returns its relative path."""
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> Path:
        Path("prep.yaml").write_text(text, encoding="utf-8")
        return Path("prep.yaml")

    return write


def refusal(path: Path | None, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path, overrides)
    return str(caught.value)


def test_three_lines_are_a_configuration(written):
    """Everything else has a default, stated once in preprocess/config.py."""
    loaded = load_config(written(MINIMAL))

    assert (FolderCorpus(name="album", dataset_root=Path("songs")),) == loaded.config.datasets
    assert EncoderSettings(name="tiny") == loaded.config.encoder
    assert Path("out") == loaded.config.output_dir
    assert () == loaded.notes
    assert Path("prep.yaml") == loaded.source


def test_without_a_path_prep_yaml_is_read(written):
    written(MINIMAL)

    assert Path("prep.yaml") == load_config(None, []).source


def test_a_missing_file_says_how_to_get_one(written):
    """The first thing that a newcomer sees."""
    text = refusal(None)

    assert "prep.yaml: no such configuration file" in text
    assert "prep demo" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "prep.yaml: the file is empty"),
        ("# only a comment\n", "prep.yaml: the file is empty"),
        ("- name: a\n", "prep.yaml: holds a list instead of settings"),
        ("prep\n", "prep.yaml: holds a single value instead of settings"),
    ],
)
def test_a_file_without_settings_is_refused_with_what_it_needs(written, text, expected):
    message = refusal(written(text))

    assert expected in message
    assert "datasets, encoder (or pretrained_path) and output_dir" in message


def test_a_misspelt_key_is_named_with_its_line_and_the_right_one(written):
    text = refusal(written(MINIMAL + "limits:\n  max_chunk_row: 10\n"))

    assert "prep.yaml, line 5: unknown key 'max_chunk_row' in limits; did you mean 'max_chunk_rows'?" == text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vae_batchsize: 3", "unknown key 'vae_batchsize'; did you mean 'vae_batch_size'?"),
        ("max-samples: 3", "unknown key 'max-samples'; did you mean 'max_samples'?"),
        ("Device: cpu", "unknown key 'Device'; did you mean 'device'?"),
        ("max_duration: 3", "unknown key 'max_duration'; it belongs into audio, as audio.max_duration"),
    ],
)
def test_the_nearest_key_is_looked_for_in_both_spellings_and_in_other_sections(written, line, expected):
    assert f"prep.yaml, line 4: {expected}" == refusal(written(f"{MINIMAL}{line}\n"))


def test_a_key_like_no_other_is_answered_with_the_list(written):
    text = refusal(written(MINIMAL + "zzz: 1\n"))

    assert text.startswith("prep.yaml, line 4: unknown key 'zzz'; the keys here are datasets, encoder, output_dir, ")


def test_a_key_of_another_type_of_dataset_names_that_type(written):
    """A forgotten `type: json_file` is the usual reason."""
    text = refusal(written("datasets:\n- name: a\n  json_path: x\nencoder: {name: tiny}\noutput_dir: o\n"))

    assert "line 3: unknown key 'json_path' in datasets.0 (a); it is a key of datasets of type json_file and" in text
    assert "line 2: datasets.0 (a): dataset_root is missing; expected a path" in text


def test_all_problems_are_shown_at_once(written):
    """A cluster queue is no place to learn of them one by one."""
    text = refusal(written(MINIMAL + "workers: many\nmax_samples: 0\nfoo_bar_baz: 1\n"), "gpus=-3", "nonsense")

    assert [
        "prep.yaml: 5 problems",
        "--set nonsense: expected KEY=VALUE, e.g. encoder.name=tiny",
        "prep.yaml, line 4: workers is 'many'; expected a whole number",
        "prep.yaml, line 5: max_samples is 0; expected a number of at least 1",
        "--set gpus=-3: gpus is -3; expected a number of at least 1 or 'all'",
    ] == sorted((line.strip() for line in text.splitlines() if "foo_bar" not in line), key=_natural_order)
    assert "line 6: unknown key 'foo_bar_baz'" in text


def _natural_order(line: str) -> int:
    order = ["problems", "nonsense", "line 4", "line 5", "gpus"]
    return next(at for at, mark in enumerate(order) if mark in line)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("workers: true", "workers is true; expected a whole number"),
        ("workers: 2.5", "workers is 2.5; expected a whole number"),
        ("max_samples: 1e6", "max_samples is '1e6'; expected a whole number"),
        ("max_skip_rate: 1.5", "max_skip_rate is 1.5; expected a number of at most 1.0"),
        ("max_skip_rate: .nan", "max_skip_rate is nan; expected a number of at"),
        ("audio: {max_duration: .inf}", "audio.max_duration is inf; expected a finite number"),
        ("audio: {allow_symlinks: 3}", "audio.allow_symlinks is 3; expected true or false"),
        ("audio: 3", "audio is 3; expected settings (`key: value` lines)"),
        ("device: cuda:0", "device is 'cuda:0'; expected 'cuda' or 'cpu'"),
        ("gpus: some", "gpus is 'some'; expected a whole number or 'all'"),
        (f"workers: {10**23}", f"workers is {10**23}; expected a number of at most 65536"),
        (f"limits: {{max_chunk_bytes: {10**23}}}", f"limits.max_chunk_bytes is {10**23}; expected a number of at most"),
        ('reuse: "a\\0b"', "reuse: a path that no file can have: 'a\\x00b'"),
        ("prefetch_bytes:", "prefetch_bytes is nothing; expected a whole number"),
    ],
)
def test_a_wrong_value_is_shown_with_what_is_expected(written, lines, expected):
    assert f"prep.yaml, line 4: {expected}" in refusal(written(f"{MINIMAL}{lines}\n"))


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("{name: no, dataset_root: x}", "datasets.0: name is false; expected text, put it in quotes"),
        ("{name: 7, dataset_root: x}", "datasets.0: name is 7; expected text, put it in quotes"),
        ("{name: '', dataset_root: x}", "datasets.0 (): name is ''; expected text that is not empty"),
        ("{name: a, dataset_root: ''}", "datasets.0 (a): dataset_root: an empty path"),
        ("{name: a, type: json, json_path: x}", "datasets.0 (a): type is 'json'; expected one of json_file, "),
        ("17", "datasets.0 is 17; expected the settings of a corpus"),
        (
            "{name: a, type: json_file, json_path: x, audio_root: y, song_id_slice: [0]}",
            "datasets.0 (a): song_id_slice.1 is [0]; expected one more entry",
        ),
        (
            "{name: a, type: json_file, json_path: x, audio_root: y, song_id_slice: [0, 1], song_id_indices: [0]}",
            "datasets.0 (a): give song_id_indices or song_id_slice, not both",
        ),
    ],
)
def test_a_wrong_dataset_is_named_by_number_and_name(written, dataset, expected):
    text = refusal(written(f"datasets:\n- {dataset}\nencoder: {{name: tiny}}\noutput_dir: out\n"))

    assert f"prep.yaml, line 2: {expected}" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("encoder: {name: tiny}\noutput_dir: o\n", "datasets is missing; give a list of corpora"),
        ("datasets: []\nencoder: {name: tiny}\noutput_dir: o\n", "datasets is []; expected a list of at least 1"),
        ("datasets: [{name: a, dataset_root: x}]\noutput_dir: o\n", "encoder is missing; give `pretrained_path: CHECK"),
        ("datasets: [{name: a, dataset_root: x}]\nencoder: {name: tiny}\n", "output_dir is missing; give the folder"),
        (
            "datasets: [{name: a, dataset_root: x}]\nencoder: {precision: bf16}\noutput_dir: o\n",
            "encoder: voxcpm needs the path of a checkpoint folder",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_to_give(written, text, expected):
    assert expected in refusal(written(text))


def test_two_datasets_of_one_name_are_refused(written):
    """Their rows could not be told apart, and (corpus, item) would no longer name a clip."""
    twice = "datasets: [{name: a, dataset_root: x}, {name: a, dataset_root: y}]\nencoder: {name: tiny}\noutput_dir: o\n"

    assert "the name 'a' is given to 2 datasets" in refusal(written(twice))


def test_a_misspelt_section_is_not_also_reported_as_missing(written):
    text = refusal(written(MINIMAL.replace("datasets", "datsets")))

    assert "prep.yaml, line 1: unknown key 'datsets'; did you mean 'datasets'?" == text


def test_overrides_reach_into_lists_and_sections_and_the_last_one_wins(written):
    overrides = ["datasets.0.name=choir", "limits.max_chunk_rows=7", "limits.max_chunk_rows=8", "gpus=all", "workers="]
    config = load_config(written(MINIMAL), overrides).config

    assert "choir" == config.datasets[0].name
    assert 8 == config.limits.max_chunk_rows
    assert "all" == config.gpus
    assert config.workers is None


def test_an_override_may_replace_a_whole_section(written):
    config = load_config(
        written(MINIMAL), ["limits={max_chunk_rows: 5}", "datasets=[{name: b, dataset_root: y}]"]
    ).config

    assert LimitSettings(max_chunk_rows=5) == config.limits
    assert (FolderCorpus(name="b", dataset_root=Path("y")),) == config.datasets


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("datasets.1.name=x", "--set datasets.1.name=x: '1' is no entry of datasets: it has 1, counted from 0"),
        ("datasets.album.name=x", "'album' is no entry of datasets: it has 1, counted from 0"),
        ("output_dir.x=1", "output_dir is 'out', which has no settings below it"),
        ("encoder", "--set encoder: expected KEY=VALUE, e.g. encoder.name=tiny"),
        ("=3", "--set =3: expected KEY=VALUE"),
        ("a..b=3", "--set a..b=3: expected KEY=VALUE"),
        ("limits={", "--set limits={: the value is not valid YAML; put quotes around it"),
        ("enconder.name=x", "--set enconder.name=x: unknown key 'enconder'; did you mean 'encoder'?"),
        ("encoder.nam=x", "--set encoder.nam=x: unknown key 'nam' in encoder; did you mean 'name'?"),
        ("encoder.name=vox", "--set encoder.name=vox: encoder.name is 'vox'; expected 'voxcpm', 'tiny' or 'dummy'"),
    ],
)
def test_a_wrong_override_is_quoted(written, override, expected):
    """The place of a problem is the --set, not a line of the file."""
    assert expected in refusal(written(MINIMAL), override)


def test_a_section_with_all_its_lines_commented_out_means_the_defaults(written):
    config = load_config(written(MINIMAL + "limits:\n#  max_chunk_rows: 3\n")).config

    assert LimitSettings() == config.limits


def test_home_is_expanded_and_variables_are_not(written, monkeypatch):
    """A variable that is empty on another node would turn into another folder without a word."""
    monkeypatch.setenv("HOME", "/home/ann")
    loaded = load_config(written(MINIMAL), ["output_dir=~/o", "datasets.0.dataset_root=$DATA/x"])

    assert Path("/home/ann/o") == loaded.config.output_dir
    assert ("datasets.0.dataset_root: variables are not expanded, '$DATA/x' is taken as it stands",) == loaded.notes


def test_the_exit_code_is_that_of_a_wrong_usage(written):
    with pytest.raises(ConfigError) as caught:
        load_config(written("{}"))

    assert ExitCode.USAGE == caught.value.exit_code


def test_a_path_of_a_bundled_encoder_is_dropped_with_a_note(written):
    """It would only make the identities of two equal plans differ."""
    loaded = load_config(written(MINIMAL), ["encoder.path=ckpt"])

    assert loaded.config.encoder.path is None
    assert ("--set encoder.path=ckpt: encoder.path is not used: the encoder 'tiny' is bundled",) == loaded.notes


names = st.text(min_size=1, max_size=8).filter(lambda name: name.isprintable())
paths = st.text(st.characters(codec="utf-8", exclude_characters="\0~"), min_size=1, max_size=8).map(Path)
folders = st.builds(FolderCorpus, name=names, dataset_root=paths, solo_singer_only=st.booleans())
weak_files = st.builds(
    WeakJsonCorpus,
    name=names,
    type=st.just("weak_json_file"),
    json_path=paths,
    audio_root=paths,
    min_confidence=st.sampled_from([None, "high", "low"]),
)
json_files = st.builds(
    JsonFileCorpus,
    name=names,
    type=st.just("json_file"),
    json_path=paths,
    audio_root=paths,
    song_id_slice=st.none() | st.tuples(st.integers(-3, 3), st.integers(-3, 3)),
    song_id_separator=names,
)
configs = st.builds(
    RunConfig,
    datasets=st.lists(
        folders | weak_files | json_files, min_size=1, max_size=3, unique_by=lambda corpus: corpus.name
    ).map(tuple),
    encoder=st.builds(EncoderSettings, name=st.just("voxcpm"), path=paths),
    output_dir=paths,
    gpus=st.sampled_from([None, 3, "all"]),
    max_skip_rate=st.none() | st.floats(0, 1),
    limits=st.builds(LimitSettings, max_batch_clips=st.none() | st.integers(1, 99)),
)


@given(configs)
def test_the_resolved_text_loads_back_to_the_equal_configuration(tmp_path_factory, config):
    """Provenance stores the text; a repair years later plans from it again."""
    path = tmp_path_factory.mktemp("resolved") / "prep.yaml"
    path.write_text(resolved_yaml(config), encoding="utf-8")

    assert config == load_config(path).config
