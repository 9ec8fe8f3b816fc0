"""Training and testing one kind of probe: each encoder seed with each probe seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import split_langs
from bgt_core.vectors.linear_probe import LinearProbe
from probes.classifiers.mlp import MLPProbe
from probes.measures.config import hidden_units
from probes.measures.information import bits, share_bits
from probes.measures.splits import Cut
from probes.measures.study import Study

ProbeFactory = Callable[[int], ClassifierMixin]  # seed -> new probe
Vectors: TypeAlias = np.ndarray | csr_matrix  # (N, D)


@dataclass(frozen=True, eq=False)
class Measured:
    """The predictions of one predictor for N items, with E encoder and S probe seeds: arrays are (E, S, N)."""

    predicted: np.ndarray  # int32, -1 where a seed does not test
    bits: np.ndarray  # float32, -log2 of the probability of the true label; NaN where a seed does not test
    saved: np.ndarray  # float32, pointwise V-information: bits saved compared with the shares of the labels
    right: np.ndarray  # booleans, False where a seed does not test
    dev: float  # accuracy on dev, mean over seeds
    strength: float  # the first probe's; NaN for a probe without one
    unconverged: int  # of E * S probes


def probe_factory(probe: str, l2: float | None = None) -> ProbeFactory:
    """A factory for the probe "linear" or, with 50 hidden units, "mlp50"; UsageError for another name.

    `l2` fixes the penalty, on the sum of losses (scikit-learn's 1 / C); by default dev chooses it.
    """
    hidden = hidden_units(probe)
    chosen: dict[str, Any] = {} if l2 is None else {"strengths": (1 / l2,)}
    if hidden:
        return lambda seed: MLPProbe(hidden, random_state=seed, **chosen)
    return lambda seed: LinearProbe(random_state=seed, **chosen)


def embed_items(encoder: SentenceEncoder, study: Study, latent: str) -> np.ndarray:
    """Embed a study's sentences, (N, D); if labels are languages, each sentence in its label's."""
    sentences = study.items.sentences
    if len(split_langs(study.lang)) == 1:
        return encoder.embed(sentences, lang=study.lang, latent=latent)
    vectors: dict[int, np.ndarray] = {}  # by row
    for label, lang in enumerate(study.names):
        rows = np.flatnonzero(study.labels == label)
        vectors |= zip(rows, encoder.embed([sentences[row] for row in rows], lang=lang, latent=latent), strict=True)
    return np.stack([vectors[row] for row in range(len(sentences))])


def measure(make: ProbeFactory, inputs: Sequence[Vectors], labels: np.ndarray, cuts: Sequence[Cut]) -> Measured:
    """Fit and test on each of the inputs, one (N, D) per encoder seed, with (N,) labels from 0 on."""
    shape, classes = (len(inputs), len(cuts), len(labels)), int(labels.max()) + 1
    predicted, coded = np.full(shape, -1, np.int32), np.full(shape, np.nan, np.float32)
    saved, dev_accuracy, strengths, unconverged = coded.copy(), [], [], 0
    for encoder, vectors in enumerate(inputs):
        for seed, (train, dev, test) in enumerate(cuts):
            probe, converged = fit(make(seed), vectors, labels, train, dev)
            unconverged += not converged
            strengths.append(getattr(probe, "strength_", np.nan))
            dev_accuracy.append(np.mean(probe.predict(vectors[dev]) == labels[dev]))
            logs = probe.predict_log_proba(vectors[test])
            tested = encoder, seed, test
            predicted[tested] = probe.classes_[logs.argmax(1)]
            coded[tested] = bits(logs, probe.classes_, labels[test], classes, len(train))
            saved[tested] = share_bits(labels[train], labels[test], classes) - coded[tested]
    return Measured(
        predicted, coded, saved, predicted == labels, float(np.mean(dev_accuracy)), strengths[0], unconverged
    )


def fit(
    probe: ClassifierMixin, vectors: Vectors, labels: np.ndarray, train: np.ndarray, dev: np.ndarray
) -> tuple[ClassifierMixin, bool]:
    """Fit the probe; also return whether it converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        probe.fit(vectors[train], labels[train], (vectors[dev], labels[dev]))
    return probe, not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
