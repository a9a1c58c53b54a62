"""``prep decode``: one row's latents back to sound."""

from pathlib import Path

import click

from ..loaders.dataset_files import DatasetFiles
from ..preprocess.decode_row import check_wav, decode_frames, save_wav, used_encoder
from .quantities import duration


@click.command()
@click.argument("out", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--row", type=click.IntRange(min=0), metavar="N", required=True, help="Row, as load_from_disk numbers them."
)
@click.option(
    "--wav", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", required=True, help="WAV to write."
)
@click.option(
    "--encoder-path",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="CHECKPOINT",
    help="Where the VAE's folder lies now, if it was moved.",
)
def decode(out: Path, row: int, wav: Path, encoder_path: Path | None) -> None:
    """Turn one row's latents back into a WAV file.

    OUT is an output folder of `prep svs`; its provenance.json names the VAE.
    """
    check_wav(wav)
    view = DatasetFiles.open(out).row(row)
    sound = decode_frames(view.frames(), used_encoder(out), encoder_path)
    save_wav(wav, sound)
    seconds = duration(len(sound.samples) / sound.sample_rate)
    click.echo(f"{wav}: {seconds} at {sound.sample_rate:,} Hz, row {row} ({view.value('item_name')})")
