"""The paper's model on a GPU, in twenty minutes: speed, share of the peak, memory; then its recipe, with STS.

    python -m benchmarks.gpu                                           # speed alone, on invented pairs
    python -m benchmarks.gpu --data pairs.tsv.xz --sts FOLDER          # and STS at each tenth of the training
    python -m benchmarks.gpu --device cpu --size tiny --seconds 5      # the same code where there is no GPU

First half of the time: one update of 25,000 tokens of `bgt-mean`, in bf16, by the library, by the straight form and by
the straight form through `torch.compile`; each in micro-batches of the size that is best for it of those that fit the
memory. Whole updates in turn, on the wall, the device waited for. The peak is that of a large product on this device.
Second half: the recipe `bgt` for as many updates as fit. Its rate over the step's says whether data keep up.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from benchmarks import straight
from benchmarks.forms import our_form, straight_form
from benchmarks.measure import Measurement, extra_memory, over, page, peak_memory
from benchmarks.workload import (
    DROPOUT,
    PAPER,
    STS_YEARS,
    UPDATE,
    Form,
    Pair,
    Size,
    SizedTokenizer,
    operations_of,
    our_batches,
    pairs_of,
    real_pairs,
    recipe_of,
    tokens_of,
    updates_of,
)
from bgt_core import evaluate, recipes
from bgt_core.data.batching import StepBatch, prefetch
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import Embedder
from bgt_core.evaluation.sts.files import read_sets
from bgt_core.evaluation.tasks.sts import Sts, StsSet, average
from bgt_core.models.bgt import BGT
from bgt_core.training.loop import Trainer, train_step
from bgt_core.training.schedule import learning_rate
from bgt_core.training.wiring import make_optimizer
from bgt_core.training.workers import SINGLE_PROCESS

READ = 300_000  # real pairs
PRECISION = "bf16"
TENTHS = 10


@dataclass(frozen=True)
class Scale:
    """What is run: a model, the tokens of an update, the sizes of micro-batches tried, the width of a large product."""

    size: Size
    update: int
    micro: tuple[int, ...]
    product: int


SCALES = {
    "paper": Scale(PAPER, UPDATE, (2_000, 6_000, 12_500, 25_000), 8_192),
    "tiny": Scale(
        Size(
            "d=16, 1+1 layers",
            {"model.d_model": 16, "model.encoder_layers": 1, "model.ffn_dim": 16, "model.heads": 2},
            vocab=400,
            ours=0,
            theirs=(),
        ),
        update=1_000,
        micro=(250, 500),
        product=128,
    ),
}


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("No GPU here: nothing measured.")
        return
    begun, scale = time.monotonic(), SCALES[options.size]
    fastest = 0.0
    for row, rate in speed(scale, device, options.rounds, begun + options.seconds / 2):
        fastest = max(fastest, rate)
        yield row
    if device.type == "cuda":
        torch.cuda.empty_cache()
    yield training(scale, device, options, begun + options.seconds, fastest)


def speed(scale: Scale, device: torch.device, most: int, until: float) -> Iterator[tuple[Measurement, float]]:
    """Each row of the step, with our tokens a second; fewer rounds than `most` where time is short."""
    recipe, pairs = recipe_of(scale.size), pairs_of(scale.size.vocab, scale.update)
    torch.manual_seed(0)
    model = recipe.build(SizedTokenizer(scale.size.vocab)).train().to(device)
    reference = straight.StraightBGT(model, DROPOUT).train()
    backend = "inductor" if device.type == "cuda" else "eager"
    compiled = torch.compile(reference, dynamic=True, backend=backend)
    makers: dict[str, Callable[[int], Form]] = {
        "ours": lambda tokens: our_form(model, recipe, pairs, tokens, PRECISION, device),
        "straight": lambda tokens: straight_form(reference, pairs, tokens, PRECISION, device),
        "compiled": lambda tokens: straight_form(reference, pairs, tokens, PRECISION, device, compiled),
    }
    forms, sizes = {}, {}
    for name, make in makers.items():
        sizes[name], forms[name] = fastest_that_fits(make, scale.micro, device)
    times: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(most):
        if number and time.monotonic() > until:
            break
        for name in list(forms)[:: 1 if number % 2 else -1]:
            times[name].append(seconds_of(forms[name], device))
    operations, peak = operations_of(model, pairs), peak_rate(scale.product, device)
    floor = f"{operations / 1e6:,.0f} MFLOP a token at {peak / 1e12:,.1f} TFLOP/s, {peak / operations:,.0f} tokens/s"
    spent = median(times["ours"]) / tokens_of(pairs)
    for peer, what in (("straight", "the straight form, bf16"), ("compiled", "the same by torch.compile")):
        yield (
            Measurement(
                work=f"training step on a GPU, {scale.size.name}, bf16, {sizes['ours']:,} tokens a micro-batch",
                against=f"{what}, {sizes[peer]:,}",
                ratios=over(times[peer], times["ours"]),
                target=">= 1",
                ours=f"{1 / spent:,.0f} tokens/s",
                peer=f"{tokens_of(pairs) / median(times[peer]):,.0f} tokens/s",
                error="as on a CPU",
                floor=floor,
                reached=operations / peak / spent,
                bottleneck=profile(lambda: forms["ours"].step(0)),
            ),
            1 / spent,
        )
    smallest = scale.micro[0]
    memory = [peak_bytes(makers[name](smallest), device) for name in ("ours", "straight")]
    yield extra_memory(f"{smallest:,} tokens a micro-batch", "the straight form", *memory), 1 / spent


def fastest_that_fits(make: Callable[[int], Form], sizes: Sequence[int], device: torch.device) -> tuple[int, Form]:
    """The micro-batch size whose second update takes least, and its form; larger ones than fit are left out."""
    seconds: dict[int, float] = {}
    for tokens in sizes:
        try:
            form = make(tokens)
            seconds_of(form, device)  # warm up and compile
            seconds[tokens] = seconds_of(form, device)
        except torch.OutOfMemoryError:
            break
    best = min(seconds, key=seconds.__getitem__)
    return best, make(best)


def seconds_of(form: Form, device: torch.device) -> float:
    """Of a whole update, on the wall."""
    begun = clock(device)
    for number in range(len(form.tokens)):
        form.step(number)
    form.finish()
    return clock(device) - begun


def clock(device: torch.device) -> float:
    """Seconds, when the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def peak_rate(width: int, device: torch.device) -> float:
    """Operations a second of a square product in bf16, the best of 10."""
    left, right = torch.randn(2, width, width, device=device, dtype=torch.bfloat16)
    best = float("inf")
    for _ in range(10):
        begun = clock(device)
        left @ right
        best = min(best, clock(device) - begun)
    return 2 * width**3 / best


def profile(work: Callable[[], object], most: int = 4) -> str:
    """Where the time of one call goes: the operators with the largest share, "mm 61%, copy_ 14%"; of a GPU's time where
    it computes on one."""
    on_gpu = torch.cuda.is_initialized()
    activities = [torch.profiler.ProfilerActivity.CPU, *([torch.profiler.ProfilerActivity.CUDA] if on_gpu else [])]
    with torch.profiler.profile(activities=activities) as seen:
        work()
    own = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    shares = {event.key: getattr(event, own) for event in seen.key_averages()}
    whole = sum(shares.values())
    largest = sorted(shares, key=shares.__getitem__, reverse=True)[:most]
    return ", ".join(f"{name.removeprefix('aten::')} {100 * shares[name] / whole:.0f}%" for name in largest)


def peak_bytes(form: Form, device: torch.device) -> int:
    """What a micro-batch takes beside weights and gradients."""
    form.step(0)
    if device.type != "cuda":
        return peak_memory(lambda: form.step(0))
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    form.step(0)
    return torch.cuda.max_memory_allocated(device) - before


def training(
    scale: Scale, device: torch.device, options: argparse.Namespace, until: float, fastest: float
) -> Measurement:
    """The recipe `bgt` until that time; `fastest` are the tokens a second of the step alone."""
    tokenizer, updates = data_of(scale, options)
    sets = read_sets(options.sts, STS_YEARS) if options.sts and options.data else []
    settings = {"data.vocab_size": tokenizer.vocab_size, "train.precision": PRECISION, **scale.size.arguments}
    recipe = recipes.build("bgt", {**settings, "train.micro_tokens": scale.micro[-2]})
    config = recipe.train
    torch.manual_seed(config.seed)
    model = recipe.build(tokenizer).to(device).train()
    optimizer = make_optimizer(model, config)
    trainer = Trainer(model, optimizer, recipe.objective, config, device, SINGLE_PROCESS)

    def make(step: int) -> StepBatch:
        pairs = updates[step % len(updates)]
        update = StepBatch(len(pairs), dict(enumerate(our_batches(pairs, config.micro_tokens))))
        return update.pin() if device.type == "cuda" else update

    part = (until - time.monotonic()) / TENTHS
    coming = prefetch(make, range(10**9))
    rates, steps, score = [], itertools.count(), ""
    for tenth in range(1, TENTHS + 1):
        begun, tokens, loss = clock(device), 0, 0.0
        while not tokens or time.perf_counter() - begun < part:
            step = next(steps)
            update = next(coming)
            optimizer.param_groups[0]["lr"] = learning_rate(step, step + 1, config)
            sums = train_step(trainer, step, update)
            tokens, loss = tokens + sums.tokens, sums.terms["loss"] / update.pairs
        rates.append(tokens / (clock(device) - begun))
        score = f", STS {sts_of(model, tokenizer, sets):.1f}" if sets else ""
        print(f"{tenth}/{TENTHS}: update {step + 1}, loss {float(loss):.1f} a pair, {rates[-1]:,.0f} tokens/s{score}")
    return Measurement(
        work=f"the recipe `bgt`, {scale.size.name}, {step + 1} updates",
        against="its step alone",
        ratios=[rate / fastest for rate in rates[1:]],
        target=">= 0.85",
        ours=f"{median(rates):,.0f} tokens/s{score}",
        peer=f"{fastest:,.0f} tokens/s",
        error="the same step, with samples for means",
        floor="the step alone",
        reached=median(rates) / fastest,
        bottleneck="see the step",
    )


def data_of(scale: Scale, options: argparse.Namespace) -> tuple[Tokenizer, list[list[Pair]]]:
    """A tokenizer and updates: real ones where there are any."""
    if options.data:
        tokenizer, pairs, _ = real_pairs(options.data, READ, 0, scale.size.vocab)
        return tokenizer, updates_of(pairs, scale.update)
    return SizedTokenizer(scale.size.vocab), [pairs_of(scale.size.vocab, scale.update, seed) for seed in range(8)]


def sts_of(model: BGT, tokenizer: Tokenizer, sets: Sequence[StsSet]) -> float:
    """The average of `STS_YEARS`; its time counts as training's."""
    embedder = Embedder(model, tokenizer, ("en", "fr"), PRECISION)
    score = average(evaluate(Sts(latent="semantic"), embedder, sets, resamples=100))
    model.train()
    return score


def own_options(arguments: argparse.ArgumentParser) -> None:
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--seconds", type=float, default=1_100, help="time limit, not counting the reading of data")
    arguments.add_argument("--size", choices=SCALES, default="paper")


if __name__ == "__main__":
    page(rows, __doc__, own_options)
