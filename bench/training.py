"""Compare our training steps with plain PyTorch (`straight`), and with the code that was released with the paper.

    python -m bench training --released CLONE    # also measure the released code (see `released`)
    python -m bench training --device cuda       # measure on a GPU (without a package index, use `bare.sh`)

The unit is tokens per second, without padding. Both sides have the same model (recipe `bgt-mean`), parameters, dropout
of 0.3, loss, and pairs of one update (25,000 tokens, counting only the longer sentence of each pair). The peers sort
the pairs by length, as the released code does. Each side uses the micro-batch size that was fastest for it in a trial.
In each round, each side computes one micro-batch, at the same place in the update. The time includes a share of the end
of the update (clipping, the optimiser). Our side computes all shapes before the measurement, because its products in
bf16 are compiled once per shape, which takes little time in a real run. On a CPU, the peers compute in fp32. On a GPU,
they compute in our precision, and both sides are measured with and without compilation.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench import released, straight
from bench.measure import DTYPES, Measurement, clock_of, compare, product_rate
from bench.straight import CLIP, DROPOUT, Form
from bench.workload import UPDATE, Pair, SizedTokenizer, batch_of, pairs_of, released_batches, tokens_of
from bgt_core import recipes
from bgt_core.contracts import Batch
from bgt_core.data.batching import split_to_fit
from bgt_core.models.bgt import BGT
from bgt_core.nets.output import TiedOutput
from bgt_core.recipes import Recipe
from bgt_core.training.loop import compile_layers, make_optimizer

TARGETS = {"bf16": ">= 75 % of the floor", "fp32": ">= 85 % of the floor"}
ON_GPU = ">= 40 % of the floor"
FEW = 24  # number of pairs in the batch that compares losses and gradients
A_SENTENCE = {"mean", "log_variance", "fuse_latent", "latent", "project", "correction"}  # layers that run per sentence


@dataclass(frozen=True)
class Size:
    """A model, and the micro-batch sizes to try: number of pairs times number of tokens in the longest sentence."""

    name: str
    arguments: Mapping[str, int]
    vocab: int
    ours: Sequence[int] = (4_000,)
    theirs: Sequence[int] = (500, 1_000, 2_000)
    update: int = UPDATE


SMALL = {"model.d_model": 256, "model.encoder_layers": 3, "model.ffn_dim": 256}
TINY = {"model.d_model": 16, "model.encoder_layers": 1, "model.ffn_dim": 16, "model.heads": 2}
SIZES = Size("d=256, 3+1 layers, 8k", SMALL, 8_000), Size("d=1024, 5+1 layers, 20k", {}, 20_000)
TOY = (Size("d=16, 1+1 layers", TINY, 400, (600, 300), (300,), 600),)
MICRO_ON_GPU = (25_000, 12_500, 6_000, 2_000)


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Compare our training step with other implementations, at each size and precision; on a GPU, also compiled."""
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("This machine has no GPU; nothing was measured.")
        return
    if options.released:
        released.load(options.released)
    else:
        print("The released code is not measured; pass a clone of it as --released.", flush=True)
    for size in TOY if options.toy else SIZES:
        # `bgt-mean` decodes from posterior means instead of samples, as the released code does.
        fixed = {"data.vocab_size": size.vocab, "model.dropout": DROPOUT, "objective.elbo.warmup_steps": 2}
        recipe = recipes.configure("bgt-mean", {**fixed, **size.arguments})
        model = recipe.build(SizedTokenizer(size.vocab)).train().to(device)
        reference = straight.StraightBGT(model, DROPOUT).train()
        yield from step_rows(size, recipe, model, reference, options)
        if device.type == "cuda" or options.toy:
            compile_layers(model, "on", device, 1)
            yield from step_rows(size, recipe, model, reference, options, torch.compile(reference, dynamic=True))


def step_rows(
    size: Size,
    recipe: Recipe,
    model: BGT,
    reference: straight.StraightBGT,
    options: argparse.Namespace,
    compiled: Callable[[Batch], Tensor] | None = None,
) -> Iterator[Measurement]:
    """Compare training steps at one size in both precisions. `compiled` is the compiled `StraightBGT`, if any."""
    device, note = torch.device(options.device), ", layers compiled" if compiled is not None else ""
    on_gpu, clock, pairs = device.type == "cuda", clock_of(options.threads, device), pairs_of(size.vocab, size.update)

    def form(loss: Callable[[Batch], Tensor], cut: Sequence[Sequence[Pair]], precision: str, *ending: Any) -> Form:
        batches, count = [batch_of(rows, turn) for turn, rows in enumerate(cut)], sum(map(len, cut))
        step = lambda number: straight.run(loss, batches[number].to(device), count, precision)  # noqa: E731
        return Form(step, list(map(tokens_of, cut)), *ending)

    def ours(pairs: Sequence[Pair], precision: str, tokens: int) -> Form:
        lengths = np.array([[len(ids) for ids in pair.values()] for pair in pairs])
        cut = [[pairs[row] for row in rows] for rows in split_to_fit(lengths, tokens)][::-1]  # shortest sentences first
        optimizer = make_optimizer(model, recipe.train)
        return form(loss_of(model, recipe), cut, precision, list(model.parameters()), optimizer, recipe.train.clip)

    def theirs(precision: str, tokens: int) -> Form:
        used, cut = reference.parameters_used(), released_batches(pairs, tokens)
        return form(reference if compiled is None else compiled, cut, precision, used, straight.optimizer(used), CLIP)

    few = batch_of(pairs[:FEW], 0).to(device)
    errors = {precision: difference(model, recipe, precision, reference, few) for precision in TARGETS}
    best: dict[str, int] = {}  # our micro-batch size in tokens at each precision
    peers: dict[str, dict[str, str]] = {}  # other code -> our precision -> numerical error
    forms: dict[str, Form] = {}
    places = [(2 * number + 1) / (2 * options.rounds) for number in range(options.rounds)]  # start: 0, end: 1
    for precision in TARGETS:
        make = partial(ours, pairs, precision)
        best[precision], forms[precision] = fastest(make, MICRO_ON_GPU if on_gpu else size.ours, clock)
        warm = ours(pairs_of(size.vocab, size.update, seed=1), precision, best[precision])
        for place in places:
            warm.seconds(place, clock)
    if options.released and not on_gpu:
        code = released.Released(model)
        error = f"its loss and gradient against {code.difference(reference, pairs[:FEW])}"
        tokens, code_form = fastest(partial(code.form, pairs), size.theirs, clock)
        name = f"the released code, {tokens:,} tokens a batch, fp32"
        forms[name], peers[name] = code_form, dict.fromkeys(TARGETS, error)
    for precision in TARGETS if on_gpu else ["fp32"]:
        tokens, peer = fastest(partial(theirs, precision), MICRO_ON_GPU if on_gpu else size.theirs, clock)
        name = f"the straight form{note and ', compiled'}, {tokens:,} tokens a batch, {precision}"
        forms[name], peers[name] = peer, {precision: errors[precision]} if on_gpu else errors
    ending = {name: form.update_seconds(clock) for name, form in forms.items()}
    times: dict[str, list[float]] = {name: [] for name in forms}
    for number, place in enumerate(places):
        for name in list(forms)[:: 1 if number % 2 else -1]:
            times[name].append(forms[name].seconds(place, clock) + ending[name])
    operations = operations_of(model, pairs)
    for name, of_precision in peers.items():
        for precision, error in of_precision.items():
            on = f" on a GPU, {best[precision]:,} tokens a batch" if on_gpu else ""
            work = f"training step{on}, {size.name}, {precision}{note}"
            target = ON_GPU if on_gpu else TARGETS[precision]
            floor = operations, product_rate(DTYPES[precision], options.threads, device)
            yield compare(work, name, times[precision], times[name], target, error, "tokens", 1, *floor)


def fastest(make: Callable[[int], Form], sizes: Sequence[int], clock: Callable[[], float]) -> tuple[int, Form]:
    """Return the micro-batch size that is fastest in the middle of an update, and the training step that uses it. Sizes
    that do not fit into memory are skipped."""
    measured = []
    for tokens in sizes:
        try:
            form = make(tokens)
            form.seconds(0.0, clock)
            measured.append((form.seconds(0.5, clock), tokens, form))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
    if not measured:
        raise torch.OutOfMemoryError(f"micro-batches of {sizes[-1]:,} tokens do not fit; use a GPU with more memory")
    return min(measured, key=lambda row: row[0])[1:]


def loss_of(model: BGT, recipe: Recipe) -> Callable[[Batch], Tensor]:
    """Return a function that computes the loss of a batch, as `bgt train` does."""
    return lambda batch: recipe.objective(model(batch), 1).total


def difference(model: BGT, recipe: Recipe, precision: str, reference: straight.StraightBGT, batch: Batch) -> str:
    """Describe three relative errors on a batch, without dropout: of the loss, of all gradients together, and of the
    gradient with the largest error. All gradients are cleared afterwards."""
    model.eval(), reference.eval()
    expected = straight.run(reference, batch, 1, "fp32").item()
    slopes = {name: slope.clone() for name, slope in reference.gradients().items()}
    reference.zero_grad()
    loss = straight.run(loss_of(model, recipe), batch, 1, precision).item()
    own = {name: parameter.grad for name, parameter in model.named_parameters()}
    off = straight.relative_errors(loss, expected, {name: (own[name], slope) for name, slope in slopes.items()})
    reference.train()
    reference.zero_grad()
    return f"relative: loss {off[0]:.0e}, gradient {off[1]:.0e} (at worst {off[2][0]:.0e}, {off[2][1]})"


def operations_of(model: nn.Module, pairs: Sequence[Pair]) -> float:
    """Count the floating-point operations with weights, forward and backward, per token. Layers that compute or use
    latents run once per sentence."""
    tokens = {lang: sum(len(pair[lang]) for pair in pairs) for lang in pairs[0]}
    total = 0.0
    for name, module in model.named_modules():
        if not isinstance(module, nn.Linear | TiedOutput):
            continue
        weight = module.table.weight if isinstance(module, TiedOutput) else module.weight
        family, who, *_, last = name.split(".")
        if last in A_SENTENCE:
            read = len(pairs) * (2 if (family, who) == ("encoders", "semantic") else 1)
        else:
            read = sum(n for lang, n in tokens.items() if who in (lang, "semantic"))
        total += 6.0 * weight.numel() * read
    return total / sum(tokens.values())
