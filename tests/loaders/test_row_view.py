from pathlib import Path

import numpy as np

from latentprep.core.schema import COLUMNS
from latentprep.loaders.dataset_files import DatasetFiles
from latentprep.loaders.row_view import LatentSummary

from .builders import LATENT_DIM, PATCH_SIZE, row, small_dataset


def test_positions_are_the_columns_values_in_its_shape(tmp_path: Path):
    """The view over the flat buffer must not forget that the row is a slice of a block."""
    view = DatasetFiles.open(small_dataset(tmp_path)).row(4)

    expected = np.array(row(4, num_patches=5)["audio_feats"], np.float16)
    np.testing.assert_array_equal(expected, view.positions())


def test_frames_are_the_patches_alone(tmp_path: Path):
    """Zeros of the prompt would be heard as a click before the singing."""
    frames = DatasetFiles.open(small_dataset(tmp_path)).row(4).frames()

    np.testing.assert_array_equal(np.full((5 * PATCH_SIZE, LATENT_DIM), 5, np.float16), frames)


def test_the_summary_leaves_the_zeros_of_the_prompt_out(tmp_path: Path):
    view = DatasetFiles.open(small_dataset(tmp_path)).row(1)

    assert LatentSummary((5, PATCH_SIZE, LATENT_DIM), 2.0, 0.0, 2.0, 2.0) == view.latent_summary()


def test_values_are_all_other_columns_in_order(tmp_path: Path):
    view = DatasetFiles.open(small_dataset(tmp_path)).row(0)

    assert [name for name in COLUMNS if name != "audio_feats"] == [name for name, _ in view.values()]
    assert row(0)["word"] == view.value("word")
