"""What can be asked of a latent besides its accuracy: selectivity, capacity, erasure, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from probes.measures.control_task import control_labels, keys, shuffled
from probes.measures.erasure import inlp, leace, random_directions
from probes.measures.measure import Measured, fit, maker, measure
from probes.measures.significance import bootstrap, wilson
from probes.measures.study import ProbeConfig, Study
from probes.result import Erasure, Point

SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of the training items, along a learning curve
RECURRING = 30  # items of dev, and of test, that make a control task
FAMILIES = ("linear", "mlp50", "mlp200")  # probes of rising capacity


class Selectivity(NamedTuple):
    """Accuracy on the control task, and how far that on the task is above it on the same items, in points."""

    control: float
    points: float
    low: float
    high: float


def selectivity(study: Study, inputs: Sequence[np.ndarray], task: Measured, wish: ProbeConfig) -> Selectivity | None:
    """The same probes on labels of recurring keys, drawn anew for each probe seed; `task` is what they measured.

    None where the keys of fewer than 30 items of dev or test recur in train, or all of train draws one label.
    """
    make, names = maker(wish.probe, wish.l2), keys(study.items.sentences, wish.control)
    right = np.zeros_like(task.right)
    tested = np.zeros_like(study.tested)
    for place, (train, dev, test) in enumerate(study.cuts):
        drawn, known = control_labels(names, study.labels, train, wish.seed + place)
        cut = train, dev[known[dev]], test[known[test]]
        if len(np.unique(drawn[train])) < 2 or min(map(len, cut)) < RECURRING:
            return None
        tested[place, cut[2]] = True
        right[:, place] = measure(lambda _, place=place: make(place), inputs, drawn, [cut]).right[:, 0]
    own, control = bootstrap([task.right, right], tested, study.items.groups, wish.resamples, wish.seed)
    low, high = (own - control).interval(wish.ci)
    return Selectivity(control.mean, 100 * (own - control).mean, 100 * low, 100 * high)


def capacity(study: Study, vectors: np.ndarray, task: Measured, wish: ProbeConfig) -> float:
    """Accuracy of the first probe, at the strength that the task took, on its own training items once shuffled."""
    train, dev, _ = study.cuts[0]
    mixed = shuffled(shuffled(study.labels, train, wish.seed), dev, wish.seed)
    probe, _ = fit(maker(wish.probe, wish.l2)(0).set_params(strengths=(task.strength,)), vectors, mixed, train, dev)
    return float((probe.predict(vectors[train]) == mixed[train]).mean())


def erase(study: Study, inputs: Sequence[np.ndarray], latent: str, wish: ProbeConfig) -> Erasure:
    """Erase the labels with what train and dev tell of them, and probe again; the same with random directions."""
    accuracies, ranks, labels = [], [], study.labels
    for vectors in inputs:
        for place, (train, dev, test) in enumerate(study.cuts):
            told = vectors[train], labels[train]
            eraser = leace(*told) if wish.erase == "leace" else inlp(*told, (vectors[dev], labels[dev]))
            control = random_directions(vectors[train], eraser.rank, wish.seed + place)
            cut = [(train, dev, test)]
            found = [measure(maker(wish.probe, wish.l2), [one(vectors)], labels, cut) for one in (eraser, control)]
            accuracies.append([one.right[0, 0, test].mean() for one in found])
            ranks.append(eraser.rank)
    accuracy, control = np.mean(accuracies, axis=0)
    return Erasure(latent, wish.erase, round(np.mean(ranks)), float(accuracy), float(control))


def curve(study: Study, vectors: np.ndarray, latent: str, wish: ProbeConfig) -> list[Point]:
    """The first probe on growing parts of train, nested, whole groups; then probes of other capacity on all of it."""
    train, dev, test = study.cuts[0]
    names, place = np.unique(np.array(study.items.groups)[train], return_inverse=True)
    when = np.random.default_rng(wish.seed).permutation(len(names))[place]  # (N of train,)
    points = []
    runs = [(wish.probe, share) for share in SHARES] + [(family, 1) for family in FAMILIES if family != wish.probe]
    for family, share in runs:
        rows = train[when < round(share * len(names))]
        if len(np.unique(study.labels[rows])) > 1:
            right = measure(maker(family, wish.l2), [vectors], study.labels, [(rows, dev, test)]).right[0, 0, test]
            accuracy = float(right.mean())
            points.append(Point(latent, family, len(rows), accuracy, *wilson(right.sum(), len(test), wish.ci)))
    return points
