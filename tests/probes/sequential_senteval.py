"""A sequential version of `probes.classifiers.senteval`, which trains one classifier after the other, as SentEval does.

It follows SentEval's protocol with torch's own modules, loss, gradients and optimiser.
"""

import copy

import numpy as np
import torch
from torch import nn

from probes.classifiers.senteval import SentEval, Split, SplitResult


def split_classify(train: Split, dev: Split, test: Split, protocol: SentEval) -> SplitResult:
    """Return the result that `probes.classifiers.senteval.split_classify` must have for the same arguments."""
    classes = np.unique(train[1])
    train, dev, test = ((vectors, np.searchsorted(classes, labels)) for vectors, labels in (train, dev, test))
    fitted = [fit(train, dev, len(classes), penalty, protocol) for penalty in protocol.penalties]
    accuracies = [round(100 * score(model, *dev), 2) for model, _ in fitted]
    winner = int(np.argmax(accuracies))
    model, _ = fit(train, dev, len(classes), protocol.penalties[winner], protocol)  # SentEval retrains the best model
    return SplitResult(
        penalty=protocol.penalties[winner],
        dev_accuracy=accuracies[winner],
        test_accuracy=round(100 * score(model, *test), 2),
        dev_accuracies=tuple(accuracies),
        epochs=tuple(passed for _, passed in fitted),
        predicted=classes[predict(model, test[0])],
    )


def fit(train: Split, dev: Split, classes: int, penalty: float, protocol: SentEval) -> tuple[nn.Module, int]:
    """Return the network with the best dev accuracy, and the number of passes over the data until training stopped."""
    order = np.random.RandomState(protocol.seed)
    vectors, labels = torch.FloatTensor(train[0]), torch.LongTensor(train[1])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(protocol.seed)
        model: nn.Module = nn.Linear(vectors.shape[1], protocol.hidden or classes)
        if protocol.hidden:
            model = nn.Sequential(model, nn.Sigmoid(), nn.Linear(protocol.hidden, classes))
    optimiser = torch.optim.Adam(model.parameters(), weight_decay=penalty)
    best, kept, failures, passed = -1.0, model, 0, 0
    while passed <= protocol.max_epoch:
        for _ in range(protocol.epoch_size):
            for rows in torch.LongTensor(order.permutation(len(vectors))).split(protocol.batch_size):
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(vectors[rows]), labels[rows]).backward()
                optimiser.step()
        passed += protocol.epoch_size
        accuracy = score(model, *dev)
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(model)
        elif failures >= protocol.tenacity:
            break
        else:
            failures += 1
    return kept, passed


@torch.no_grad()
def predict(model: nn.Module, vectors: np.ndarray) -> np.ndarray:
    """Predict the classes (N,) of vectors (N, D)."""
    return model(torch.FloatTensor(vectors)).argmax(1).numpy()


def score(model: nn.Module, vectors: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy, from 0 to 1."""
    return float((predict(model, vectors) == labels).mean())
