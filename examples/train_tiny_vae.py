"""Train the small VAE that lies in the package (encoder.name: tiny).

    python examples/train_tiny_vae.py --minutes 40 --out preprocess/encode/tiny

An AudioVAE V1, on synthesized singing alone, with one thread. It begins with a closed-form linear codec, which follows
the melody before the first step; training adds the timbre above 1 kHz. No discriminator: log-magnitude spectra at five
resolutions and a mel spectrum shape the timbre, a wave loss keeps the phase of the low partials, and with it the pitch.
config.json and audiovae.safetensors (float16) are written at every check. Data and first weights depend on the seed; how
many steps fit into the minutes, on the machine.

Shapes: B clips, S samples, D latent dim, F latent frames, K frequency bins.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from linear_codec import fit_linear_codec, write_linear_codec
from melody import RATE, Take, melody_accuracy
from safetensors.torch import save_file
from torch import Tensor, nn

from latentprep.preprocess.encode.audiovae.config import AudioVaeConfig, read_config
from latentprep.preprocess.encode.audiovae.decoder import Decoder
from latentprep.preprocess.encode.audiovae.encoder import Encoder
from latentprep.preprocess.encode.cpu_tuning import tune_cpu
from latentprep.preprocess.synth.songs import LANGUAGES, random_score
from latentprep.preprocess.synth.timbre import VOICES
from latentprep.preprocess.synth.voice import sing

CONFIG = {
    "architecture": "voxcpm",
    "patch_size": 4,
    "feat_dim": 64,
    "audio_vae_config": {
        "encoder_dim": 16,
        "encoder_rates": [2, 5, 8, 8],
        "latent_dim": 64,
        "decoder_dim": 192,
        "decoder_rates": [8, 8, 5, 2],
        "depthwise": True,
        "sample_rate": RATE,
        "use_noise_block": False,
    },
}
STFT_SIZES = (128, 256, 512, 1024, 2048)
KL_WEIGHT = 1e-4
WAVE_WEIGHT = 1.0
MEL_WEIGHT = 1.0
LEARNING_RATE = (6e-4, 2e-5)
"""At the beginning and, along a cosine, at the end."""


class TinyVae(nn.Module):
    """Encoder with both heads, and decoder."""

    def __init__(self, config: AudioVaeConfig) -> None:
        super().__init__()
        self.encoder = Encoder(config, with_logvar=True)
        self.decoder = Decoder(config)
        self.features, self.decode = self.encoder.features, self.decoder.forward

    def compile_training(self) -> None:
        """Compile what training calls; evaluation, with its many lengths, stays eager."""
        self.features, self.decode = torch.compile(self.features), torch.compile(self.decode)

    def forward(self, wav_BS: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """[B, S] -> reconstruction [B, S] from a sampled latent, and the mean KL divergence from a unit normal."""
        features = self.features(wav_BS[:, None])
        assert self.encoder.fc_logvar is not None
        mu, logvar = self.encoder.fc_mu(features), self.encoder.fc_logvar(features).clamp(-12, 4)
        noise = torch.randn(mu.shape, generator=generator)
        kl = 0.5 * (mu.square() + logvar.exp() - 1 - logvar).mean()
        return self.decode(mu + (0.5 * logvar).exp() * noise)[:, 0], kl

    @torch.no_grad()
    def round_trip(self, wave: np.ndarray) -> np.ndarray:
        """[S] -> [S] through the mean latent in float16, as a row stores it."""
        padded = np.pad(wave, (0, -len(wave) % 2560))
        mu = self.encoder(torch.from_numpy(padded)[None, None])
        return self.decoder(mu.half().float())[0, 0, : len(wave)].numpy()


def initialise(model: TinyVae, config: AudioVaeConfig, seed: int) -> None:
    """Begin with the best linear codec of some minutes of the data (linear_codec.py)."""
    rng = np.random.default_rng(seed + 1)
    waves = [random_take(rng, 8.0).wave for _ in range(100)]
    delay = sum(rate % 2 * math.prod(config.encoder_rates[:i]) for i, rate in enumerate(config.encoder_rates))
    codec = fit_linear_codec(waves, hop=config.hop_length, dim=config.latent_dim, delay=delay)
    write_linear_codec(model.encoder, model.decoder, codec)
    assert model.encoder.fc_logvar is not None
    nn.init.zeros_(model.encoder.fc_logvar.weight)
    nn.init.constant_(model.encoder.fc_logvar.bias, -5.0)


def random_take(rng: np.random.Generator, seconds: float) -> Take:
    """A clip of a random voice in a random language, within the voice's compass."""
    voice = VOICES[str(rng.choice(list(VOICES)))]
    language = LANGUAGES[int(rng.integers(len(LANGUAGES)))]
    score = random_score(rng, language, seconds=seconds, compass=(voice.low, voice.high))
    return Take(score, sing(score, sample_rate=RATE, voice=voice, rng=rng))


def crops(rng: np.random.Generator, *, batch: int, seconds: float) -> Iterator[Tensor]:
    """Endless batches [B, S] cut from a pool of 60 clips, one of which is sung anew for each batch; random gain."""
    pool = [random_take(rng, 8.0).wave for _ in range(60)]
    size = int(seconds * RATE) // 2560 * 2560
    while True:
        pool[int(rng.integers(len(pool)))] = random_take(rng, 8.0).wave
        cuts = []
        for index in rng.integers(len(pool), size=batch):
            start = int(rng.integers(len(pool[index]) - size))
            cuts.append(pool[index][start : start + size] * rng.uniform(0.4, 1.15))
        yield torch.from_numpy(np.stack(cuts).astype(np.float32))


class SpectralLoss(nn.Module):
    """Distance of two waveforms in log-magnitude spectra of several resolutions, in a mel spectrum, and as waves."""

    def __init__(self) -> None:
        super().__init__()
        self.windows = [torch.hann_window(size) for size in STFT_SIZES]
        self.mel_MK = mel_filters(80, 1024)

    def forward(self, made_BS: Tensor, true_BS: Tensor) -> Tensor:
        loss = WAVE_WEIGHT * self._wave(made_BS, true_BS)
        for window in self.windows:
            made, true = self._magnitude(made_BS, window), self._magnitude(true_BS, window)
            loss = loss + (made.log() - true.log()).abs().mean() / len(STFT_SIZES)
            loss = loss + (made - true).norm() / true.norm() / len(STFT_SIZES)
            if len(window) == 1024:
                loss = loss + MEL_WEIGHT * ((self.mel_MK @ made).log() - (self.mel_MK @ true).log()).abs().mean()
        return loss

    @staticmethod
    def _wave(made_BS: Tensor, true_BS: Tensor) -> Tensor:
        """Root of the error's share of the energy, so that quiet clips count as much as loud ones."""
        energy_B = true_BS.square().mean(1) + 1e-4
        return ((made_BS - true_BS).square().mean(1) / energy_B + 1e-6).sqrt().mean()

    @staticmethod
    def _magnitude(wav_BS: Tensor, window: Tensor) -> Tensor:
        size = len(window)
        spectrum = torch.stft(wav_BS, size, size // 4, window=window, return_complex=True)
        return (spectrum.real.square() + spectrum.imag.square() + 1e-5 * size / 1024).sqrt()


def mel_filters(num_bands: int, size: int) -> Tensor:
    """Triangles on the mel scale, [M, K]; O'Shaughnessy's formula."""
    edges = 700 * (10 ** (np.linspace(0, 2595 * math.log10(1 + RATE / 2 / 700), num_bands + 2) / 2595) - 1)
    freqs = np.linspace(0, RATE / 2, size // 2 + 1)
    rise = (freqs - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - freqs) / (edges[2:] - edges[1:-1])[:, None]
    filters = np.clip(np.minimum(rise, fall), 1e-4, None)
    return torch.from_numpy((filters / filters.sum(1, keepdims=True)).astype(np.float32))


def checkpoint_state(model: TinyVae) -> dict[str, Tensor]:
    """State in the checkpoint's spelling: each weight as direction ``weight_v`` and length ``weight_g``; float16."""
    state: dict[str, Tensor] = {}
    for key, value in model.state_dict().items():
        if key.endswith(".weight"):
            state[f"{key}_v"] = value
            state[f"{key}_g"] = value.half().float().norm(dim=(1, 2), keepdim=True)
        else:
            state[key] = value
    return {key: value.half().contiguous() for key, value in state.items()}


def save(model: TinyVae, folder: Path) -> None:
    write_config(folder)
    path = folder / "audiovae.safetensors"
    save_file(checkpoint_state(model), path)
    path.chmod(0o644)  # safetensors makes files that only their owner can read


def write_config(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")


def evaluate(model: TinyVae, takes: list[Take]) -> dict[str, float]:
    """Figures on clips that were not trained on."""
    waves = [model.round_trip(take.wave) for take in takes]
    right, voiced = melody_accuracy(takes, waves)
    errors = [np.square(a - b.wave).sum() / np.square(b.wave).sum() for a, b in zip(waves, takes, strict=True)]
    spectra = [_mel_error_db(a, b.wave) for a, b in zip(waves, takes, strict=True)]
    snr = float(-10 * np.log10(np.mean(errors)))
    return {"f0_within_50_cents": right, "voiced": voiced, "snr_db": snr, "mel_error_db": float(np.mean(spectra))}


def _mel_error_db(made: np.ndarray, true: np.ndarray) -> float:
    """Mean absolute difference of two mel spectra, floor at -60 dB below the loudest band."""
    window, filters = torch.hann_window(1024), mel_filters(80, 1024)
    powers = [
        filters @ torch.stft(torch.from_numpy(wave), 1024, 256, window=window, return_complex=True).abs().square()
        for wave in (made, true)
    ]
    floor = 1e-6 * powers[1].max()
    return float((10 * (powers[0] + floor).log10() - 10 * (powers[1] + floor).log10()).abs().mean())


def learning_rate(progress: float) -> float:
    """Cosine from the first to the second of LEARNING_RATE; a short ramp in front."""
    high, low = LEARNING_RATE
    return min(1.0, 100 * progress + 0.05) * (low + (high - low) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0))))


def train(options: argparse.Namespace) -> None:
    tune_cpu()
    torch.manual_seed(options.seed)
    write_config(options.out)
    config = read_config(options.out)
    model = TinyVae(config)
    initialise(model, config, options.seed)
    held_out = [random_take(np.random.default_rng(1000 + i), 6.0) for i in range(8)]
    report("linear codec", model, held_out)
    save(model, options.out)
    if options.minutes:
        if options.compile:
            model.compile_training()
        fit(model, held_out, options)


def report(title: str, model: TinyVae, held_out: list[Take]) -> None:
    figures = {key: round(value, 4) for key, value in evaluate(model, held_out).items()}
    print(title, figures, flush=True)


def fit(model: TinyVae, held_out: list[Take], options: argparse.Namespace) -> None:
    """Train until the minutes are over; report and save at every check and at the end."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.8, 0.99))
    noise, loss_of = torch.Generator().manual_seed(options.seed), SpectralLoss()
    start, next_check = time.monotonic(), options.check_minutes * 60
    for step, wav_BS in enumerate(crops(np.random.default_rng(options.seed), batch=options.batch, seconds=1.0)):
        elapsed = time.monotonic() - start
        is_over = elapsed > options.minutes * 60
        if elapsed > next_check or is_over:
            next_check += options.check_minutes * 60
            report(f"{elapsed / 60:.1f} min, step {step}", model, held_out)
            save(model, options.out)
        if is_over:
            return
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(elapsed / (options.minutes * 60))
        made_BS, kl = model(wav_BS, noise)
        loss = loss_of(made_BS, wav_BS) + KL_WEIGHT * kl
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
        if step % 50 == 0:
            print(f"{elapsed:6.0f} s  step {step}  loss {loss.item():.3f}  kl {kl.item():.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the small VAE that lies in the package.")
    parser.add_argument("--minutes", type=float, default=40.0, help="0 writes the linear codec")
    parser.add_argument("--compile", action="store_true", help="twice as fast, after 3 minutes; needs g++")
    parser.add_argument("--check-minutes", type=float, default=4.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=8)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
