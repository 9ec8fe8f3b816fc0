"""SentEval's own code from a clone (github.com/facebookresearch/SentEval), made to run on a CPU with today's libraries.

Nothing of it is stored here, and nothing that it computes or that takes its time is changed:

- It runs on CUDA only: `.cuda()` returns its argument, and the device that it asks for is the CPU.
- `inspect.getargspec` is gone from Python: its successor stands in.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from bgt_core.errors import NotFound
from probes.classifiers.senteval import SentEval, Split

CLASSIFIER = {"optim": "adam", "batch_size": 64, "tenacity": 5, "epoch_size": 4, "max_epoch": 200}


@dataclass(frozen=True, eq=False)
class Outcome:
    """What SentEval says of one task, and what its last classifier, the winner trained again, predicts."""

    dev_accuracy: float  # percent
    test_accuracy: float
    penalty: float
    predicted: np.ndarray  # (N,) numbers of classes, of the test items in SentEval's order


class Clone:
    """Import SentEval from a folder; NotFound if it is absent. It must be the only one in this process."""

    def __init__(self, path: Path):
        if not (path / "senteval" / "probing.py").is_file():
            raise NotFound(f"{path}: there is no clone of SentEval; get it from github.com/facebookresearch/SentEval.")
        sys.path.insert(0, str(path.resolve()))
        vars(inspect).setdefault("getargspec", lambda function: inspect.getfullargspec(function)[:4])
        self.probing = import_module("senteval.probing")
        self.validation = import_module("senteval.tools.validation")
        self.dotdict = import_module("senteval.utils").dotdict
        self._trained: list[Any] = []
        classifier = import_module("senteval.tools.classifier")
        vars(classifier)["torch"] = on_cpu()
        vars(self.validation)["MLP"] = self._kept(classifier.MLP)

    def _kept(self, make: Any) -> Any:
        """The same classifier, kept, for it predicts more than SentEval reports."""

        def kept(*arguments: Any, **named: Any) -> Any:
            self._trained[:] = [make(*arguments, **named)]
            return self._trained[0]

        return kept

    def split_classify(self, train: Split, dev: Split, test: Split, protocol: SentEval) -> tuple[float, float]:
        """Its `SplitClassifier`, with our names for its arguments, labels 0 to C - 1: (dev, test) accuracy, percent."""
        splits = {"train": train, "valid": dev, "test": test}
        config = {
            "nclasses": int(max(train[1])) + 1,
            "seed": protocol.seed,
            "usepytorch": True,
            "classifier": {**CLASSIFIER, "nhid": protocol.hidden, "max_epoch": protocol.max_epoch}
            | {"epoch_size": protocol.epoch_size},
        }
        vectors = {name: split[0] for name, split in splits.items()}
        labels = {name: np.asarray(split[1]) for name, split in splits.items()}
        return self.validation.SplitClassifier(vectors, labels, config).run()

    def probe(self, file: Path, batcher: Any, hidden: int = 0) -> tuple[float, float]:
        """Its `PROBINGEval` on a file, by its own call: (dev, test) accuracy, percent."""
        task = self.probing.PROBINGEval("Probing", str(file))
        params = {"usepytorch": True, "batch_size": 128, "seed": 1111, "classifier": {**CLASSIFIER, "nhid": hidden}}
        result = task.run(self.dotdict(params), batcher)
        return result["devacc"], result["acc"]

    def outcome(self, accuracies: tuple[float, float], test: np.ndarray) -> Outcome:
        """What was just run, and its predictions of `test` vectors (N, D)."""
        (winner,) = self._trained
        return Outcome(*accuracies, winner.l2reg, winner.predict(test)[:, 0].astype(int))


def on_cpu() -> ModuleType:
    """torch for SentEval's classifier: every device is the CPU."""
    for movable in (torch.Tensor, torch.nn.Module):
        movable.cuda = lambda self: self
    torch_on_cpu = ModuleType("torch")
    vars(torch_on_cpu).update(vars(torch), device=lambda name: torch.device("cpu"))
    return torch_on_cpu
