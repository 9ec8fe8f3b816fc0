"""Small updates, as a laptop trains: 2,000 tokens each; what a second core gives, and another allocator.

A small update pays what every update pays (making the batch, casts of weights, clipping, the optimiser, Python) for
fewer tokens: its rate is compared with that of a large update of the same model, both through `training.loop`, batches
made within the time. `bgt-plus` at d=256 with 2+1 layers and one shared table of 8,000 tokens.

Two cores against one are two runs of `bgt train`, which chooses for itself how to use what it is given: one is held to
one core, the other to two. Timed on the wall: the machine must be idle. The first report of each run, in which it warms
up, does not count. Memory is that of a run on one core, which grows only if something is kept of each update.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from ctypes.util import find_library
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from torch import nn

from benchmarks.measure import Measurement, clock_of, over, page, product_rate, profile, whole_command
from benchmarks.workload import Pair, SizedTokenizer, operations_of, our_batches, pairs_of, sentences, tokens_of
from bgt_core import recipes
from bgt_core.contracts import EOS
from bgt_core.data.batching import StepBatch
from bgt_core.data.text import Tokenizer
from bgt_core.training.loop import Trainer, train_step
from bgt_core.training.wiring import make_optimizer
from bgt_core.training.workers import SINGLE_PROCESS

VOCAB, UPDATE, LARGE, MICRO = 8_000, 2_000, 12_000, 4_000
SETTINGS = {
    "data.vocab_size": VOCAB,
    "model.d_model": 256,
    "model.encoder_layers": 2,
    "model.ffn_dim": 256,
    "model.tie_embeddings": True,
}
SHORT = {lang: [4, EOS] for lang in ("en", "fr")}
LONG = 24  # updates of the runs whose allocators are compared: memory fragments with time
FEW, MANY = 25, 250  # updates of the runs whose memory is compared

RUNS = {"2,000": (UPDATE, 48), "12,000": (LARGE, 8)}  # tokens an update, and updates of a run of `bgt train`: on two
# cores too it takes more than the ten seconds between two reports


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    for precision, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        yield small_updates(precision, dtype, options)
    with tempfile.TemporaryDirectory() as folder:
        data, tokenizer = text(Path(folder))
        settings = {
            name: {**SETTINGS, "train.batch_tokens": tokens, "train.micro_tokens": min(tokens, MICRO)}
            for name, (tokens, _) in RUNS.items()
        }
        yield memory(settings["2,000"], data, tokenizer)
        if library := find_library("jemalloc"):
            yield allocator(settings["12,000"], library, data, tokenizer, options.rounds)
        if len(available()) < 2:
            print("One core here: nothing to compare two with.")
            return
        for name, (_, updates) in RUNS.items():
            yield two_cores(name, settings[name], updates, data, tokenizer, options.rounds)


def small_updates(precision: str, dtype: torch.dtype, options: argparse.Namespace) -> Measurement:
    clock = clock_of(options.threads)
    torch.manual_seed(0)
    recipe = recipes.build("bgt-plus", {**SETTINGS, "train.precision": precision})
    model = recipe.build(SizedTokenizer(VOCAB)).train()
    optimizer = make_optimizer(model, recipe.train)
    trainer = Trainer(model, optimizer, recipe.objective, recipe.train, torch.device("cpu"), SINGLE_PROCESS)

    def seconds(pairs: Sequence[Pair], micro: int) -> float:
        begun = clock()
        train_step(trainer, 1, StepBatch(len(pairs), dict(enumerate(our_batches(pairs, micro)))))
        return clock() - begun

    draws = [pairs_of(VOCAB, UPDATE, seed) for seed in range(3 * options.rounds)]
    large = pairs_of(VOCAB, LARGE, seed=len(draws))
    for pairs, micro in ((draws[0], UPDATE), (large, MICRO)):
        seconds(pairs, micro)
    small, slow, empty = [], [], []
    for number in range(options.rounds):
        three = draws[3 * number : 3 * number + 3]
        small.append(sum(seconds(pairs, UPDATE) for pairs in three) / sum(map(tokens_of, three)))
        slow.append(seconds(large, MICRO) / tokens_of(large))
        empty.append(seconds([SHORT], MICRO))
    operations = operations_of(model, draws[0])
    floor = operations / product_rate(dtype, options.threads)
    update = median(small) * sum(map(tokens_of, draws)) / len(draws)
    parts = fixed_costs(model, optimizer, recipe.train.clip, draws[0], dtype, clock)
    costs = ", ".join(f"{name} {1e3 * spent:.0f} ms" for name, spent in parts.items())
    shares = [profile(lambda pairs=pairs: seconds(pairs, UPDATE)) for pairs in ([SHORT], draws[0])]
    return Measurement(
        work=f"updates of 2,000 tokens, bgt-plus, d=256, 2+1 layers, one table of 8k, {precision}",
        against=f"updates of 12,000 in micro-batches of {MICRO:,}, tokens a second",
        ratios=over(slow, small),
        target=">= 0.9",
        ours=f"{1 / median(small):,.0f} tokens/s, {1e3 * update:.0f} ms an update",
        peer=f"{1 / median(slow):,.0f} tokens/s",
        error="the same step",
        floor=f"{operations / 1e6:,.0f} MFLOP a token, {1 / floor:,.0f} tokens/s",
        reached=floor / median(small),
        bottleneck=f"{shares[1]}; fixed, an update of one short pair: {1e3 * median(empty):.0f} ms, of which {costs}; "
        f"of its operators {shares[0]}",
    )


def fixed_costs(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    clip: float,
    pairs: Sequence[Pair],
    dtype: torch.dtype,
    clock: Callable[[], float],
) -> dict[str, float]:
    """Seconds of what an update pays whatever its size."""

    def seconds(work: Callable[[], object]) -> float:
        begun = clock()
        for _ in range(3):
            work()
        return (clock() - begun) / 3

    matrices = [parameter.detach() for parameter in model.parameters() if parameter.dim() > 1]
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return {
        "clipping": seconds(lambda: nn.utils.clip_grad_norm_(model.parameters(), clip)),
        "optimiser": seconds(optimizer.step),
        "casts": seconds(lambda: [matrix.to(dtype) for matrix in matrices]),
        "batch": seconds(lambda: our_batches(pairs, UPDATE)),
    }


def text(folder: Path) -> tuple[Path, Path]:
    """Pairs of invented words as a file, and a tokenizer of them."""
    lines = sentences(30_000)
    data, model = folder / "pairs.tsv", folder / "tokenizer.model"
    middle = len(lines) // 2
    data.write_text("".join(f"{en}\t{fr}\n" for en, fr in zip(lines[:middle], lines[middle:], strict=True)), "utf-8")
    Tokenizer.train(lines, VOCAB, lowercase=True).save(model)
    return data, model


def two_cores(
    name: str, settings: dict[str, object], updates: int, data: Path, tokenizer: Path, rounds: int
) -> Measurement:
    """`bgt train` held to one core and to two, in turn."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    for number in range(min(rounds, 2)):
        for count in (1, 2) if number % 2 else (2, 1):
            rates[count].append(train(settings, updates, data, tokenizer, available()[:count]).rate)
    return Measurement(
        work=f"`bgt train bgt-plus`, d=256, updates of {name} tokens, two cores",
        against="one core, on the wall",
        ratios=over(rates[2], rates[1]),
        target=">= 1.85",
        ours=f"{median(rates[2]):,.0f} tokens/s",
        peer=f"{median(rates[1]):,.0f} tokens/s",
        error="the order of sums",
        floor=f"twice one core, {2 * median(rates[1]):,.0f} tokens/s",
        reached=median(rates[2]) / (2 * median(rates[1])),
        bottleneck="see the row on one core",
    )


def memory(settings: dict[str, object], data: Path, tokenizer: Path) -> Measurement:
    """The peak of a long run over that of a short one, on one core."""
    few, many = (train(settings, updates, data, tokenizer, available()[:1]).mebibytes for updates in (FEW, MANY))
    return Measurement(
        work=f"peak memory of `bgt train bgt-plus`, d=256, {MANY} updates of {UPDATE:,} tokens",
        against=f"that of {FEW} updates",
        ratios=[many / few],
        target="<= 1.1",
        ours=f"{many:.0f} MiB",
        peer=f"{few:.0f} MiB",
        error="of the whole process, Python and torch included",
        floor="the same memory for any number of updates",
        reached=few / many,
        bottleneck="weights, gradients, moments, and what the backward pass keeps of the largest micro-batch",
    )


def allocator(settings: dict[str, object], library: str, data: Path, tokenizer: Path, rounds: int) -> Measurement:
    """`bgt train` on one core, with the C library's allocator and with jemalloc, in turn."""
    rates: dict[str, list[float]] = {"": [], library: []}
    for number in range(min(rounds, 2)):
        for preloaded in ("", library) if number % 2 else (library, ""):
            run = train(settings, LONG, data, tokenizer, available()[:1], LD_PRELOAD=preloaded)
            rates[preloaded].append(run.rate)
    return Measurement(
        work=f"`bgt train bgt-plus`, d=256, {LONG} updates of 12,000 tokens, one core, with jemalloc",
        against="the C library's allocator",
        ratios=over(rates[library], rates[""]),
        target=">= 1",
        ours=f"{median(rates[library]):,.0f} tokens/s",
        peer=f"{median(rates['']):,.0f} tokens/s",
        error="exact",
        bottleneck="see the row on one core",
    )


class Trained(NamedTuple):
    """What a run of `bgt train` took."""

    rate: float  # tokens a second, as it reports them, after the first report
    mebibytes: float  # peak memory of its first process


def train(
    settings: dict[str, object], updates: int, data: Path, tokenizer: Path, on: Sequence[int], **variables: str
) -> Trained:
    """A run of that many updates, about, on these cores, with these environment variables."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        tokens = int(str(settings["train.batch_tokens"]))
        share = updates * tokens / (13 * data.read_text("utf-8").count("\n"))  # approximate share of the text
        named = {**settings, "data.valid_pairs": 20, "train.epochs": round(share, 3)}
        options = [part for key, value in named.items() for part in ("--set", f"{key}={json.dumps(value)}")]
        files = ["--data", data, "--tokenizer", tokenizer, "--langs", "en,fr", "--out", out]
        command = ["train", "bgt-plus", *map(str, files), *options]
        before = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, on)  # child processes inherit it
            peak = whole_command("bgt_core.cli", command, **variables).mebibytes
        finally:
            os.sched_setaffinity(0, before)
        reports = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    rates = [row["tokens_per_second"] for row in reports if row["kind"] == "train"]
    return Trained(median(rates[1:] or rates), peak)


def available() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


if __name__ == "__main__":
    page(rows, __doc__)
