"""Can a linear probe tell two languages apart?"""

from __future__ import annotations

import numpy as np

from bgt_core.vectors.linear_probe import LinearProbe
from probes.measures.measure import fit
from probes.measures.significance import wilson

FOLDS = 5  # one tests, one is dev, three train


def language_probe_accuracy(left: np.ndarray, right: np.ndarray) -> tuple[float, float, float]:
    """Accuracy of a linear probe that tells the languages of held-out pairs apart, (N, D) and (N, D), with its 95%
    Wilson interval.

    A sentence and its translation are in the same fold. 0.5 is chance.
    """
    fold = np.tile(np.arange(len(left)) % FOLDS, 2)
    vectors, labels = np.concatenate([left, right]), np.repeat([0, 1], len(left))
    train, dev, test = fold > 1, fold == 1, fold == 0
    probe, _ = fit(LinearProbe(), vectors, labels, train, dev)
    correct = probe.predict(vectors[test]) == labels[test]
    return float(correct.mean()), *wilson(correct.sum(), len(correct))
