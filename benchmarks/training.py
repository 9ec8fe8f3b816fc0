"""A training step against the straight form and the released code: forward, backward, optimiser, real tokens a second.

    python -m benchmarks.training --released CLONE    # adds the rows against the released code (see `released`)

Equal: the model (the recipe `bgt-mean`), its parameters, dropout 0.3, the loss, and the pairs of one update of the
recipe (25,000 tokens on the longer side). Both peers take them sorted by length, as the released code does, in
micro-batches of the best of three sizes, measured first; ours are its own. A round is one micro-batch of each, at the
same place of the update. Before that, ours in bf16 trains on the same places of another update: its products are
compiled for each new shape, of which batches have few, and a run meets them again and again. What ends an update
(clipping, the optimiser) costs the same whatever its size, so it is added in proportion.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from statistics import median

import torch

from benchmarks import released, straight
from benchmarks.forms import fast, our_form, slow, straight_form
from benchmarks.measure import Measurement, clock_of, extra_memory, over, page, peak_memory, product_rate, profile
from benchmarks.workload import (
    DROPOUT,
    PAPER,
    SMALL,
    Form,
    Size,
    SizedTokenizer,
    batch_of,
    best_of,
    operations_of,
    pairs_of,
    recipe_of,
    released_batches,
)
from bgt_core.contracts import Batch
from bgt_core.models.bgt import BGT
from bgt_core.recipes import Recipe

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
LEAST = {"bf16": 75, "fp32": 85}  # target share of the floor, in percent
FEW = 24  # pairs of the batch whose loss and gradients are compared


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    if options.released:
        released.load(options.released)
    else:
        print("The released code is not measured: --released takes a clone of it.", flush=True)
    for size in (SMALL, PAPER):
        yield from rows_of(size, options)


def rows_of(size: Size, options: argparse.Namespace) -> Iterator[Measurement]:
    recipe, pairs, clock = recipe_of(size), pairs_of(size.vocab), clock_of(options.threads)
    model = recipe.build(SizedTokenizer(size.vocab)).train()
    reference = straight.StraightBGT(model, DROPOUT).train()
    ours = {name: our_form(model, recipe, pairs, size.ours, name) for name in DTYPES}
    few = batch_of(pairs[:FEW], 0)
    errors = {name: difference(model, recipe, name, reference, few) for name in DTYPES}
    memory = memory_of(model, recipe, reference, batch_of(released_batches(pairs, size.theirs[-1])[-2], 0))

    candidates = {tokens: straight_form(reference, pairs, tokens) for tokens in size.theirs}
    best = best_of(candidates, clock)
    peers, names = {"straight": candidates[best]}, {"straight": f"the straight form, {best:,} tokens a batch, fp32"}
    if options.released:
        code = released.Released(model)
        errors["released"] = f"its loss and gradient against {code.difference(reference, pairs[:FEW])}"
        theirs = {tokens: code.form(pairs, tokens) for tokens in size.theirs}
        best = best_of(theirs, clock)
        peers["released"], names["released"] = theirs[best], f"the released code, {best:,} tokens a batch, fp32"

    rounds({"bf16": our_form(model, recipe, pairs_of(size.vocab, seed=1), size.ours, "bf16")}, options.rounds, clock)
    forms = ours | peers
    ending = {name: form.update_seconds(clock) for name, form in forms.items()}
    times = rounds(forms, options.rounds, clock)
    times = {name: [spent + ending[name] for spent in seconds] for name, seconds in times.items()}
    operations = operations_of(model, pairs)
    floors = {name: operations / product_rate(dtype, options.threads) for name, dtype in DTYPES.items()}
    profiles = {name: profile_of(form) for name, form in ours.items()}
    for peer in reversed(peers):
        for name, floor in floors.items():
            spent = median(times[name])
            yield Measurement(
                work=f"training step, {size.name}, {name}",
                against=names[peer],
                ratios=over(times[peer], times[name]),
                target=f">= {LEAST[name]} % of the floor",
                ours=f"{1 / spent:,.0f} tokens/s",
                peer=f"{1 / median(times[peer]):,.0f}",
                error=errors[name] if peer == "straight" else errors[peer],
                floor=f"{operations / 1e6:,.0f} MFLOP a token, {1 / floor:,.0f} tokens/s",
                reached=floor / spent,
                bottleneck=profiles[name],
            )
    yield extra_memory(f"{size.name}, fp32", "the straight form, same batch", *memory)


def rounds(forms: dict[str, Form], count: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of a token, one micro-batch of each form a round, spread over the update; who begins changes."""
    times: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(count):
        for name in list(forms)[:: 1 if number % 2 else -1]:
            times[name].append(forms[name].seconds((2 * number + 1) / (2 * count), clock))
    return times


def profile_of(form: Form) -> str:
    """Where the time of the micro-batch in the middle goes."""
    form.fill_gradients(0.0)
    shares = profile(lambda: form.step(len(form.tokens) // 2))
    form.drop_gradients()
    return shares


def memory_of(model: BGT, recipe: Recipe, reference: straight.StraightBGT, batch: Batch) -> list[int]:
    """Peaks of both on one batch, bytes; the gradients are there before."""
    steps = lambda: fast(model, recipe, "fp32", batch, 1), lambda: slow(reference, batch, 1)
    peaks = []
    for step in steps:
        step()
        peaks.append(peak_memory(step))
    return peaks


def difference(model: BGT, recipe: Recipe, precision: str, reference: straight.StraightBGT, batch: Batch) -> str:
    """Loss and gradients of one batch without dropout; leaves none behind.

    Of the gradients, the error of all together, and of the parameter that fares worst.
    """
    model.eval(), reference.eval()
    expected = slow(reference, batch, 1).item()
    slopes = {name: slope.clone() for name, slope in reference.gradients().items()}
    reference.zero_grad()
    loss = fast(model, recipe, precision, batch, 1).item()
    own = {name: parameter.grad for name, parameter in model.named_parameters()}
    off = {name: (own[name] - slope).norm().item() for name, slope in slopes.items()}
    size = {name: slope.norm().item() for name, slope in slopes.items()}
    reference.train()
    reference.zero_grad()
    worst = max((off[name] / size[name], name) for name in off if size[name])
    gradient = math.hypot(*off.values()) / math.hypot(*size.values())
    errors = f"loss {abs(loss - expected) / abs(expected):.0e}, gradient {gradient:.0e}"
    return f"relative: {errors} (at worst {worst[0]:.0e}, {worst[1]})"


if __name__ == "__main__":
    page(rows, __doc__)
