"""A training step against the straight form: forward, backward and optimiser, real tokens a second.

Equal: the model (the recipe `bgt`), its parameters, dropout 0.3, the loss, and the pairs of one update of the recipe
(25,000 tokens on the longer side). The straight form takes them in random order, ours by length; a round is one
micro-batch of each. An optimiser step costs the same whatever the update, so its time is added in proportion.
Lengths are lognormal with a median of 14 pieces, the other side a tenth longer; pieces follow Zipf's law.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch
from torch import nn

from benchmarks import straight
from benchmarks.measure import Measurement, clock_of, over, page, peak_memory, product_rate, profile
from bgt_core import recipes
from bgt_core.contracts import EOS, Batch, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.training.loop import make_optimizer

UPDATE, SMOOTHING, DROPOUT, ANNEAL = 25_000, 0.1, 0.3, 0.5
Pair = dict[str, list[int]]


@dataclass(frozen=True)
class Size:
    """A model size, and the micro-batches of both forms."""

    name: str
    arguments: dict[str, int]
    vocab: int
    ours: int  # padded tokens of our micro-batches, on the longer side
    theirs: int  # of the straight form's
    targets: tuple[str, str]  # bf16, fp32


SMALL = {"model.d_model": 256, "model.encoder_layers": 3, "model.ffn_dim": 256}
SIZES = (
    Size("d=256, 3+1 layers, 8k", SMALL, 8_000, 4_000, 2_000, (">= 5", ">= 3.5")),
    Size("d=1024, 5+1 layers, 20k", {}, 20_000, 700, 350, (">= 5", ">= 3")),
)


class Pieces(Tokenizer):
    """All that `bgt` asks of a tokenizer."""

    def __init__(self, vocab: int) -> None:
        self.vocab_size = vocab


def pairs_of(vocab: int) -> list[Pair]:
    """The pairs of one update, in random order."""
    draw = np.random.default_rng(0)
    chances = 1 / np.arange(1, vocab - 3)
    chances /= chances.sum()
    pairs: list[Pair] = []
    while sum(max(map(len, pair.values())) for pair in pairs) < UPDATE:
        median = 14 * np.exp(draw.normal(0, 0.5))
        lengths = {"en": median, "fr": 1.1 * median * np.exp(draw.normal(0, 0.1))}
        sides = {lang: int(np.clip(round(length), 5, 40)) for lang, length in lengths.items()}
        pairs.append({lang: [*(draw.choice(vocab - 4, n, p=chances) + 4).tolist(), EOS] for lang, n in sides.items()})
    return pairs


def sorted_batches(pairs: list[Pair], tokens: int) -> list[Batch]:
    """Micro-batches as `data.batching` cuts them."""
    order = sorted(pairs, key=lambda pair: (max(map(len, pair.values())), sum(map(len, pair.values()))), reverse=True)
    batches: list[Batch] = []
    while order:
        count = max(1, tokens // max(map(len, order[0].values())))
        sides = {lang: Tokens.pad([pair[lang] for pair in order[:count]], lang) for lang in order[0]}
        batches.append(Batch(sides, anchor=("en", "fr")[len(batches) % 2]))
        order = order[count:]
    return batches


def tokens_of(batches: list[Batch]) -> int:
    return sum(len(side.flat_index) for batch in batches for side in batch.sides.values())


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    for size in SIZES:
        yield from rows_of(size, options)


def rows_of(size: Size, options: argparse.Namespace) -> Iterator[Measurement]:
    settings = {"data.vocab_size": size.vocab, "model.dropout": DROPOUT, "objective.elbo.warmup_steps": 2}
    recipe = recipes.build("bgt", {**settings, **size.arguments})
    model = recipe.build(Pieces(size.vocab)).train()
    reference = straight.StraightBGT(model, DROPOUT).train()
    pairs = pairs_of(size.vocab)
    by_length, at_random = sorted_batches(pairs, size.ours), straight.random_batches(pairs, size.theirs)
    clock, tokens = clock_of(options.threads), tokens_of(at_random)

    def fast(batch: Batch, bf16: bool) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = recipe.objective(model(batch), 1).total / len(pairs)
        loss.backward()
        return loss.detach()

    def slow(batch: Batch) -> torch.Tensor:
        loss = reference(batch, ANNEAL, SMOOTHING) / len(pairs)
        loss.backward()
        return loss.detach()

    forms = {
        "straight": (slow, at_random),
        "fp32": (lambda batch: fast(batch, False), by_length),
        "bf16": (lambda batch: fast(batch, True), by_length),
    }
    few = straight.random_batches(pairs, size.theirs // 4)[0]
    errors = {name: difference(forms[name][0], slow, model, reference, few) for name in ("fp32", "bf16")}
    memory = [peak_memory(lambda step=step: step(at_random[0])) for step in (forms["fp32"][0], slow)]
    update = dict.fromkeys(forms, 0.0)  # the optimiser's seconds, a token of the update
    update["straight"] = optimiser_seconds(straight.optimizer(reference.parameters_used()), clock) / tokens
    update["fp32"] = update["bf16"] = optimiser_seconds(make_optimizer(model, recipe.train), clock) / tokens

    times: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(options.rounds):
        for name in list(forms)[:: 1 if number % 2 else -1]:
            step, batches = forms[name]
            batch = batches[(2 * number + 1) * len(batches) // (2 * options.rounds)]  # spread over the update
            begun = clock()
            step(batch)
            times[name].append((clock() - begun) / tokens_of([batch]) + update[name])

    operations = operations_of(model, by_length)
    for (name, dtype), target in zip((("bf16", torch.bfloat16), ("fp32", torch.float32)), size.targets, strict=True):
        spent, floor = median(times[name]), operations / product_rate(dtype, options.threads)
        yield Measurement(
            work=f"training step, {size.name}, {name}",
            against="the straight form, fp32",
            ratios=over(times["straight"], times[name]),
            target=target,
            ours=f"{1 / spent:,.0f} tokens/s",
            peer=f"{1 / median(times['straight']):,.0f}",
            error=errors[name],
            floor=f"{operations / 1e6:,.0f} MFLOP a token, {1 / floor:,.0f} tokens/s",
            reached=floor / spent,
            bottleneck=profile(lambda step=forms[name][0]: step(by_length[len(by_length) // 2])),
        )
    yield Measurement(
        work=f"extra peak memory of it, {size.name}, fp32",
        against="the straight form, same batch",
        ratios=[memory[0] / memory[1]],
        target="<= 0.6",
        ours=f"{memory[0] / 2**20:,.0f} MiB beside weights and gradients",
        peer=f"{memory[1] / 2**20:,.0f} MiB",
        error="exact",
        floor="none stated",
        reached=None,
        bottleneck="what the backward pass keeps of each layer",
    )


def difference(
    ours: Callable[[Batch], torch.Tensor],
    peer: Callable[[Batch], torch.Tensor],
    model: nn.Module,
    reference: straight.StraightBGT,
    batch: Batch,
) -> str:
    """Loss and gradients of one batch without dropout and with the same noise; leaves gradients behind.

    Of the gradients, the error of all together, and of the parameter that fares worst.
    """
    model.eval(), reference.eval()
    results: list[tuple[float, dict[str, torch.Tensor]]] = []
    for step, gradients in ((peer, reference.gradients), (ours, model_gradients(model))):
        model.zero_grad(), reference.zero_grad()
        torch.manual_seed(0)
        results.append((step(batch).item(), {name: slope.clone() for name, slope in gradients().items()}))
    model.train(), reference.train()
    (expected, slopes), (loss, own) = results
    off = {name: (own[name] - slope).norm().item() for name, slope in slopes.items()}
    size = {name: slope.norm().item() for name, slope in slopes.items()}
    worst = max((off[name] / size[name], name) for name in off if size[name])
    gradient = math.hypot(*off.values()) / math.hypot(*size.values())
    errors = f"loss {abs(loss - expected) / abs(expected):.0e}, gradient {gradient:.0e}"
    return f"relative: {errors} (at worst {worst[0]:.0e}, {worst[1]})"


def model_gradients(model: nn.Module) -> Callable[[], dict[str, torch.Tensor]]:
    return lambda: {name: parameter.grad for name, parameter in model.named_parameters()}


def optimiser_seconds(optimiser: torch.optim.Optimizer, clock: Callable[[], float]) -> float:
    """Of one step; gradients are there, and the first step, which makes the moments, is not counted."""
    for group in optimiser.param_groups:
        group["lr"] = 0.0
        for parameter in group["params"]:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
    spent = []
    for _ in range(4):
        begun = clock()
        optimiser.step()
        spent.append(clock() - begun)
    return median(spent[1:])


def operations_of(model: nn.Module, batches: list[Batch]) -> float:
    """Multiplications and additions with weights, forward and backward, a real token; z's part once a sentence."""
    sides = [side for batch in batches for side in batch.sides.values()]
    pieces = {lang: sum(len(side.flat_index) for side in sides if side.lang == lang) for lang in ("en", "fr")}
    sentences = sum(len(batch) for batch in batches)
    total = 0.0
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            family, who, *_, last = name.split(".")
            a_sentence = last in ("mean", "log_variance", "fuse_latent", "latent")
            times = 2 if (family, who) == ("encoders", "semantic") else 1
            read = (
                sentences * times if a_sentence else sum(n for lang, n in pieces.items() if who in (lang, "semantic"))
            )
            total += 6.0 * module.weight.numel() * read
    return total / sum(pieces.values())


if __name__ == "__main__":
    page(rows, __doc__)
