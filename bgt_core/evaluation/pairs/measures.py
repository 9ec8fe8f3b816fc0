"""Measures of scores on labelled pairs. Weights (B, N) are resamples of N pairs, ones (1, N) the pairs themselves
(`evaluation.bootstrap`); a pair is predicted to mean the same if its score is at least the threshold."""

from __future__ import annotations

import numpy as np

from bgt_core.evaluation.bootstrap import ranks

RATES = np.linspace(0, 1, 101)  # false positive rates at which a curve is read


def best_threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """The threshold with the highest accuracy on N pairs, the lowest if several tie: (N,), (N,) bool.

    It lies halfway between two scores, at the lowest score if all pairs are best predicted positive, and just above the
    highest if none is.
    """
    values, group = np.unique(scores, return_inverse=True)  # (G,) rising
    # correct minus wrong, if pairs with that score are predicted positive
    gained = np.bincount(group, weights=np.where(labels, 1.0, -1.0))
    right = np.append(gained[::-1].cumsum()[::-1], 0.0)  # (G + 1,): sums from each value on; the last is 0
    edges = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, [np.nextafter(values[-1], np.inf)]])
    return float(edges[right.argmax()])


def accuracy(weights: np.ndarray, judged: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Accuracy on the drawn pairs: (B, N), (N,) bool, (N,) bool -> (B,)."""
    return weights @ (judged == labels) / weights.sum(1)


def f1(weights: np.ndarray, judged: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """F1, 2 TP / (2 TP + FP + FN), of the drawn pairs; 0 without positives: (B, N), (N,), (N,) -> (B,)."""
    hits, total = weights @ (judged & labels), weights @ judged.astype(float) + weights @ labels.astype(float)
    return 2 * hits / np.maximum(total, 1)


def auc(weights: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The area under the ROC curve: the probability that a pair labelled 1 outscores one labelled 0, ties counting
    half, among the drawn pairs: (B, N), (N,), (N,) bool -> (B,); 1/2 if all have the same label."""
    positive, total = weights @ labels.astype(float), weights.sum(1)
    negative = total - positive
    wins = (weights * ranks(weights, scores)) @ labels.astype(float) - positive * (positive + 1) / 2
    both = positive * negative
    return np.where(both > 0, wins / np.maximum(both, 1), 0.5)


def roc(weights: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The ROC curve: the true positive rate at each of `RATES`, (B, N), (N,), (N,) bool -> (B, 101).

    Between two thresholds, and among equal scores, it is a straight line; at a vertical step, its upper end counts. It
    is the diagonal if all drawn pairs have the same label.
    """
    order = np.argsort(-scores)
    # (G,): the last index of each distinct score
    ends = np.flatnonzero(np.append(scores[order][1:] < scores[order][:-1], True))
    drawn, positive = weights[:, order], labels[order]
    true, false = ((drawn * kind).cumsum(1)[:, ends] for kind in (positive, ~positive))  # (B, G)
    curves = np.tile(RATES, (len(weights), 1))
    for curve, hits, misses in zip(curves, true, false, strict=True):
        if hits[-1] and misses[-1]:
            curve[:] = np.interp(RATES, np.append(0, misses / misses[-1]), np.append(0, hits / hits[-1]))
    return curves
