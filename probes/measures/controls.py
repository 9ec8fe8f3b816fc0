"""Further measures of a latent: selectivity, erasure, learning curves.

A control task (Hewitt & Liang, 2019) keeps a probe's inputs and has labels that can only be memorised. Theirs
labels each word type at random. Random labels of sentences would give chance accuracy in test for any probe, as no
sentence occurs twice; so the label here belongs to a recurring key, the rarest of a sentence's frequent tokens. A probe
that can read the key and memorise does well; accuracy above that is selectivity. (First tokens are too few and uneven
as keys: a fifth of French sentences may share the label of "le". The interval of selectivity was 17 points over five
draws then, and is 4 now: subject number, 2,000 test items.)

LEACE (`bgt_core.vectors.maps`) is the least change of vectors after which no linear probe does better than the shares
of the labels. Removing any directions lowers accuracy, so its effect is compared with that of as many random ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bgt_core.vectors.maps import leace as least_squares
from probes.measures.measure import Measured, Vectors, measure, probe_factory
from probes.measures.significance import bootstrap, wilson
from probes.measures.study import ProbeConfig, Study
from probes.result import CurvePoint, Erasure
from probes.task import split_tokens

FREQUENT = 2_000  # most frequent kinds of tokens, among which the rarest is the key
MIN_RECURRING = 30  # minimum items of dev, and of test, for a control task
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of the training items, along a learning curve
FAMILIES = ("linear", "mlp50", "mlp200")  # probes of rising capacity


def keys(sentences: Sequence[str]) -> list[str]:
    """The key of each sentence: the rarest of its tokens that are among the 2,000 most frequent ones."""
    tokens = [split_tokens(sentence.lower()) for sentence in sentences]
    common = dict(Counter(token for words in tokens for token in set(words)).most_common(FREQUENT))
    return [
        min((token for token in words if token in common), key=lambda token: (common[token], token), default="")
        for words in tokens
    ]


def control_labels(
    names: Sequence[str], labels: np.ndarray, train: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A label for each of N keys, and whether the key is in train: two arrays (N,).

    The label is drawn once per key from (N,) `labels`, which gives the same shares. An item whose key is not in train
    can't be memorised, and is not tested.
    """
    kinds, kind = np.unique(names, return_inverse=True)
    drawn = np.random.default_rng(seed).choice(labels, len(kinds))
    return drawn[kind], np.isin(kind, kind[train])


def selectivity(study: Study, inputs: Sequence[Vectors], task: Measured, config: ProbeConfig) -> dict[str, float]:
    """Fit the same probes on labels of recurring keys, drawn again for each probe seed; `task` are the task's results.

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
    points = 100 * (own - control).mean
    return {
        "control": control.mean,
        "selectivity": points,
        "selectivity_low": 100 * low,
        "selectivity_high": 100 * high,
    }


@dataclass(frozen=True, eq=False)
class Eraser:
    """x -> x - (x - mean) read writeᵀ: the part that `read` (D, r) measures is subtracted along `write` (D, r)."""

    mean: np.ndarray  # (D,)
    read: np.ndarray
    write: np.ndarray
    gone: np.ndarray | None = None  # (D,), units that are set to their mean

    @property
    def rank(self) -> int:
        return self.read.shape[1]

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """(N, D) -> (N, D) of the same type."""
        erased = vectors - (vectors - self.mean) @ self.read @ self.write.T
        if self.gone is not None:
            erased[:, self.gone] = self.mean[self.gone]
        return erased.astype(vectors.dtype)


def leace(vectors: np.ndarray, labels: np.ndarray) -> Eraser:
    """The least-squares eraser of (N,) labels from (N, D) vectors; its rank is at most the number of labels minus 1."""
    mean = vectors.mean(0, dtype=np.float64)
    centred = vectors - mean
    one_hot = labels[:, None] == np.unique(labels)  # (N, K)
    cross = centred.T @ (one_hot / np.sqrt(one_hot.sum(0))) / np.sqrt(len(vectors))
    return Eraser(mean, *least_squares(mean, centred.T @ centred / len(vectors), cross))


def random_directions(vectors: np.ndarray, rank: int, seed: int) -> Eraser:
    """The control: project out `rank` random directions."""
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((vectors.shape[1], rank)))[0]
    return Eraser(vectors.mean(0, dtype=np.float64), basis, basis)


def erase(study: Study, inputs: Sequence[Vectors], latent: str, config: ProbeConfig) -> Erasure:
    """Erase the labels by train, and probe again; do the same with random directions."""
    accuracies, ranks, labels = [], [], study.labels
    make = probe_factory(config.probe)
    for vectors in inputs:
        for seed, (train, dev, test) in enumerate(study.cuts):
            eraser = leace(vectors[train], labels[train])
            control = random_directions(vectors[train], eraser.rank, config.seed + seed)
            probed = [measure(make, [erased(vectors)], labels, [(train, dev, test)]) for erased in (eraser, control)]
            accuracies.append([measured.right[0, 0, test].mean() for measured in probed])
            ranks.append(eraser.rank)
    accuracy, random_accuracy = np.mean(accuracies, axis=0)
    return Erasure(latent, "leace", round(np.mean(ranks)), float(accuracy), float(random_accuracy))


def curve(study: Study, vectors: Vectors, latent: str, config: ProbeConfig) -> list[CurvePoint]:
    """Fit the first probe on growing, nested parts of train, in whole groups; then probes of other capacity on all of
    it."""
    train, dev, test = study.cuts[0]
    names, group = np.unique(np.array(study.items.groups)[train], return_inverse=True)
    rank = np.random.default_rng(config.seed).permutation(len(names))[group]  # (N of train,)
    points = []
    runs = [(config.probe, share) for share in SHARES] + [(family, 1) for family in FAMILIES if family != config.probe]
    for family, share in runs:
        rows = train[rank < round(share * len(names))]
        if len(np.unique(study.labels[rows])) > 1:
            right = measure(probe_factory(family), [vectors], study.labels, [(rows, dev, test)]).right[0, 0, test]
            points.append(CurvePoint(latent, family, len(rows), float(right.mean()), *wilson(right.sum(), len(test))))
    return points
