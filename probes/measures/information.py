"""Information of a probe in bits: V-information (Xu et al., 2020) and its pointwise form (Ethayarajh et al., 2022).

I_V(R -> Y) = H_V(Y) - H_V(Y | R): how much shorter the code of test labels becomes, with the best probe of the
family, if the vectors are known. Without vectors the best probe is the share of each label in training. On
held-out items the estimate may be below 0: the probe then predicts worse than the shares.
"""

from __future__ import annotations

import numpy as np

LN2 = np.log(2)


def bits(
    log_probabilities: np.ndarray, known: np.ndarray, labels: np.ndarray, classes: int, trained: int
) -> np.ndarray:
    """-log2 q(y) of each item, (N,): natural logs (N, K'), the labels of those columns, true labels (N,).

    Where training lacked some of the `classes`, q is mixed with one more item of each, (n q + 1) / (n + K), so that
    every label has a code.
    """
    columns = np.searchsorted(known, labels).clip(max=len(known) - 1)
    seen = known[columns] == labels
    logs = np.where(seen, log_probabilities[np.arange(len(labels)), columns], -np.inf)
    if len(known) < classes:
        logs = np.logaddexp(np.log(trained) + logs, 0.0) - np.log(trained + classes)
    return -logs / LN2


def share_bits(trained: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """-log2 of each label's share among the labels trained on: H_V(Y), item by item, (N,)."""
    known, counts = np.unique(trained, return_counts=True)
    logs = np.log(counts / len(trained))
    return bits(np.broadcast_to(logs, (len(labels), len(known))), known, labels, classes, len(trained))
