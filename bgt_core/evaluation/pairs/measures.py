"""What scores of labelled pairs are worth. Weights (B, N) are resamples of N pairs, ones (1, N) the pairs themselves
(`evaluation.bootstrap`); a pair is taken for one of the same meaning where its score is at least the threshold."""

from __future__ import annotations

import numpy as np

from bgt_core.evaluation.bootstrap import ranks

RATES = np.linspace(0, 1, 101)  # false positive rates at which a curve is read


def best_threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """The threshold with which most of N pairs are judged as they are labelled, the lowest of equals: (N,), (N,) bool.

    It lies halfway between two scores, at the lowest of them where all pairs are best taken for the same, and just
    above the highest where none is.
    """
    values, group = np.unique(scores, return_inverse=True)  # (G,) rising
    gained = np.bincount(group, weights=np.where(labels, 1.0, -1.0))  # by taking pairs with that score for the same
    right = np.append(gained[::-1].cumsum()[::-1], 0.0)  # (G + 1,): those from each value on, or none
    edges = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, [np.nextafter(values[-1], np.inf)]])
    return float(edges[right.argmax()])


def accuracy(weights: np.ndarray, judged: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Share of the drawn pairs that are judged as labelled: (B, N), (N,) bool, (N,) bool -> (B,)."""
    return weights @ (judged == labels) / weights.sum(1)


def f1(weights: np.ndarray, judged: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """2 TP / (2 TP + FP + FN) of the drawn pairs, 0 where nothing is or should be found: (B, N), (N,), (N,) -> (B,)."""
    hits, total = weights @ (judged & labels), weights @ judged.astype(float) + weights @ labels.astype(float)
    return 2 * hits / np.maximum(total, 1)


def auc(weights: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The area under the ROC curve: how often a pair labelled 1 outscores one labelled 0, equals half, among the drawn
    ones: (B, N), (N,), (N,) bool -> (B,); 1/2 where all drawn ones are of one kind."""
    positive, total = weights @ labels.astype(float), weights.sum(1)
    negative = total - positive
    wins = (weights * ranks(weights, scores)) @ labels.astype(float) - positive * (positive + 1) / 2
    both = positive * negative
    return np.where(both > 0, wins / np.maximum(both, 1), 0.5)


def roc(weights: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The ROC curve: the true positive rate at each of `RATES`, (B, N), (N,), (N,) bool -> (B, 101).

    Between two thresholds, and among equal scores, it is a straight line; where it is vertical, its upper end counts.
    The diagonal where all drawn pairs are of one kind.
    """
    order = np.argsort(-scores)
    ends = np.flatnonzero(np.append(scores[order][1:] < scores[order][:-1], True))  # (G,): of each different score
    drawn, positive = weights[:, order], labels[order]
    true, false = ((drawn * kind).cumsum(1)[:, ends] for kind in (positive, ~positive))  # (B, G)
    curves = np.tile(RATES, (len(weights), 1))
    for curve, hits, misses in zip(curves, true, false, strict=True):
        if hits[-1] and misses[-1]:
            curve[:] = np.interp(RATES, np.append(0, misses / misses[-1]), np.append(0, hits / hits[-1]))
    return curves
