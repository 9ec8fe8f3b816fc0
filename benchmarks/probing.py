"""One probing task by SentEval's protocol: all penalties as one stack, against one classifier after another.

Penalties 1e-5 to 1e-2, minibatches of 64, a look at dev every 4 passes, early stopping. The first row is the whole
protocol; the others are parts of it, as each pass costs the same. Ours takes one thread whatever `--threads` says.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat

import numpy as np
import torch

from benchmarks import sequential_senteval
from benchmarks.measure import Measurement, clock_of, interleave, over, page, product_rate, profile
from probes.classifiers.senteval import SentEval, Split, SplitResult, split_classify

Task = tuple[Split, Split, Split]

ITEMS, TESTED, CLASSES, HIDDEN = 20_000, 2_000, 6, 200
NOISE = 1.5  # in the labels; accuracies come out near 30%, far from chance and from certainty


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Two widths of softmax regression, and a hidden layer."""
    look, one_pass = SentEval(max_epoch=0), SentEval(hidden=HIDDEN, epoch_size=1, max_epoch=0)
    yield measure(options, 1024, SentEval(), "until every early stop", ">= 10")
    yield measure(options, 256, look, "4 passes", ">= 10")
    yield measure(options, 1024, one_pass, f"{HIDDEN} hidden units, 1 pass", ">= 2")


def measure(options: argparse.Namespace, width: int, protocol: SentEval, part: str, target: str) -> Measurement:
    """Both forms on one task; `width` is that of its vectors."""
    data, clock = task(width), clock_of(options.threads)
    fast = TimedForm(split_classify, data, protocol)
    slow = TimedForm(sequential_senteval.split_classify, data, protocol)
    ours, peer = interleave(fast, slow, options.threads, options.rounds)
    result, expected, seconds = fast.result, slow.result, statistics.median(ours)
    passes, vectors = max(result.epochs), data[0][0]

    reading = passes * least(lambda: vectors.sum(), clock)  # a sum of them all takes as long as reading them
    weights = width * HIDDEN + HIDDEN * CLASSES if protocol.hidden else width * CLASSES
    products = sum(result.epochs) * ITEMS * 4 * weights / product_rate(torch.float32, 1)  # forward, backward
    floor = max(reading, products)
    gathering = passes * least(lambda: gather(vectors, protocol.batch_size), clock)
    gap = max(abs(a - b) for a, b in zip(result.dev_accuracies, expected.dev_accuracies, strict=True))
    return Measurement(
        work=f"probing task, {ITEMS:,} x {width}, {CLASSES} classes: {part}",
        against="the sequential form that SentEval uses",
        ratios=over(peer, ours),
        target=target,
        ours=f"{seconds:.2f} s, {1e3 * seconds / passes:.0f} ms a pass",
        peer=f"{statistics.median(peer):.2f} s",
        error=f"test accuracy {result.test_accuracy:.2f} against {expected.test_accuracy:.2f}, dev accuracies at most "
        f"{gap:.2f} points apart, {np.sum(result.predicted != expected.predicted)} of {TESTED:,} predictions differ, "
        f"passes {'equal' if result.epochs == expected.epochs else 'differ'}",
        floor=f"{floor:.3f} s, the longer of reading the vectors ({reading:.3f} s) and the products ({products:.3f} s)",
        reached=floor / seconds,
        bottleneck=f"gathering minibatches {100 * gathering / seconds:.0f}% of the time; "
        f"of torch's operators {profile(lambda: split_classify(*data, replace(protocol, max_epoch=0)))}",
    )


class TimedForm:
    """One form on one task; the first call, which is not timed, makes one pass."""

    def __init__(self, form: Callable[..., SplitResult], data: Task, protocol: SentEval):
        self.form, self.data = form, data
        self.protocols = chain([replace(protocol, epoch_size=1, max_epoch=0)], repeat(protocol))

    def __call__(self, number: int = 0) -> None:
        self.result = self.form(*self.data, next(self.protocols))


def task(width: int) -> Task:
    """Normal vectors; the label is the largest of noisy linear functions of them."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((ITEMS + 2 * TESTED, width), dtype=np.float32)
    scores = vectors @ rng.standard_normal((width, CLASSES), dtype=np.float32) / np.sqrt(width)
    labels = (scores + NOISE * rng.gumbel(size=scores.shape)).argmax(1)
    ends = [ITEMS, ITEMS + TESTED]
    train, dev, test = zip(np.split(vectors, ends), np.split(labels, ends), strict=True)
    return train, dev, test


def gather(vectors: np.ndarray, batch_size: int) -> None:
    """The copies of one pass, as the fast form makes them."""
    items, order = torch.from_numpy(vectors), torch.from_numpy(np.random.default_rng(0).permutation(len(vectors)))
    batch = torch.empty(batch_size, vectors.shape[1])
    for rows in order[: len(order) - len(order) % batch_size].view(-1, batch_size):
        torch.index_select(items, 0, rows, out=batch)


def least(work: Callable[[], object], clock: Callable[[], float], times: int = 5) -> float:
    """Seconds of the fastest of several calls."""
    seconds = []
    for _ in range(times):
        begun = clock()
        work()
        seconds.append(clock() - begun)
    return min(seconds)


if __name__ == "__main__":
    page(rows, __doc__)
