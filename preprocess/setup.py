"""What every kind of run has in hand before it touches the output folder: settings, encoder, devices, paths, all checked."""

from dataclasses import dataclass

from ..core.errors import ConfigError
from ..core.paths import OutputPaths
from .config import RunConfig
from .dispatch.devices import Devices
from .encode.compile_choice import kept_form
from .encode.protocol import EncoderInfo
from .encode.registry import describe
from .latent_settings import latent_settings
from .output_folder import check_output
from .plan.identity import Identity
from .reuse_source import check_reuse, with_form_of_source


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSetup:
    """A run that may begin."""

    config: RunConfig
    info: EncoderInfo
    devices: Devices
    paths: OutputPaths


def set_up(config: RunConfig, devices: Devices) -> RunSetup:
    """Describe the encoder and check what can be checked without the plan.

    Raises PrepError: a checkpoint that can't be read, another sample rate, a folder of others, latents that can't be
    reused.
    """
    info = describe(config.encoder, devices.kind)
    check_sample_rate(config, info)
    paths = OutputPaths(config.output_dir)
    check_output(paths)
    if (source := config.reuse) is not None:
        config = with_form_of_source(config, source)
        form = kept_form(config.encoder, info, "eager")
        check_reuse(source, paths.root, latent_settings(Identity.of(config, info, "", devices.kind, form), info))
    return RunSetup(config=config, info=info, devices=devices, paths=paths)


def check_sample_rate(config: RunConfig, info: EncoderInfo) -> None:
    """The sample rate is the checkpoint's. Raises ConfigError if the configuration says otherwise."""
    if config.sample_rate is not None and config.sample_rate != info.spec.sample_rate:
        raise ConfigError(
            f"sample_rate is {config.sample_rate} Hz, but the VAE of {info.checkpoint} takes {info.spec.sample_rate} Hz",
            why="audio at another rate would be encoded at a wrong pitch and speed, without an error",
            fix=f"leave sample_rate out, or set it to {info.spec.sample_rate}",
        )
