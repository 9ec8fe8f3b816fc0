"""Further measures of a latent: selectivity, capacity, erasure, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from probes.measures.config import ProbeConfig
from probes.measures.control_task import control_labels, keys, shuffled
from probes.measures.erasure import inlp, leace, random_directions
from probes.measures.measure import Measured, ProbeFactory, Vectors, fit, measure, probe_factory
from probes.measures.significance import bootstrap, wilson
from probes.measures.study import Study
from probes.result import CurvePoint, Erasure

SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of the training items, along a learning curve
MIN_RECURRING = 30  # minimum items of dev, and of test, for a control task
FAMILIES = ("linear", "mlp50", "mlp200")  # probes of rising capacity


class Selectivity(NamedTuple):
    """Accuracy on the control task, and the difference of the accuracy on the task for the same items, in points."""

    control: float
    points: float
    low: float
    high: float


def selectivity(study: Study, inputs: Sequence[Vectors], task: Measured, config: ProbeConfig) -> Selectivity | None:
    """Fit the same probes on labels of recurring keys, drawn again for each probe seed; `task` are the task's results.

    None if the keys of fewer than 30 items of dev or test recur in train, or if all of train gets one label, or if
    `config.control` is None.
    """
    if config.control is None:
        return None
    make, names = probe_factory(config.probe, config.l2), keys(study.items.sentences, config.control)
    right = np.zeros_like(task.right)
    tested = np.zeros_like(study.tested)
    for seed, (train, dev, test) in enumerate(study.cuts):
        drawn, known = control_labels(names, study.labels, train, config.seed + seed)
        cut = train, dev[known[dev]], test[known[test]]
        if len(np.unique(drawn[train])) < 2 or min(map(len, cut)) < MIN_RECURRING:
            return None
        tested[seed, cut[2]] = True
        right[:, seed] = measure(_with_seed(make, seed), inputs, drawn, [cut]).right[:, 0]
    own, control = bootstrap([task.right, right], tested, study.items.groups, config.resamples, config.seed)
    low, high = (own - control).interval(config.level)
    return Selectivity(control.mean, 100 * (own - control).mean, 100 * low, 100 * high)


def _with_seed(make: ProbeFactory, seed: int) -> ProbeFactory:
    """A factory whose probes all have this seed."""
    return lambda _: make(seed)


def capacity(study: Study, vectors: Vectors, task: Measured, config: ProbeConfig) -> float:
    """Accuracy of the first probe, at the strength of the task, on its own training items with shuffled labels."""
    train, dev, _ = study.cuts[0]
    mixed = shuffled(shuffled(study.labels, train, config.seed), dev, config.seed)
    probe = probe_factory(config.probe)(0).set_params(strengths=(task.strength,))
    probe, _ = fit(probe, vectors, mixed, train, dev)
    return float((probe.predict(vectors[train]) == mixed[train]).mean())


def erasures(study: Study, inputs: Mapping[str, Sequence[Vectors]], config: ProbeConfig) -> list[Erasure]:
    """Run `erase` for each latent, if `config.erase` is set; `inputs` are one (N, D) per encoder seed, by latent."""
    return [erase(study, inputs[name], name, config.erase, config) for name in inputs if config.erase]


def erase(study: Study, inputs: Sequence[Vectors], latent: str, method: str, config: ProbeConfig) -> Erasure:
    """Erase the labels by train and dev, and probe again; do the same with random directions.

    `method` is "leace" or "inlp".
    """
    accuracies, ranks, labels = [], [], study.labels
    make = probe_factory(config.probe, config.l2)
    for vectors in inputs:
        for seed, (train, dev, test) in enumerate(study.cuts):
            taught = vectors[train], labels[train]
            eraser = leace(*taught) if method == "leace" else inlp(*taught, (vectors[dev], labels[dev]))
            control = random_directions(vectors[train], eraser.rank, config.seed + seed)
            cut = [(train, dev, test)]
            probed = [measure(make, [erased(vectors)], labels, cut) for erased in (eraser, control)]
            accuracies.append([measured.right[0, 0, test].mean() for measured in probed])
            ranks.append(eraser.rank)
    accuracy, random_accuracy = np.mean(accuracies, axis=0)
    return Erasure(latent, method, round(np.mean(ranks)), float(accuracy), float(random_accuracy))


def curves(study: Study, inputs: Mapping[str, Sequence[Vectors]], config: ProbeConfig) -> list[CurvePoint]:
    """Run `curve` for each latent of the first encoder, if `config.curve` is set."""
    return [point for name in inputs if config.curve for point in curve(study, inputs[name][0], name, config)]


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
            measured = measure(probe_factory(family, config.l2), [vectors], study.labels, [(rows, dev, test)])
            right = measured.right[0, 0, test]
            accuracy = float(right.mean())
            points.append(
                CurvePoint(latent, family, len(rows), accuracy, *wilson(right.sum(), len(test), config.level))
            )
    return points
