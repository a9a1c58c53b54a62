"""``prep demo``: a corpus to try the tool with, synthesized on the spot."""

import shlex
from pathlib import Path

import click

from ..preprocess.synth.demo_corpus import DemoCorpus, write_demo_corpus


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another seed, other songs.")
def demo(folder: Path, seed: int) -> None:
    """Write a small synthetic corpus and its prep.yaml into FOLDER.

    FOLDER may be missing, empty, or an earlier demo. Paths in its prep.yaml are relative to the current folder.
    """
    click.echo(demo_text(write_demo_corpus(folder, seed=seed)))


def demo_text(corpus: DemoCorpus) -> str:
    """What was written, and the command that makes shards of it."""
    faults = "\n".join(f"  {fault.dataset_name}: {fault.item_name} ({fault.code})" for fault in corpus.faults)
    return (
        f"{corpus.root}: {len(corpus.files)} clips, {corpus.seconds:.0f} s of synthesized singing in three corpora\n"
        f"{len(corpus.faults)} more clips are faulty on purpose; the run will list them and go on:\n{faults}\n"
        f"next: prep svs --config {quoted(corpus.config_path)} --device cpu --workers 2"
    )


def quoted(path: Path) -> str:
    """``path`` as a shell takes it."""
    return shlex.quote(str(path))
