"""``AudioVaeEncoder``: an AudioVAE checkpoint on one device, behind the ``LatentEncoder`` protocol.

What a clip's latents are never depends on its batch mates, up to rounding: the encoder is causal. On a CPU the number of
clips in a batch does not even change bits: kernels round differently from 16 clips on (and, on some machines, for 1), so
a call is split into groups of at most 15 and a single clip is repeated to make two. What may change bits is the padded
length of a short clip: 0.5 s beside 3 s differs by 8e-7 relative, 0.3 % of the float16 cells, at VoxCPM2's size. So a
plan fixes its batches. A clip beyond ``max_whole_samples`` goes through in pairs of windows.

``Forward`` is the seam for the forms of one network: channels-last on a CPU, compiled where the plan says so; anything that
maps [B, 1, S] to [B, D, F].

Shapes: B clips, S padded samples, F latent frames, D latent dim.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ...core.errors import CheckpointError
from ...core.units import ceil_div, num_latent_frames, num_patches, padded_samples
from .audiovae.channels_last import ChannelsLastEncoder
from .audiovae.checkpoint import Checkpoint, hash_checkpoint, open_checkpoint
from .audiovae.receptive_field import decoder_context_frames
from .audiovae.weights import load_decoder, load_encoder
from .checkpoint_info import context_patches
from .compiled import WARM_UP_CLIPS, WARM_UP_PATCHES, compile_encoder, first_call
from .precision import set_cuda_precision, storage_dtype, strict_float32
from .probe_clips import probe_clips
from .protocol import EncoderInfo, Latents, Precision
from .windows import WINDOWS_PER_CALL, Window, cut_windows

Waveform = npt.NDArray[np.float32]
Forward = Callable[[Tensor], Tensor]

_MAX_CPU_CLIPS = 15
"""From 16 clips on the CPU's kernels round differently."""
_DECODE_FRAMES = 500
"""Latent frames decoded at a time; VoxCPM2's decoder holds about 1 GB for them."""


class AudioVaeEncoder:
    """A VAE on one device."""

    def __init__(
        self, info: EncoderInfo, checkpoint: Checkpoint, device: str, precision: Precision, *, compiled: bool = False
    ) -> None:
        """``compiled`` compiles at once, which may take a minute. Raises WorkerError if that fails."""
        self.info = info
        self._checkpoint = checkpoint
        self._device = torch.device(device)
        self._precision: Precision = precision
        self._dtype = storage_dtype(precision)
        self._decoder: Forward | None = None
        # a single clip is computed twice: for a batch of 1 a CPU has other kernels and the compiler another graph
        self._never_one = compiled or self._device.type == "cpu"
        network = self._network()
        self._forward: Forward = compile_encoder(network) if compiled else network
        if compiled:
            silence = np.zeros(WARM_UP_PATCHES * info.spec.patch_samples, np.float32)
            first_call(lambda: self._encode_group([silence] * WARM_UP_CLIPS))

    def _network(self) -> nn.Module:
        encoder = load_encoder(self._checkpoint).to(self._device, self._dtype)
        return ChannelsLastEncoder(encoder) if self._device.type == "cpu" else encoder

    def encode(self, waveforms: Sequence[Waveform]) -> list[Latents]:
        """See ``LatentEncoder.encode``."""
        latents: list[Latents] = []
        for group in self._groups(waveforms):
            windowed = len(group[0]) > self.info.max_whole_samples
            latents += self._to_latents(group, self._encode_group(group), windowed=windowed)
        return latents

    @property
    def min_window_samples(self) -> int:
        """See ``WindowedEncoder.min_window_samples``."""
        return max(1, 2 * context_patches(self._checkpoint.config)) * self.info.spec.patch_samples

    def encode_windowed(self, waveform: Waveform, window_samples: int) -> Latents:
        """See ``WindowedEncoder.encode_windowed``."""
        return self._to_latents([waveform], self._encode_windows(waveform, window_samples), windowed=True)[0]

    def encode_float32(self, waveforms: Sequence[Waveform]) -> list[npt.NDArray[np.float32]]:
        """The same frames [F, D] before the cast to float16."""
        frames: list[npt.NDArray[np.float32]] = []
        for group in self._groups(waveforms):
            mu_BFD = self._encode_group(group).cpu().numpy()
            frames += [mu_FD[: self._num_frames(wav)] for mu_FD, wav in zip(mu_BFD, group, strict=False)]
        return frames

    def measure_precision_error(self) -> float:
        """See ``MeasuredEncoder.measure_precision_error``: against the eager network in strict float32 on this device."""
        probes = probe_clips(self.info.spec)
        mine = np.concatenate(self.encode_float32(probes))
        with strict_float32(self._device.type, self._precision):
            strict = AudioVaeEncoder(self.info, self._checkpoint, str(self._device), "float32")
            exact = np.concatenate(strict.encode_float32(probes))
        return float(np.abs(mine - exact).max() / np.abs(exact).max())

    def decode(self, frames_FD: npt.NDArray[np.float16]) -> tuple[Waveform, int]:
        """See ``LatentEncoder.decode``. Long clips are decoded in pieces with left context."""
        if self._decoder is None:
            self._decoder = load_decoder(self._checkpoint).to(self._device, self._dtype)
        config = self._checkpoint.config
        context, pieces = decoder_context_frames(config), []
        for first in range(0, len(frames_FD), _DECODE_FRAMES):
            start = max(0, first - context)
            wav_S = self._decode_piece(self._decoder, frames_FD[start : first + _DECODE_FRAMES])
            pieces.append(wav_S[(first - start) * config.out_hop_length :])
        return np.concatenate(pieces or [np.zeros(0, np.float32)]), config.out_sample_rate

    def _groups(self, waveforms: Sequence[Waveform]) -> Iterator[Sequence[Waveform]]:
        """Parts of nearly equal size that are encoded together."""
        size = len(waveforms)
        limit = _MAX_CPU_CLIPS if self._device.type == "cpu" else max(size, 1)
        num_groups = ceil_div(size, limit)
        for i in range(num_groups):
            yield waveforms[i * size // num_groups : (i + 1) * size // num_groups]

    @torch.inference_mode()
    def _encode_group(self, waveforms: Sequence[Waveform]) -> Tensor:
        """Mean latents [B, F, D] float32 on the device, F of the longest; B may be one more than asked for."""
        longest = max(len(wav) for wav in waveforms)
        assert longest > 0, "a clip without samples has no latents"
        if longest > self.info.max_whole_samples:
            assert len(waveforms) == 1, "a clip that needs windows must come alone"
            return self._encode_windows(waveforms[0], self.info.max_whole_samples)
        repeat = len(waveforms) == 1 and self._never_one
        return self._mean(self._stage([*waveforms, *waveforms] if repeat else waveforms, longest))

    @torch.inference_mode()
    def _encode_windows(self, wav: Waveform, max_samples: int) -> Tensor:
        """[1, F, D] of one long clip, in windows of at most ``max_samples`` samples."""
        spec = self.info.spec
        windows = cut_windows(
            num_patches(len(wav), spec),
            context=context_patches(self._checkpoint.config),
            max_patches=max_samples // spec.patch_samples,
        )
        kept_FD: list[Tensor] = []
        for i in range(0, len(windows), WINDOWS_PER_CALL):
            pair = windows[i : i + WINDOWS_PER_CALL]
            mu_BFD = self._mean(self._stage([self._cut(wav, window) for window in pair], self._window_samples(pair[0])))
            kept_FD += [mu_FD[self._num_context_frames(window) :] for mu_FD, window in zip(mu_BFD, pair, strict=True)]
        return torch.cat(kept_FD)[None]

    def _cut(self, wav: Waveform, window: Window) -> Waveform:
        size = self.info.spec.patch_samples
        return wav[window.start * size : window.stop * size]

    def _window_samples(self, window: Window) -> int:
        return (window.stop - window.start) * self.info.spec.patch_samples

    def _num_context_frames(self, window: Window) -> int:
        return (window.keep_from - window.start) * self.info.spec.patch_size

    def _stage(self, waveforms: Sequence[Waveform], num_samples: int) -> Tensor:
        """Waveforms with zeros behind them, [B, S] on the device, S = ``num_samples`` up to a whole patch."""
        size = (len(waveforms), padded_samples(num_samples, self.info.spec))
        staged_BS = torch.zeros(size, pin_memory=self._device.type == "cuda")
        for row_S, wav in zip(staged_BS.numpy(), waveforms, strict=True):
            row_S[: len(wav)] = wav
        return staged_BS.to(self._device, non_blocking=True)

    def _mean(self, staged_BS: Tensor) -> Tensor:
        """[B, S] -> mean latents [B, F, D] float32."""
        return self._forward(staged_BS[:, None].to(self._dtype)).float().transpose(1, 2).contiguous()

    def _to_latents(self, waveforms: Sequence[Waveform], mu_BFD: Tensor, *, windowed: bool) -> list[Latents]:
        """Cut to each clip's own patches. Cast on the device: half as many bytes to move."""
        peaks_BF = mu_BFD.abs().amax(dim=2).cpu().numpy()
        half_BFD = mu_BFD.half().cpu().numpy()
        counts = [self._num_frames(wav) for wav in waveforms]
        return [Latents(half_BFD[i, :n], float(peaks_BF[i, :n].max()), windowed) for i, n in enumerate(counts)]

    def _num_frames(self, wav: Waveform) -> int:
        return num_latent_frames(len(wav), self.info.spec)

    @torch.inference_mode()
    def _decode_piece(self, decoder: Forward, frames_FD: npt.NDArray[np.float16]) -> Waveform:
        z_BDF = torch.from_numpy(frames_FD.astype(np.float32).T.copy())[None]
        return decoder(z_BDF.to(self._device, self._dtype))[0, 0].float().cpu().numpy()


def build_audio_vae(
    info: EncoderInfo, folder: Path, device: str, precision: Precision, *, compiled: bool = False
) -> AudioVaeEncoder:
    """Load the VAE of ``folder`` onto ``device``; on a CPU it computes in float32 whatever ``precision`` says.

    Raises:
        CheckpointError: the checkpoint is not, or no longer, the one that ``info`` describes.
        WorkerError: ``compiled`` was asked for and the compiler failed.
    """
    checkpoint = open_checkpoint(folder)
    if (found := hash_checkpoint(checkpoint)) != info.weights_hash:
        raise CheckpointError(
            f"{checkpoint.weights}: its hash is {found}, the plan was made with {info.weights_hash}",
            why="latents of two VAEs in one dataset can't be told apart later",
            fix="put the first checkpoint back, or start again with a new output_dir",
        )
    if device.startswith("cuda"):
        set_cuda_precision(precision)
    effective: Precision = precision if device.startswith("cuda") else "float32"
    return AudioVaeEncoder(info, checkpoint, device, effective, compiled=compiled)
