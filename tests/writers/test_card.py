from pathlib import Path

import datasets
import pyarrow as pa
import yaml

from latentprep.core.digest import Digests
from latentprep.core.paths import OutputPaths
from latentprep.core.schema import COLUMNS
from latentprep.core.units import LatentSpec
from latentprep.writers.card import CardFacts, card_text, write_card
from tests.writers.builders import finished_run

SPEC = LatentSpec(sample_rate=44_100, hop_length=640, patch_size=4, latent_dim=64)


def facts(**changes) -> CardFacts:
    given = {
        "corpora": {"choir": 1200, "a|b\nc": 34},
        "audio_seconds": 5400.0,
        "num_shards": 2,
        "num_bytes": 123_456,
        "skipped": {"silent": 1, "missing_audio": 3},
        "warnings": {"loud": 7},
        "digests": Digests(full=10, content=11, num_rows=1234),
        "encoder": "voxcpm (weights 0f0f)",
        "spec": SPEC,
        "tool_version": "1.2.3",
    }
    return CardFacts(**(given | changes))


def test_the_front_matter_names_the_shards_as_the_data_files():
    _, matter, _ = card_text(facts()).split("---\n", 2)

    assert [{"split": "train", "path": "data-*.arrow"}] == yaml.safe_load(matter)["configs"][0]["data_files"]


def test_load_dataset_takes_the_shards_alone(tmp_path: Path):
    """Without the front matter it would read index.arrow as rows."""
    paths = OutputPaths(tmp_path / "out")
    finished_run(paths, [0, 1])
    with pa.ipc.new_stream(str(paths.index), pa.schema({"other": pa.int64()})) as stream:
        stream.write_table(pa.table({"other": [1, 2, 3]}))
    write_card(paths, facts())
    loaded = datasets.load_dataset(str(paths.root), cache_dir=str(tmp_path / "cache"))

    assert ["train"] == list(loaded)
    assert (4, list(COLUMNS)) == (loaded["train"].num_rows, loaded["train"].column_names)


def test_the_card_says_what_is_there_and_what_is_not():
    text = card_text(facts())

    assert "1,234 rows, 1.50 hours of singing, 123,456 bytes in 2 shards" in text
    assert "44,100 Hz, 640 samples per latent frame, 68.9062 frames per second" in text
    assert "`0000000000000000000000000000000a` over 1,234 rows" in text
    assert text.index("| `missing_audio` | 3 |") < text.index("| `silent` | 1 |")
    assert "| `loud` | 7 |" in text
    assert "load_from_disk" in text


def test_every_column_has_its_line():
    lines = card_text(facts()).splitlines()

    for name in COLUMNS:
        assert 1 == sum(line.startswith(f"| `{name}` |") for line in lines), name


def test_a_corpus_name_cannot_break_the_table():
    assert "| a\\|b\\nc | 34 |" in card_text(facts())


def test_nothing_skipped_is_said_too():
    text = card_text(facts(skipped={}, warnings={}))

    assert "## Skipped clips\n\nNone." in text
    assert "warning" not in text
