"""Train and test one kind of probe, for each encoder seed and each probe seed: accuracy, bits and selectivity.

V-information (Xu et al., 2020): I_V(R -> Y) = H_V(Y) - H_V(Y | R). It is the number of bits by which the vectors
shorten the code of the test labels, with the best probe of the family. Without vectors, the best probe predicts each
label with its frequency in training. Pointwise V-information (Ethayarajh et al., 2022) is the same quantity for one
item. On held-out items the estimate can be negative: the probe then predicts worse than the label frequencies.

A control task (Hewitt & Liang, 2019) has the same inputs, but labels that can only be memorised. Hewitt and Liang give
each word type a random label. With a random label per sentence, every probe would have chance accuracy, because no test
sentence occurs in training. So here the label belongs to a recurring key: the rarest of a sentence's frequent tokens.
Selectivity is the accuracy on the task minus that on the control task. (First tokens are poor keys: a fifth of French
sentences may share the label of "le". With them, the interval of selectivity was 17 points wide; now it is 4: subject
number, 2,000 test items.)
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import split_langs
from bgt_core.vectors.linear_probe import STRENGTHS, Layers, LinearProbe, Probe, Seed
from probes.classifiers.senteval import Stack, forward
from probes.measures.significance import bootstrap
from probes.measures.study import Cut, ProbeConfig, Study, hidden_units
from probes.task import split_tokens

ProbeFactory = Callable[[int], ClassifierMixin]  # seed -> new probe
Vectors: TypeAlias = np.ndarray | csr_matrix  # (N, D)

FREQUENT = 2_000  # number of frequent tokens that can be keys of a control task
MIN_RECURRING = 30  # minimum number of dev items, and of test items, for a control task


@dataclass(frozen=True, eq=False)
class Measured:
    """The predictions of one predictor for N items, with E encoder and S probe seeds: arrays are (E, S, N)."""

    predicted: np.ndarray  # int32, -1 for items outside a seed's test split
    bits: np.ndarray  # float32, -log2 of the probability of the true label; NaN for items outside a seed's test split
    saved: np.ndarray  # float32, pointwise V-information: bits saved compared with the label frequencies
    right: np.ndarray  # bool, False for items outside a seed's test split
    dev: float  # accuracy on dev, mean over seeds
    unconverged: int  # number of the E * S probes that did not converge


class MLPProbe(Probe):
    """An MLP with one sigmoid layer, trained by Adam; each strength stops when its dev loss stops improving."""

    def __init__(
        self,
        hidden: int = 50,
        strengths: Sequence[float] = STRENGTHS[2:],
        learning_rate: float = 3e-3,
        batch_size: int = 128,
        patience: int = 5,
        max_epochs: int = 200,
        random_state: Seed = 0,
    ):
        self.hidden = hidden
        self.strengths = strengths
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.patience = patience  # training ends after this many epochs without a better dev loss
        self.max_epochs = max_epochs  # if a strength still trains after these, it has not converged
        self.random_state = random_state

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[tuple[Layers, bool]]:
        vectors, labels = train[0], train[1].numpy()
        penalties = [1 / (strength * len(labels)) for strength in strengths]
        stack = Stack([vectors.shape[1], self.hidden, len(self.classes_)], penalties, seed, self.learning_rate)
        order = np.random.default_rng(seed)
        best: dict[int, tuple[float, int, Layers]] = {}  # strength -> its least loss, with epoch and layers
        running = list(range(len(strengths)))  # running[i] is the strength of network i of the stack
        for epoch in range(self.max_epochs):
            stack.train(vectors, labels, order.permutation(len(labels)), self.batch_size)
            scores = forward(stack.parameters, dev[0])  # (S, K, N)
            targets = dev[1].expand(len(running), -1)  # (S, N)
            losses = torch.nn.functional.cross_entropy(scores, targets, reduction="none").mean(1)
            for network, (strength, loss) in enumerate(zip(running, losses.tolist(), strict=True)):
                if strength not in best or loss < best[strength][0]:
                    best[strength] = loss, epoch, _layers([part[network] for part in stack.parameters])
            survivors = [i for i, strength in enumerate(running) if epoch - best[strength][1] < self.patience]
            if len(survivors) < len(running):
                running = [running[network] for network in survivors]
                if not running:
                    break
                stack.keep(survivors)
        return [(best[strength][2], strength not in running) for strength in range(len(strengths))]


def _layers(parameters: Sequence[Tensor]) -> Layers:
    """Copy weights (out, in) and biases (out, 1), in turn, to `Layers`."""
    arrays = [part.double().numpy() for part in parameters]
    return [(weight.T, bias[:, 0]) for weight, bias in zip(arrays[::2], arrays[1::2], strict=True)]


def probe_factory(probe: str) -> ProbeFactory:
    """Return a factory of "linear" probes or, with 50 hidden units, of "mlp50"; UsageError for another name."""
    hidden = hidden_units(probe)
    if hidden:
        return lambda seed: MLPProbe(hidden, random_state=seed)
    return lambda seed: LinearProbe(random_state=seed)


def embed_items(encoder: SentenceEncoder, study: Study, latent: str) -> np.ndarray:
    """Embed a study's sentences, (N, D); if the labels are languages, each sentence in the language of its label."""
    sentences = study.items.sentences
    if len(split_langs(study.lang)) == 1:
        return encoder.embed(sentences, lang=study.lang, latent=latent)
    vectors: dict[int, np.ndarray] = {}  # by row
    for label, lang in enumerate(study.names):
        rows = np.flatnonzero(study.labels == label)
        vectors |= zip(rows, encoder.embed([sentences[row] for row in rows], lang=lang, latent=latent), strict=True)
    return np.stack([vectors[row] for row in range(len(sentences))])


def measure(make: ProbeFactory, inputs: Sequence[Vectors], labels: np.ndarray, cuts: Sequence[Cut]) -> Measured:
    """Fit and test probes on each of the inputs, one (N, D) per encoder seed; labels (N,) are numbers from 0."""
    shape, classes = (len(inputs), len(cuts), len(labels)), int(labels.max()) + 1
    predicted, coded = np.full(shape, -1, np.int32), np.full(shape, np.nan, np.float32)
    saved, dev_accuracy, unconverged = coded.copy(), [], 0
    for encoder, vectors in enumerate(inputs):
        for seed, (train, dev, test) in enumerate(cuts):
            probe, converged = fit(make(seed), vectors, labels, train, dev)
            unconverged += not converged
            dev_accuracy.append(np.mean(probe.predict(vectors[dev]) == labels[dev]))
            logs = probe.predict_log_proba(vectors[test])
            tested = encoder, seed, test
            predicted[tested] = probe.classes_[logs.argmax(1)]
            coded[tested] = bits(logs, probe.classes_, labels[test], classes, len(train))
            saved[tested] = share_bits(labels[train], labels[test], classes) - coded[tested]
    return Measured(predicted, coded, saved, predicted == labels, float(np.mean(dev_accuracy)), unconverged)


def fit(
    probe: ClassifierMixin, vectors: Vectors, labels: np.ndarray, train: np.ndarray, dev: np.ndarray
) -> tuple[ClassifierMixin, bool]:
    """Fit the probe; also return whether it converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        probe.fit(vectors[train], labels[train], (vectors[dev], labels[dev]))
    return probe, not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def bits(
    log_probabilities: np.ndarray, known: np.ndarray, labels: np.ndarray, classes: int, trained: int
) -> np.ndarray:
    """Return -log2 q(y) of each item, (N,). `log_probabilities` (N, K') are natural, for the labels `known` (K',).

    If training lacked some of the K `classes`, q is smoothed as if each class had one more item, (n q + 1) / (n + K),
    so that every label has a code.
    """
    columns = np.searchsorted(known, labels).clip(max=len(known) - 1)
    seen = known[columns] == labels
    logs = np.where(seen, log_probabilities[np.arange(len(labels)), columns], -np.inf)
    if len(known) < classes:
        logs = np.logaddexp(np.log(trained) + logs, 0.0) - np.log(trained + classes)
    return -logs / np.log(2)


def share_bits(trained: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Return -log2 of each label's frequency among the training labels: H_V(Y) per item, (N,)."""
    known, counts = np.unique(trained, return_counts=True)
    logs = np.log(counts / len(trained))
    return bits(np.broadcast_to(logs, (len(labels), len(known))), known, labels, classes, len(trained))


def keys(sentences: Sequence[str]) -> list[str]:
    """Return the key of each sentence: the rarest of its tokens that are among the 2,000 most frequent tokens."""
    tokens = [split_tokens(sentence.lower()) for sentence in sentences]
    common = dict(Counter(token for words in tokens for token in set(words)).most_common(FREQUENT))
    return [
        min((token for token in words if token in common), key=lambda token: (common[token], token), default="")
        for words in tokens
    ]


def control_labels(
    names: Sequence[str], labels: np.ndarray, train: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a label for each of N keys, and return it with whether the key is in train: two arrays (N,).

    Each different key gets a random one of `labels` (N,), so that label frequencies are alike. An item whose key is not
    in train can't be memorised, and is not tested.
    """
    kinds, kind = np.unique(names, return_inverse=True)
    drawn = np.random.default_rng(seed).choice(labels, len(kinds))
    return drawn[kind], np.isin(kind, kind[train])


def selectivity(study: Study, inputs: Sequence[Vectors], task: Measured, config: ProbeConfig) -> dict[str, Any]:
    """Fit the same probes to the control task, with new labels for each probe seed; `task` has the task's results.

    Returns:
        The fields of `ProbeScore`: `control`, the accuracy on the control task, and `selectivity`, the accuracy on the
        task minus that for the same items, in points, with its interval. Empty if the keys of fewer than 30 items of
        dev or test recur in train, or if all of train gets one label.
    """
    make, names = probe_factory(config.probe), keys(study.items.sentences)
    right = np.zeros_like(task.right)
    tested = np.zeros_like(study.tested)
    for seed, (train, dev, test) in enumerate(study.cuts):
        drawn, known = control_labels(names, study.labels, train, config.seed + seed)
        cut = train, dev[known[dev]], test[known[test]]
        if len(np.unique(drawn[train])) < 2 or min(map(len, cut)) < MIN_RECURRING:
            return {}
        tested[seed, cut[2]] = True
        right[:, seed] = measure(lambda _, seed=seed: make(seed), inputs, drawn, [cut]).right[:, 0]  # type: ignore[misc]
    own, control = bootstrap([task.right, right], tested, study.items.groups, config.resamples, config.seed)
    low, high = (own - control).interval()
    return {
        "control": control.mean,
        "selectivity": 100 * (own - control).mean,
        "selectivity_low": 100 * low,
        "selectivity_high": 100 * high,
    }
