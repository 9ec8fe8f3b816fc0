"""SentEval's probing classifier, by its own protocol, for all penalties at once.

SentEval (Conneau & Kiela, 2018; `SplitClassifier`) trains one classifier after another, each from the same seed: all
start from the same weights and see the same minibatches. Here they are one stack. A minibatch is gathered once, one
product serves every penalty, the gradient is written down instead of recorded, and a classifier leaves the stack
when its own early stop comes. What is followed:

- Vectors go in as they are, in float32: no centring, no scaling.
- `hidden=0`, its default, is softmax regression; otherwise linear, sigmoid, linear. Classes are the sorted labels of
  train.
- Weights and biases start as `torch.nn.Linear` draws them from the seed; each pass over train has its own order,
  NumPy's legacy permutation from the same seed.
- Mean cross-entropy of minibatches of 64, the last of a pass smaller. Adam at its defaults; the penalty times the
  parameter is added to the gradient, for biases too.
- A look at dev after every 4 passes. Better than ever before: these weights are kept. Otherwise it is a failure;
  later successes don't make up for failures, and the sixth ends the training.
- Training goes on while no more than 200 passes are done: 4 at a time, at most 204.
- Penalties 1e-5, 1e-4, 1e-3, 1e-2; the best dev accuracy wins, in percent rounded to two decimals, the first of equals.
- SentEval then trains the winner again from the same seed. That gives the same weights again, and is left out.

Faults of the original, not copied:

- It runs on CUDA only, and not on current libraries: `inspect.getargspec`, `volatile`, a version compared as text.
- `size_average = False`, set once the loss is made, was meant to sum over a minibatch; torch ignores it since 0.4.1,
  and so the mean above is what SentEval has computed since.
- Every classifier seeds the global generators of NumPy and torch. Here they are not touched.
- Labels given as a list fail, as does `predict_proba`; a label that train lacks is a bare KeyError.
- Its classifier calls `super(self.__class__)`, and so can't be subclassed.

Not offered: its dropout before the sigmoid, off unless asked for, its other optimisers, and its scikit-learn mode,
whose solver differs with the library's version. What `split_classify` can't see is in `probes.measures.paper`: no
hidden layer for word content, and the order of the items. The published table chose 50, 100 or 200 hidden units and a
dropout on dev; SentEval does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from bgt_core.backend import linear
from bgt_core.errors import DataError

Split = tuple[np.ndarray, Sequence[object]]  # (N, D) vectors and their N labels
Parameters = list[Tensor]  # of S networks: weight (S, out, in), bias (S, out, 1), and so on from the first layer


@dataclass(frozen=True)
class SentEval:
    """The choices of SentEval; its users set `hidden` and `seed`."""

    hidden: int = 0  # units of the hidden layer; 0: no such layer
    penalties: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)  # L2
    batch_size: int = 64
    epoch_size: int = 4  # passes from one look at dev to the next
    tenacity: int = 5  # failures that don't end the training
    max_epoch: int = 200  # passes after which no more begin
    seed: int = 1111


@dataclass(frozen=True)
class SplitResult:
    """Accuracies are percent with two decimals, as SentEval reports them."""

    penalty: float  # the winner
    dev_accuracy: float
    test_accuracy: float
    dev_accuracies: tuple[float, ...]  # of each penalty
    passes: tuple[int, ...]  # over train, of each penalty, when it stopped
    predicted: np.ndarray  # (N,) labels, of the test items


@dataclass
class Candidate:
    """What is known of one penalty."""

    penalty: float
    best: int = -1  # dev items right
    kept: Parameters = field(default_factory=list)  # those of that look
    failures: int = 0
    passes: int = 0


@threadpool_limits.wrap(limits=1)  # products this small gain nothing from threads, and sums keep their order
@torch.inference_mode()
def split_classify(train: Split, dev: Split, test: Split, protocol: SentEval | None = None) -> SplitResult:
    """Train on `train`, stop and choose the penalty on `dev`, report on `test`; the same whenever it is called.

    Vectors are read and never written; float32 ones are not copied as a whole. Raises BgtError for vectors that are
    not finite, not one a label or not of the width of train, for fewer than two classes, and for a label that train
    lacks.
    """
    protocol = protocol or SentEval()
    classes, width = np.unique(np.asarray(train[1])), np.shape(train[0])[-1]
    vectors, labels = _checked("train", train, classes, width)
    dev_vectors, dev_labels = map(torch.tensor, _checked("dev", dev, classes, width))
    test_vectors, test_labels = _checked("test", test, classes, width)

    items = torch.from_numpy(vectors if vectors.flags.writeable else vectors.copy())

    sizes = [width, protocol.hidden, len(classes)] if protocol.hidden else [width, len(classes)]
    stack = Stack(sizes, protocol.penalties, protocol.seed)
    order = np.random.RandomState(protocol.seed)
    candidates = [Candidate(penalty) for penalty in protocol.penalties]
    running, passes = candidates, 0
    while running and passes <= protocol.max_epoch:
        for _ in range(protocol.epoch_size):
            stack.train(items, labels, order.permutation(len(labels)), protocol.batch_size)
        passes += protocol.epoch_size
        right = (_predict(stack.parameters, dev_vectors) == dev_labels).sum(1).tolist()
        for place, (candidate, count) in enumerate(zip(running, right, strict=True)):
            candidate.passes = passes
            if count > candidate.best:
                candidate.best, candidate.kept = count, [part[[place]] for part in stack.parameters]
            else:
                candidate.failures += 1
        places = [place for place, candidate in enumerate(running) if candidate.failures <= protocol.tenacity]
        if len(places) < len(running):
            stack.keep(places)
            running = [running[place] for place in places]

    accuracies = [_percent(candidate.best, len(dev_labels)) for candidate in candidates]
    winner = candidates[accuracies.index(max(accuracies))]
    found = _predict(winner.kept, torch.tensor(test_vectors))[0].numpy()  # (N,)
    return SplitResult(
        penalty=winner.penalty,
        dev_accuracy=max(accuracies),
        test_accuracy=_percent(int((found == test_labels).sum()), len(found)),
        dev_accuracies=tuple(accuracies),
        passes=tuple(candidate.passes for candidate in candidates),
        predicted=classes[found],
    )


class Stack:
    """S networks of one shape from one start, each with its own penalty, and Adam's state."""

    def __init__(self, sizes: Sequence[int], penalties: Sequence[float], seed: int, rate: float = 1e-3):
        self.rate = rate
        generator = torch.Generator().manual_seed(seed)
        start = []
        for inside, outside in pairwise(sizes):
            weight, bias = torch.empty(outside, inside), torch.empty(outside, 1)
            nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)  # as nn.Linear does
            nn.init.uniform_(bias, -1 / math.sqrt(inside), 1 / math.sqrt(inside), generator=generator)
            start += [weight, bias]
        self.shapes, self.step = [part.shape for part in start], torch.zeros(())
        values = torch.cat([part.repeat(len(penalties), 1, 1).flatten() for part in start])
        each = torch.cat([torch.tensor(penalties).repeat_interleave(part.numel()) for part in start])
        self._hold(torch.stack([values, each, torch.zeros_like(values), torch.zeros_like(values)]))

    def _hold(self, state: Tensor) -> None:
        """(4, parameters of all networks): values, penalties, and Adam's two moments, each in one row of memory."""
        self.state = state
        self.values, self.penalties, self.means, self.squares = state
        self.gradient = torch.empty_like(self.values)
        self.parameters, self.gradients = self._parts(self.values), self._parts(self.gradient)

    def _parts(self, row: Tensor) -> list[Tensor]:
        """The same memory as weight, bias, ..., each (..., S, out, in)."""
        networks = row.shape[-1] // sum(shape.numel() for shape in self.shapes)
        parts = row.split([networks * shape.numel() for shape in self.shapes], -1)
        return [part.unflatten(-1, (networks, *shape)) for part, shape in zip(parts, self.shapes, strict=True)]

    def keep(self, places: list[int]) -> None:
        """Go on with the networks at `places` alone."""
        self._hold(torch.cat([part[:, places].flatten(1) for part in self._parts(self.state)], 1))

    def train(self, vectors: Tensor, labels: np.ndarray, order: np.ndarray, batch_size: int) -> None:
        """One pass: (N, D) vectors and (N,) numbers of classes, taken in that order."""
        networks, whole = len(self.parameters[0]), len(order) - len(order) % batch_size
        for rows in (order[:whole].reshape(-1, batch_size), order[whole:].reshape(1, -1)):
            if rows.size:
                batch = torch.empty(rows.shape[1], vectors.shape[1])
                classes = torch.from_numpy(labels[rows])[:, None, None].expand(-1, networks, -1, -1)
                for these, truth in zip(torch.from_numpy(rows), classes, strict=True):
                    self._update(torch.index_select(vectors, 0, these, out=batch), truth)

    def _update(self, batch: Tensor, truth: Tensor) -> None:
        """One minibatch, (B, D); classes, (S, 1, B)."""
        *inside, logits = forward(self.parameters, batch)
        gradient = logits.softmax(1)  # (S, C, B): that of cross-entropy is softmax minus one-hot
        gradient.scatter_(1, truth, -1.0, reduce="add").mul_(1 / truth.shape[2])
        for depth in reversed(range(1, len(inside))):
            signal = inside[depth]  # (S, in, B), a sigmoid
            torch.bmm(gradient, signal.mT, out=self.gradients[2 * depth])
            torch.sum(gradient, 2, keepdim=True, out=self.gradients[2 * depth + 1])
            gradient = self.parameters[2 * depth].mT.bmm(gradient).mul_(signal).mul_(1 - signal)
        self.gradients[0].flatten(0, 1).copy_(linear(gradient.flatten(0, 1), batch.T))  # one for all networks
        torch.sum(gradient, 2, keepdim=True, out=self.gradients[1])
        self.gradient.addcmul_(self.values, self.penalties)
        self.step += 1
        torch._fused_adam_(  # what `torch.optim.adam.adam` calls, in a tenth of the whole update's time
            [self.values],
            [self.gradient],
            [self.means],
            [self.squares],
            [],
            [self.step],
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.rate,
            weight_decay=0.0,  # in the gradients already, another for each network
            eps=1e-8,
            maximize=False,
        )


def forward(parameters: Parameters, vectors: Tensor) -> list[Tensor]:
    """Vectors (N, D) -> what enters each layer, (S, in, N) after the first, then the logits, (S, C, N)."""
    weight, bias = parameters[:2]
    entering = torch.mm(weight.flatten(0, 1), vectors.T)  # one product for all networks
    signals = [vectors, entering.unflatten(0, weight.shape[:2]).add_(bias)]
    for weight, bias in zip(parameters[2::2], parameters[3::2], strict=True):
        signals[-1].sigmoid_()
        signals.append(torch.baddbmm(bias, weight, signals[-1]))
    return signals


def _predict(parameters: Parameters, vectors: Tensor) -> Tensor:
    """(N, D) vectors -> numbers of classes, (S, N)."""
    return forward(parameters, vectors)[-1].argmax(1)


def _percent(count: int, items: int) -> float:
    return round(100 * (count / items), 2)


def _checked(name: str, split: Split, classes: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """(N, D) float32 vectors and (N,) numbers of classes of a split."""
    vectors, labels = np.asarray(split[0], np.float32), np.asarray(split[1])
    if not vectors.size or vectors.shape != (len(labels), width):
        raise DataError(
            f"The {name} vectors have shape {vectors.shape}: give one of width {width} to each of {len(labels)} labels."
        )
    if not math.isfinite(vectors.sum(dtype=np.float64)):  # one NaN or infinity is enough to spoil the sum
        raise DataError(f"The {name} vectors hold NaN or infinity: mend the model, or leave those items out.")
    if len(classes) < 2:
        raise DataError(f"All train labels are '{classes[0]}': give items of two or more classes.")
    strange = set(labels.tolist()) - set(classes.tolist())
    if strange:
        raise DataError(f"Label '{min(strange)}' of {name} is not in train: leave its items out, or add some to train.")
    return vectors, np.searchsorted(classes, labels)
