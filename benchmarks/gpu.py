"""Training, encoding and generation on a GPU, in six minutes: rates, share of the card's own product, memory, launches.

    python -m benchmarks.gpu --plan                          # what is measured, and how long each part may take
    python -m benchmarks.gpu --json gpu.json                 # all; `python -m benchmarks --keep gpu.json` adds it
    python -m benchmarks.gpu --device cpu --size tiny        # the same code where there is no GPU

Each part runs in its own process, which is killed when its time is up. Each row is written as soon as it is measured,
so it counts even if the part, or the whole run, is killed. A part measures whole updates of two sides in turns, by the
clock on the wall and waiting for the device, until four fifths of its time have passed. The rate of products is that of
a large square on the device, in the same precision.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import torch

from benchmarks import generation, straight
from benchmarks.device import SCALES, Place, clock, peak_bytes, product_rate, rounds, seconds_of, trace
from benchmarks.encoding import encoders_of
from benchmarks.forms import our_form, straight_form
from benchmarks.measure import Measurement, over, page
from benchmarks.workload import (
    DROPOUT,
    Form,
    Size,
    SizedTokenizer,
    operations_of,
    our_batches,
    pairs_of,
    recipe_of,
    tokens_of,
)
from bgt_core import recipes
from bgt_core.data.batching import StepBatch, prefetch
from bgt_core.device import autocast
from bgt_core.training.loop import Trainer, train_step
from bgt_core.training.schedule import learning_rate
from bgt_core.training.wiring import compile_layers, make_optimizer
from bgt_core.training.workers import SINGLE_PROCESS

POLL = 0.5  # seconds between looks at what a part has written
STOP = 0.8  # share of a part's time after which no further round begins
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def step(size: str, precision: str, compiled: bool, place: Place, limit: float) -> Iterator[Measurement]:
    """A training step: ours against the straight form, then, where asked, both through `torch.compile`."""
    scale, device = place.scale, place.device
    sized: Size = getattr(scale, size)
    recipe, pairs = recipe_of(sized), pairs_of(sized.vocab, scale.update)
    torch.manual_seed(0)
    model = recipe.build(SizedTokenizer(sized.vocab)).train().to(device)
    reference = straight.StraightBGT(model, DROPOUT).train()
    ours = largest_that_fits(lambda n: our_form(model, recipe, pairs, n, precision, device), scale.micro, device)
    peer = largest_that_fits(lambda n: straight_form(reference, pairs, n, precision, device), scale.micro, device)
    operations, rate = operations_of(model, pairs), product_rate(scale.product, DTYPES[precision], device)

    def row(against: str, ours: Sized, peer: Sized, until: float, note: str = "") -> Measurement:
        times = rounds(partial(seconds_of, ours.form, device), partial(seconds_of, peer.form, device), place, until)
        spent, theirs = (median(side) / tokens_of(pairs) for side in times)
        return Measurement(
            work=f"training step on a GPU, {sized.name}, {precision}, {ours.tokens:,} tokens a micro-batch{note}",
            against=f"{against}, {peer.tokens:,}",
            ratios=over(times[1], times[0]),
            target=">= 40 % of the floor" if size == "large" and precision == "bf16" else ">= 1",
            ours=f"{1 / spent:,.0f} tokens/s, {ours.memory / 2**30:.1f} GiB{ours.compiling}",
            peer=f"{1 / theirs:,.0f} tokens/s, {peer.memory / 2**30:.1f} GiB{peer.compiling}",
            error="as on a CPU",
            floor=f"{operations / 1e6:,.0f} MFLOP a token at {rate / 1e12:,.1f} TFLOP/s, "
            f"{rate / operations:,.0f} tokens/s",
            reached=operations / rate / spent,
            bottleneck=trace(lambda: ours.form.step(0)),
        )

    yield row("the straight form", ours, peer, limit * (0.3 if compiled else STOP))
    if not compiled:
        return
    compile_layers(model, "on", device, 1)
    backend = "inductor" if device.type == "cuda" else "eager"
    whole = torch.compile(reference, dynamic=True, backend=backend)
    fast = straight_form(reference, pairs, peer.tokens, precision, device, whole)
    yield row(
        "the straight form, compiled whole",
        replace(ours, compiling=compiling(ours.form, device)),
        replace(peer, form=fast, compiling=compiling(fast, device)),
        limit * STOP,
        ", layers compiled",
    )


@dataclass(frozen=True)
class Sized:
    """A form, in micro-batches of that size."""

    form: Form
    tokens: int
    memory: int  # bytes at most, weights included
    compiling: str = ""


def largest_that_fits(make: Callable[[int], Form], sizes: Sequence[int], device: torch.device) -> Sized:
    """The form in the first of these micro-batch sizes that the memory holds, after an update to warm up."""
    for tokens in sizes:
        try:
            form = make(tokens)
            return Sized(form, tokens, peak_bytes(partial(seconds_of, form, device), device))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
    raise torch.OutOfMemoryError(f"not even {sizes[-1]:,} tokens fit")


def compiling(form: Form, device: torch.device) -> str:
    """The seconds that the first update takes beyond the second."""
    first = seconds_of(form, device)
    return f", compiled in {first - seconds_of(form, device):.0f} s"


def encoding(place: Place, limit: float) -> Iterator[Measurement]:
    """Sentences to vectors against sentence-transformers, the same weights in the same precision."""
    embedders, peer, texts = encoders_of(256, 3, place.device, place.scale.sentences)
    for precision, share in (("fp32", STOP / 2), ("bf16", STOP)):
        peer.to(DTYPES[precision])
        theirs = partial(peer.encode, texts, show_progress_bar=False, batch_size=256)
        ours = partial(embedders[precision].embed, texts, lang="en")
        times = rounds(ours, theirs, place, limit * share)
        yield plain_row(f"encoding on a GPU, d=256, 3 layers, {precision}", "sentence-transformers", times, len(texts))


def writing(place: Place, limit: float) -> Iterator[Measurement]:
    """Beam search against `generate` of transformers, both in bf16."""
    small = {"model.d_model": 32, "model.ffn_dim": 32, "model.heads": 4}
    toy = generation.Size("3 sentences", small, 60, 3, None, ">= 0")
    sizes = (generation.SIZES[0], generation.SIZES[-1]) if place.device.type == "cuda" else (toy,)
    for number, size in enumerate(sizes, 1):
        sides = generation.sides_of(size, place.device)
        ours, peer = partial(sides.ours, "bf16"), partial(cast_to_bf16, sides.theirs, place.device)
        times = rounds(ours, peer, place, limit * STOP * number / len(sizes))
        yield plain_row(f"beam-5 generation on a GPU, {size.name}, bf16", "transformers", times, size.sentences)


def cast_to_bf16(work: Callable[[], object], device: torch.device) -> object:
    """Run it with products in bf16."""
    with autocast(device, "bf16"):
        return work()


def plain_row(work: str, against: str, times: tuple[list[float], list[float]], sentences: int) -> Measurement:
    """The row of two sides that did those sentences in a round."""
    ours, peer = (f"{sentences / median(side):,.0f} sentences/s" for side in times)
    ratios = over(times[1], times[0])
    return Measurement(work, against, ratios, ">= 1", ours, peer, "as on a CPU", "not traced")


def training(place: Place, limit: float) -> Iterator[Measurement]:
    """The recipe `bgt` with its batches made meanwhile, over its step on one batch: do data keep up?"""
    scale, device = place.scale, place.device
    settings = {"data.vocab_size": scale.large.vocab, "train.precision": "bf16", **scale.large.arguments}
    recipe = recipes.build("bgt", {**settings, "train.micro_tokens": scale.micro[1]})
    config = recipe.train
    model = recipe.build(SizedTokenizer(scale.large.vocab)).to(device).train()
    optimizer = make_optimizer(model, config)
    trainer = Trainer(model, optimizer, recipe.objective, config, device, SINGLE_PROCESS)
    updates = [pairs_of(scale.large.vocab, scale.update, seed) for seed in range(4)]

    def make(step: int) -> StepBatch:
        pairs = updates[step % len(updates)]
        update = StepBatch(len(pairs), dict(enumerate(our_batches(pairs, config.micro_tokens))))
        return update.pin() if device.type == "cuda" else update

    def update(step: int, batch: StepBatch) -> float:
        optimizer.param_groups[0]["lr"] = learning_rate(step, step + 1, config)
        begun = clock(device)
        train_step(trainer, step, batch)
        return clock(device) - begun

    warm = [update(step, make(step)) for step in range(3)][1:]
    begun, done, coming = clock(device), 0, prefetch(make, range(10**9))
    while not done or not place.over(limit * STOP, done):
        update(done, next(coming))
        done += 1
    spent, tokens = (clock(device) - begun) / done, sum(map(tokens_of, updates)) / len(updates)
    yield Measurement(
        work=f"the recipe `bgt` on a GPU, {scale.large.name}, bf16, {done} updates",
        against="its step alone",
        ratios=[median(warm) / spent],
        target=">= 0.85",
        ours=f"{tokens / spent:,.0f} tokens/s",
        peer=f"{tokens / median(warm):,.0f} tokens/s",
        error="the same step",
        bottleneck="see the step",
    )


@dataclass(frozen=True)
class Part:
    """What one process measures."""

    seconds: float  # at most, on a GPU
    what: str
    measure: Callable[[Place, float], Iterator[Measurement]]


PARTS = {
    "paper-bf16": Part(90, "step of the paper's size, bf16, plain and compiled", partial(step, "large", "bf16", True)),
    "small-bf16": Part(70, "step at d=256, bf16, plain and compiled", partial(step, "small", "bf16", True)),
    "paper-fp32": Part(35, "step of the paper's size, fp32", partial(step, "large", "fp32", False)),
    "small-fp32": Part(25, "step at d=256, fp32", partial(step, "small", "fp32", False)),
    "training": Part(35, "the recipe `bgt`, do data keep up", training),
    "encoding": Part(35, "sentences to vectors", encoding),
    "writing": Part(40, "beam search", writing),
}


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    device = torch.device(options.device)
    if options.plan:
        print("\n".join(plan()))
        return
    if device.type == "cuda" and not torch.cuda.is_available():
        print("No GPU here: nothing measured.")
        return
    if options.part:
        part, begun = PARTS[options.part], options.begun or time.monotonic()
        yield from part.measure(Place(SCALES[options.size], device, begun), options.limit or part.seconds)
        return
    print("\n".join(plan()), flush=True)
    for name, part in PARTS.items():
        yield from measured(name, options.limit or part.seconds, options)


def plan() -> list[str]:
    """What is measured, and how long each part may take."""
    lines = [f"  {part.seconds:3.0f} s  {name}: {part.what}" for name, part in PARTS.items()]
    total = sum(part.seconds for part in PARTS.values())
    return [f"At most {total:.0f} s in {len(PARTS)} parts, beside installing (benchmarks/bare.sh: 30 s):", *lines]


def measured(name: str, limit: float, options: argparse.Namespace) -> Iterator[Measurement]:
    """Run a part in its own process, for at most `limit` seconds, and yield its rows as it writes them."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks.gpu", "--part", name, "--json", str(written)]
        begun = time.monotonic()
        command += ["--device", options.device, "--size", options.size, "--limit", str(limit), "--begun", str(begun)]
        seen, over = 0, False
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while not over:
                over = process.poll() is not None or time.monotonic() - begun > limit
                stored = json.loads(written.read_text("utf-8"))["rows"] if written.exists() else []
                yield from (Measurement(**row) for row in stored[seen:])
                seen = len(stored)
                time.sleep(0 if over else POLL)
            killed = process.poll() is None
            process.kill()
        note = "killed" if killed else "done" if process.returncode == 0 else f"failed with {process.returncode}"
        print(f"-- {name}: {note} after {time.monotonic() - begun:.0f} s", flush=True)


def own_options(arguments: argparse.ArgumentParser) -> None:
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--size", choices=SCALES, default="full")
    arguments.add_argument("--plan", action="store_true", help="print how long each part may take, and measure nothing")
    arguments.add_argument("--part", choices=PARTS, help="measure this part, in this process")
    arguments.add_argument("--begun", type=float, help="when that part began, by the monotonic clock; by default now")
    arguments.add_argument("--limit", type=float, help="time limit of every part, in seconds; each has its own")


if __name__ == "__main__":
    page(rows, __doc__, own_options)
