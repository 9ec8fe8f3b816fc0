"""Compare our probing by SentEval's protocol with SentEval's own code. This repository contains no code of SentEval.

    git clone https://github.com/facebookresearch/SentEval
    python -m bench probing --senteval SentEval

Our code trains the classifiers for all penalties, 1e-5 to 1e-2, at once, and always in one thread. Both sides use
minibatches of 64 items, and check the dev accuracy every 4 passes, to stop early. The first row measures the whole
protocol. The other rows measure only a few passes, because every pass takes the same time. SentEval needs CUDA and an
old Python. `Clone` replaces the calls that need them. This changes neither the results nor the time.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import chain, repeat
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from bench.measure import Measurement, clock_of, compare, product_rate, turns
from bgt_core.errors import NotFound
from probes.classifiers.senteval import SentEval, Split, split_classify

ITEMS, TESTED, CLASSES = 20_000, 2_000, 6
NOISE = 1.5  # scale of the noise in the labels, chosen so that accuracies are near 30%, far from chance and from 100%
WHOLE, LOOK = SentEval(), SentEval(hidden=50, max_epoch=0)
ROWS = (  # width of the vectors, protocol, name of the measured part
    (1024, WHOLE, "until every early stop"),
    (256, replace(LOOK, hidden=0), "4 passes"),
    (256, LOOK, "50 hidden units, 4 passes"),
    (1024, LOOK, "50 hidden units, 4 passes"),
    (1024, SentEval(hidden=200, epoch_size=1, max_epoch=0), "200 hidden units, 1 pass"),
)


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Compare the training of probes without and with a hidden layer."""
    if not options.senteval:
        print("Nothing was measured; pass a clone of SentEval as --senteval.")
        return
    clone = Clone(options.senteval)
    for width, protocol, part in ROWS[2:3] if options.toy else ROWS:
        yield measured(options, clone, width, protocol, part)


def measured(options: argparse.Namespace, clone: Clone, width: int, protocol: SentEval, part: str) -> Measurement:
    """Time our code and SentEval's on one task, whose vectors have `width` units."""
    train, dev, test = task(width, ITEMS // 100 if options.toy else ITEMS)
    results: dict[str, Any] = {}

    def form(name: str, classify: Callable[..., Any]) -> Callable[[int], None]:
        protocols = chain([replace(protocol, epoch_size=1, max_epoch=0)], repeat(protocol))  # warm-up first

        def run(_: int) -> None:
            results[name] = classify(train, dev, test, next(protocols))

        return run

    forms = {"ours": form("ours", split_classify), "peer": form("peer", clone.split_classify)}
    times = turns(forms, options.rounds, clock_of(options.threads))
    ours, (_, accuracy) = results["ours"], results["peer"]
    penalty, predicted = clone.last.l2reg, clone.last.predict(test[0])[:, 0].astype(int)
    hidden, items = protocol.hidden, len(train[0])
    weights = width * hidden + hidden * CLASSES if hidden else width * CLASSES
    operations = sum(ours.epochs) * items * 2 * 2 * weights  # operations of the forward and backward passes
    return compare(
        f"probing task, {items:,} x {width}, {CLASSES} classes: {part}",
        "SentEval's own classifier",
        times["ours"],
        times["peer"],
        ">= 70 % of the floor" if hidden else ">= 10",
        f"test accuracy {ours.test_accuracy:.2f} against {accuracy:.2f}, L2 {ours.penalty:g} against {penalty:g}, "
        f"{np.sum(ours.predicted != predicted)} of {len(predicted):,} predictions differ",
        *("passes", max(ours.epochs), operations, product_rate(torch.float32, 1)),
    )


def task(width: int, items: int) -> tuple[Split, Split, Split]:
    """Draw normal vectors whose label is the index of the largest of CLASSES linear functions of them, with noise."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((items + 2 * TESTED, width), dtype=np.float32)
    scores = vectors @ rng.standard_normal((width, CLASSES), dtype=np.float32) / np.sqrt(width)
    labels = (scores + NOISE * rng.gumbel(size=scores.shape)).argmax(1)
    ends = [items, items + TESTED]
    train, dev, test = zip(np.split(vectors, ends), np.split(labels, ends), strict=True)
    return train, dev, test


class Clone:
    """SentEval's code, imported from a clone of its repository. A process can import only one clone. Raises NotFound if
    the folder is not a clone."""

    def __init__(self, path: Path):
        if not (path / "senteval" / "probing.py").is_file():
            raise NotFound(f"--senteval {path}: not a clone of SentEval; clone github.com/facebookresearch/SentEval.")
        sys.path.insert(0, str(path.resolve()))
        vars(inspect).setdefault("getargspec", lambda function: inspect.getfullargspec(function)[:4])
        self.validation = import_module("senteval.tools.validation")
        classifier = import_module("senteval.tools.classifier")
        for movable in (torch.Tensor, torch.nn.Module):
            movable.cuda = lambda self: self
        torch_on_cpu = ModuleType("torch")
        vars(torch_on_cpu).update(vars(torch), device=lambda name: torch.device("cpu"))
        vars(classifier)["torch"] = torch_on_cpu
        make = classifier.MLP

        def kept(*arguments: Any, **named: Any) -> Any:
            self.last = make(*arguments, **named)  # kept because SentEval does not return the predictions
            return self.last

        vars(self.validation)["MLP"] = kept

    def split_classify(self, train: Split, dev: Split, test: Split, protocol: SentEval) -> tuple[float, float]:
        """Run SentEval's `SplitClassifier` on labels 0 to C - 1. Return the accuracies on dev and test, in percent."""
        splits = {"train": train, "valid": dev, "test": test}
        classifier = {"optim": "adam", "batch_size": 64, "tenacity": 5, "nhid": protocol.hidden}
        classifier |= {"epoch_size": protocol.epoch_size, "max_epoch": protocol.max_epoch}
        config = {"nclasses": int(max(train[1])) + 1, "seed": protocol.seed, "usepytorch": True}
        vectors = {name: split[0] for name, split in splits.items()}
        labels = {name: np.asarray(split[1]) for name, split in splits.items()}
        return self.validation.SplitClassifier(vectors, labels, {**config, "classifier": classifier}).run()
