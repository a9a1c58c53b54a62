"""``prep tokenizer``: the tokenizer that the prompts' ids are of, for trainers to load."""

from pathlib import Path

import click

from ..preprocess.encode.tiny_vae import TINY_FOLDER
from ..preprocess.score.tokenizer import SvsTokenizer


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("export_dir", type=click.Path(path_type=Path, file_okay=False))
def tokenizer(checkpoint: Path, export_dir: Path) -> None:
    """Save CHECKPOINT's tokenizer with the singing tokens added.

    CHECKPOINT is a checkpoint folder, or `tiny` for the bundled one. EXPORT_DIR is made if it is not there.
    """
    folder = TINY_FOLDER if str(checkpoint) == "tiny" else checkpoint
    built = SvsTokenizer.load(folder)
    export_dir.mkdir(parents=True, exist_ok=True)
    built.save(export_dir)
    click.echo(f"{export_dir}: tokenizer {built.hash}")
