"""``prep tokenizer``: the tokenizer that the prompts' ids are of, for trainers to load."""

from pathlib import Path

import click

from ..core.errors import CheckpointError
from ..preprocess.encode.tiny_vae import TINY_FOLDER
from ..preprocess.score.tokenizer import SvsTokenizer
from .quantities import count


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("export_dir", type=click.Path(path_type=Path, file_okay=False))
def tokenizer(checkpoint: Path, export_dir: Path) -> None:
    """Save CHECKPOINT's tokenizer with the singing tokens added.

    CHECKPOINT is a checkpoint folder, or `tiny` for the bundled one. EXPORT_DIR is made if it is not there.
    """
    folder = TINY_FOLDER if str(checkpoint) == "tiny" else checkpoint
    if not (folder / "tokenizer.json").is_file():
        raise CheckpointError(
            f"{folder / 'tokenizer.json'} does not exist",
            why="the singing tokens are added to the checkpoint's own tokenizer",
            fix="give a folder with tokenizer.json and tokenizer_config.json as CHECKPOINT, or `tiny` for the bundled one",
        )
    built = SvsTokenizer.load(folder)
    export_dir.mkdir(parents=True, exist_ok=True)
    built.save(export_dir)
    click.echo(f"{export_dir}: tokenizer saved, {count(built.num_tokens, 'token')}, hash {built.hash}")
