"""Probing by SentEval's protocol: all penalties as one stack, against one classifier after another.

The peer is SentEval's own code where `--senteval` says where a clone of it lies, and our sequential form otherwise.
Penalties 1e-5 to 1e-2, minibatches of 64, a look at dev every 4 passes, early stopping. The first row is the whole
protocol; the others are parts of it, as each pass costs the same. Ours takes one thread whatever `--threads` says.

With `--probing` too, `bgt-probe --senteval` stands beside SentEval's `PROBINGEval` on its files, both reading the file,
embedding its sentences with the model that ships (as it is loaded: bf16 where the CPU has it) and probing them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bgt_core
import probes
from benchmarks import sequential_senteval
from benchmarks.measure import Measurement, clock_of, interleave, over, page, product_rate, profile
from benchmarks.senteval import Clone, Outcome
from bgt_core.data.textfile import lines
from bgt_core.embedder import Embedder
from bgt_core.encoders.senteval import senteval_functions
from probes.classifiers.senteval import SentEval, Split, SplitResult, split_classify
from probes.data.folder import find_source
from probes.dataset import load_items
from probes.tasks import TASKS

Task = tuple[Split, Split, Split]

ITEMS, TESTED, CLASSES = 20_000, 2_000, 6
NOISE = 1.5  # in the labels; accuracies come out near 30%, far from chance and from certainty
PROBED = ("subj-num", "tense", "depth")


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Two widths of softmax regression, hidden layers, and files."""
    clone = Clone(options.senteval) if options.senteval else None
    if not (clone and options.probing):
        print(
            "bgt-probe --senteval beside SentEval's PROBINGEval: skipped; give --senteval CLONE and --probing FOLDER."
        )
    look, one_pass = SentEval(hidden=50, max_epoch=0), SentEval(hidden=200, epoch_size=1, max_epoch=0)
    yield measure(options, clone, 1024, SentEval(), "until every early stop")
    yield measure(options, clone, 256, replace(look, hidden=0), "4 passes")
    yield measure(options, clone, 256, look, "50 hidden units, 4 passes")
    yield measure(options, clone, 1024, look, "50 hidden units, 4 passes")
    yield measure(options, clone, 1024, one_pass, "200 hidden units, 1 pass")
    if clone and options.probing:
        encoder = bgt_core.load()
        for name in PROBED:
            for latent in encoder.latents:
                yield from_file(clone, options, encoder, name, latent)


def measure(options: argparse.Namespace, clone: Clone | None, width: int, protocol: SentEval, part: str) -> Measurement:
    """Both forms on one task; `width` is that of its vectors."""
    data, clock = task(width), clock_of(options.threads)
    fast = TimedForm(split_classify, data, protocol)
    slow = TimedForm(clone.split_classify if clone else sequential_senteval.split_classify, data, protocol)
    ours, peer = interleave(fast, slow, options.threads, options.rounds)
    result, seconds = fast.result, statistics.median(ours)
    expected = clone.outcome(slow.result, data[2][0]) if clone else outcome(slow.result)
    passes, vectors = max(result.epochs), data[0][0]

    reading = passes * least(lambda: vectors.sum(), clock)  # a sum of them all takes as long as reading them
    hidden = protocol.hidden
    weights = width * hidden + hidden * CLASSES if hidden else width * CLASSES
    products = sum(result.epochs) * ITEMS * 4 * weights / product_rate(torch.float32, 1)  # forward, backward
    floor = max(reading, products)
    gathering = passes * least(lambda: gather(vectors, protocol.batch_size), clock)
    return Measurement(
        work=f"probing task, {ITEMS:,} x {width}, {CLASSES} classes: {part}",
        against="SentEval's own classifier" if clone else "the sequential form of SentEval's classifier",
        ratios=over(peer, ours),
        target=">= 70 % of the floor" if hidden else ">= 10",
        ours=f"{seconds:.2f} s, {1e3 * seconds / passes:.0f} ms a pass",
        peer=f"{statistics.median(peer):.2f} s",
        error=differences(outcome(result), expected),
        floor=f"{floor:.3f} s, the longer of reading the vectors ({reading:.3f} s) and the products "
        f"({products:.3f} s): {statistics.median(peer) / floor:.0f} times the peer's rate",
        reached=floor / seconds,
        bottleneck=f"gathering minibatches {100 * gathering / seconds:.0f}% of the time; "
        f"of torch's operators {profile(lambda: split_classify(*data, replace(protocol, max_epoch=0)))}",
    )


def from_file(clone: Clone, options: argparse.Namespace, encoder: Embedder, name: str, latent: str) -> Measurement:
    """`bgt-probe --senteval` and SentEval on one file, once each: they take seconds, and half a minute."""
    source, clock = find_source(options.probing, TASKS[name], "en").files[0], clock_of(options.threads)
    tested = [line.decode().rstrip().split("\t") for line in lines(source) if line.startswith(b"te")]
    order = sorted(range(len(tested)), key=lambda row: (len(tested[row][-1].split()), tested[row][1]))
    _, batcher = senteval_functions(encoder, latent=latent)
    batches: list[np.ndarray] = []

    def kept(params: Any, batch: Any) -> np.ndarray:
        batches.append(batcher(params, batch))
        return batches[-1]

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{TASKS[name].file}.txt"
        file.write_bytes(b"".join(line + b"\n" for line in lines(source)))
        begun = clock()
        items = load_items(TASKS[name], "en", file, senteval=True).items
        result = probes.run_senteval_protocol(encoder, name, items, lang="en", latents=[latent])
        middle = clock()
        accuracies = clone.probe(file, kept)
        end = clock()
    expected = clone.outcome(accuracies, np.concatenate(batches)[-len(tested) :])
    predicted = result.predictions[latent].labels[0, 0]
    ours = replace(
        expected,
        dev_accuracy=np.nan,  # not reported
        test_accuracy=round(100 * result.rows[0].accuracy, 2),
        penalty=float(result.rows[0].probe.split()[-1]),
        predicted=predicted[predicted >= 0][order],
    )
    return Measurement(
        work=f"bgt-probe --senteval, {name}, {latent} latent, {len(items.labels):,} sentences: file to accuracy",
        against="SentEval's PROBINGEval on the same file and model",
        ratios=[(end - middle) / (middle - begun)],
        target=">= 3",
        ours=f"{middle - begun:.1f} s",
        peer=f"{end - middle:.1f} s",
        error=differences(ours, expected),
        floor="that of the rows above, and of embedding",
        bottleneck="embedding the sentences, and the classifier",
    )


def outcome(result: SplitResult) -> Outcome:
    """A result of ours, as SentEval's is kept."""
    return Outcome(result.dev_accuracy, result.test_accuracy, result.penalty, result.predicted)


def differences(ours: Outcome, expected: Outcome) -> str:
    """Both test accuracies and penalties, and how many predictions differ."""
    return (
        f"test accuracy {ours.test_accuracy:.2f} against {expected.test_accuracy:.2f}, L2 {ours.penalty:g} against "
        f"{expected.penalty:g}, {np.sum(ours.predicted != expected.predicted)} of {len(expected.predicted):,} "
        "predictions differ"
    )


class TimedForm:
    """One form on one task; the first call, which is not timed, makes one pass."""

    def __init__(self, form: Callable[..., Any], data: Task, protocol: SentEval):
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


def least(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds of the fastest of five calls."""
    seconds = []
    for _ in range(5):
        begun = clock()
        work()
        seconds.append(clock() - begun)
    return min(seconds)


if __name__ == "__main__":
    page(rows, __doc__)
