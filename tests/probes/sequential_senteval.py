"""The straight form of `probes.classifiers.senteval`: one classifier after another, as SentEval trains them.

Written from the protocol, with torch's own modules, loss, gradient and optimiser; kept as what the fast form is timed
against and must agree with.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn

from probes.classifiers.senteval import SentEval, Split, SplitResult


def split_classify(train: Split, dev: Split, test: Split, protocol: SentEval) -> SplitResult:
    """What `probes.classifiers.senteval.split_classify` says of the same arguments."""
    classes = np.unique(train[1])
    train, dev, test = ((vectors, np.searchsorted(classes, labels)) for vectors, labels in (train, dev, test))
    dev_accuracies, epochs = [], []
    for penalty in protocol.penalties:
        model, passed = fit(train, dev, len(classes), penalty, protocol)
        dev_accuracies.append(round(100 * score(model, *dev, protocol.batch_size), 2))
        epochs.append(passed)
    winner = int(np.argmax(dev_accuracies))
    model, _ = fit(train, dev, len(classes), protocol.penalties[winner], protocol)
    return SplitResult(
        penalty=protocol.penalties[winner],
        dev_accuracy=dev_accuracies[winner],
        test_accuracy=round(100 * score(model, *test, protocol.batch_size), 2),
        dev_accuracies=tuple(dev_accuracies),
        epochs=tuple(epochs),
        predicted=classes[predict(model, test[0], protocol.batch_size)],
    )


def fit(train: Split, dev: Split, classes: int, penalty: float, protocol: SentEval) -> tuple[nn.Module, int]:
    """The network that is best on dev, and the passes it took to stop."""
    order = np.random.RandomState(protocol.seed)
    vectors, labels = torch.FloatTensor(train[0]), torch.LongTensor(train[1])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(protocol.seed)
        model = network(vectors.shape[1], protocol.hidden, classes)
    loss_of = nn.CrossEntropyLoss()
    optimiser = torch.optim.Adam(model.parameters(), weight_decay=penalty)
    best, kept, failures, passed = -1.0, model, 0, 0
    while passed <= protocol.max_epoch:
        for _ in range(protocol.epoch_size):
            permutation, costs = order.permutation(len(vectors)), []
            for begin in range(0, len(vectors), protocol.batch_size):
                rows = torch.LongTensor(permutation[begin : begin + protocol.batch_size])
                loss = loss_of(model(vectors.index_select(0, rows)), labels.index_select(0, rows))
                costs.append(loss.item())
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        passed += protocol.epoch_size
        accuracy = score(model, *dev, protocol.batch_size)
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(model)
        elif failures >= protocol.tenacity:
            break
        else:
            failures += 1
    return kept, passed


def network(width: int, hidden: int, classes: int) -> nn.Module:
    """(B, D) -> logits (B, C)."""
    if hidden:
        return nn.Sequential(nn.Linear(width, hidden), nn.Sigmoid(), nn.Linear(hidden, classes))
    return nn.Linear(width, classes)


@torch.no_grad()
def predict(model: nn.Module, vectors: np.ndarray, batch_size: int) -> np.ndarray:
    """(N, D) -> classes (N,)."""
    parts = torch.FloatTensor(vectors).split(batch_size)
    return np.concatenate([model(part).argmax(1).numpy() for part in parts])


def score(model: nn.Module, vectors: np.ndarray, labels: np.ndarray, batch_size: int) -> float:
    """Accuracy, a fraction."""
    return float((predict(model, vectors, batch_size) == labels).mean())
