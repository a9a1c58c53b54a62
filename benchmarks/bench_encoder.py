"""How much faster is the encoder of VoxCPM2's size than an eager one with weight norm, on one thread?

Method: random weights, the same batch (4 clips of 8 s unless told otherwise) in four processes of one thread each, which take
turns, round after round, since machines are shared:

    reference   conv1d with weight norm as a parametrization, both heads, snake as written, the C library's allocator as it is
    folded      our modules in conv1d's layout: weight norm folded, one head, snake in place, freed memory kept
    eager       what a plan calls eager on a CPU: the same as conv2d on channels-last memory
    compiled    what a plan calls compiled

Wall and CPU seconds are told apart: on a shared machine the ratio of CPU seconds is the one to quote. The relative error
is the largest difference from ``folded`` in float64, over its largest value, on two clips of 1 s.
Command: ``python benchmarks/bench_encoder.py [rounds] [clips] [seconds]``; the first run compiles for some minutes.
Result: benchmarks/results/encoder_2core_202612.md.
"""

import json
import multiprocessing
import resource
import statistics
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from side_by_side import machine

from latentprep.preprocess.encode.audiovae.config import AudioVaeConfig

CONFIG = AudioVaeConfig(
    version=2,
    encoder_dim=128,
    encoder_rates=(2, 5, 8, 8),
    latent_dim=64,
    decoder_dim=2048,
    decoder_rates=(8, 6, 5, 2, 2, 2),
    sample_rate=16_000,
    out_sample_rate=48_000,
    sr_bin_boundaries=(20_000, 30_000, 40_000),
    patch_size=4,
)
WAYS = ("reference", "folded", "eager", "compiled")


def random_encoder(*, with_logvar: bool) -> Any:
    """Our encoder, seeded weights of a size that keeps activations near 1."""
    import torch

    from latentprep.preprocess.encode.audiovae.encoder import Encoder

    torch.manual_seed(0)
    encoder = Encoder(CONFIG, with_logvar=with_logvar)
    for name, parameter in encoder.named_parameters():
        values = torch.randn(parameter.shape)
        if name.endswith("alpha"):
            values = values.abs() + 0.5
        elif name.endswith("bias"):
            values *= 0.02
        else:
            values *= 0.7 / (parameter.shape[1] * parameter.shape[2]) ** 0.5
        parameter.data = values
    return encoder.eval().requires_grad_(False)


def reference(encoder: Any) -> Any:
    """[B, 1, S] -> [B, D, F] as a plain PyTorch module would: every call normalises weights and computes both heads."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    from latentprep.preprocess.encode.audiovae.layers import Conv

    for layer in encoder.modules():
        if isinstance(layer, Conv):
            nn.utils.parametrizations.weight_norm(layer)

    def snake(layer: Any, x: Any) -> Any:
        return x + (layer.alpha + 1e-9).reciprocal() * torch.sin(layer.alpha * x).pow(2)

    def forward(x: Any) -> Any:
        entry, *blocks = encoder.block
        x = entry(F.pad(x, (6, 0)))
        for block in blocks:
            *units, last, downsample = block.block
            for unit in units:
                first, depthwise, second, pointwise = unit.block
                y = depthwise(F.pad(snake(first, x), (unit.padding, 0)))
                x = x + pointwise(snake(second, y))
            x = downsample(F.pad(snake(last, x), (block.padding, 0)))
        mean = encoder.fc_mu(F.pad(x, (2, 0)))
        encoder.fc_logvar(F.pad(x, (2, 0)))
        return mean

    return forward


def build(way: str) -> Any:
    """The callable of one way, in a process that is set up for it."""
    from latentprep.preprocess.encode.audiovae.channels_last import ChannelsLastEncoder
    from latentprep.preprocess.encode.compiled import compile_encoder

    encoder = random_encoder(with_logvar=way == "reference")
    if way == "reference":
        return reference(encoder)
    if way == "folded":
        return encoder
    return compile_encoder(ChannelsLastEncoder(encoder)) if way == "compiled" else ChannelsLastEncoder(encoder)


def serve(way: str, pipe: Connection, clips: int, seconds: float) -> None:
    """Load, say so, then encode once for every message."""
    if way != "reference":
        from latentprep.preprocess.encode.cpu_tuning import tune_cpu

        tune_cpu()
    import torch

    torch.set_num_threads(1)
    began = time.perf_counter()
    forward = build(way)
    generator = torch.Generator().manual_seed(1)
    with torch.inference_mode():
        batch = 0.1 * torch.randn(clips, 1, int(seconds * CONFIG.sample_rate), generator=generator)
        short = 0.1 * torch.randn(2, 1, CONFIG.sample_rate, generator=generator)
        made = forward(short).double()
        exact = random_encoder(with_logvar=False).double()(short.double())
        forward(batch)
        facts = {
            "load_seconds": round(time.perf_counter() - began, 1),
            "relative_error": float(f"{((made - exact).abs().max() / exact.abs().max()).item():.3g}"),
        }
        pipe.send(facts)
        while pipe.recv():
            before, wall = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            forward(batch)
            wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_SELF)
            pipe.send((wall, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime))


def rate(audio: float, values: list[float]) -> dict[str, float]:
    """Times real time: median, slowest, fastest."""
    rates = sorted(audio / value for value in values)
    return {
        "median": round(audio / statistics.median(values), 2),
        "min": round(rates[0], 2),
        "max": round(rates[-1], 2),
    }


Times = tuple[float, float, float]
"""Seconds of one call: wall, user, system."""


def measure(rounds: int, clips: int, seconds: float) -> tuple[dict[str, list[Times]], dict[str, Any]]:
    """Times of every way, round by round in turn, and what each way says of itself; a process a way."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    facts: dict[str, Any] = {}
    for way in WAYS:
        pipes[way], theirs = context.Pipe()
        context.Process(target=serve, args=(way, theirs, clips, seconds), daemon=True).start()
        facts[way] = pipes[way].recv()
    taken: dict[str, list[Times]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS:
            pipes[way].send(True)
            taken[way].append(pipes[way].recv())
        print(f"round {number + 1}:", {way: taken[way][-1] for way in WAYS}, file=sys.stderr, flush=True)
    for pipe in pipes.values():
        pipe.send(False)
    return taken, facts


def rates_of(taken: list[Times], audio: float) -> dict[str, Any]:
    """Times real time, by wall clock and by CPU, and the share of the CPU time that the system took."""
    cpu = [user + system for _, user, system in taken]
    return {
        "wall_rate": rate(audio, [wall for wall, _, _ in taken]),
        "cpu_rate": rate(audio, cpu),
        "system_share": round(sum(times[2] for times in taken) / sum(cpu), 3),
    }


def ratio_of(reference: list[Times], ours: list[Times]) -> dict[str, float]:
    """How many times as fast, by the median of the rounds."""
    pairs = list(zip(reference, ours, strict=True))
    return {
        "cpu": round(statistics.median(sum(a[1:]) / sum(b[1:]) for a, b in pairs), 2),
        "wall": round(statistics.median(a[0] / b[0] for a, b in pairs), 2),
    }


def main() -> None:
    given = [float(argument) for argument in sys.argv[1:]]
    rounds, clips, seconds = (*given, *(5, 4, 8)[len(given) :])
    taken, facts = measure(int(rounds), int(clips), seconds)
    for way in WAYS:
        facts[way] |= rates_of(taken[way], clips * seconds)
    result = {
        "benchmark": "encoder",
        "rounds": int(rounds),
        "clips": int(clips),
        "seconds": seconds,
        "ratio_to_reference": {way: ratio_of(taken["reference"], taken[way]) for way in WAYS[1:]},
        **facts,
        **machine(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
