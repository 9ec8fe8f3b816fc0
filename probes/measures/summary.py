"""Turn measurements into a result: scores with their intervals and notes, and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from probes.classifiers.baselines import BASELINES
from probes.measures import controls
from probes.measures.config import ProbeConfig
from probes.measures.mdl import codelength
from probes.measures.measure import Measured, Vectors, probe_factory
from probes.measures.significance import Runs, difference, wilson
from probes.measures.study import Study
from probes.measures.warnings import predictor_warnings, with_note
from probes.result import MAJORITY, Difference, Predictions, ProbeResult, ProbeScore, is_baseline


def score(study: Study, name: str, measured: Measured, runs: Runs, config: ProbeConfig) -> ProbeScore:
    """Accuracy, its intervals and V-information of one predictor."""
    tested = int(study.tested.any(0).sum())
    low, high = wilson(runs.mean * tested, tested, config.level)
    boot_low, boot_high = runs.interval(config.level)
    if low == 0 or high == 1:  # without an error, or without a success, all resamples are equal
        boot_low, boot_high = min(low, boot_low), max(high, boot_high)
    encoders, seeds = runs.points.shape
    return ProbeScore(
        task=study.task,
        lang=study.lang,
        latent=name,
        n_train=round(np.mean([len(train) for train, _, _ in study.cuts])),
        n_test=tested,
        classes=len(study.names),
        accuracy=runs.mean,
        ci_low=low,
        ci_high=high,
        sd=float(runs.points.std(1, ddof=1).mean()) if seeds > 1 else 0.0,
        note="did not converge" if measured.unconverged else "",
        probe=name if name in BASELINES else config.probe,
        encoders=encoders,
        encoder_sd=float(runs.points.mean(1).std(ddof=1)) if encoders > 1 else 0.0,
        boot_low=max(0.0, boot_low),
        boot_high=min(1.0, boot_high),  # with two seeds the interval may exceed the possible range
        information=float(np.nanmean(measured.saved)),
    )


def extra_scores(study: Study, inputs: Sequence[Vectors], measured: Measured, config: ProbeConfig) -> dict[str, Any]:
    """The fields of `ProbeScore` that only latents have, as far as `config` enables them."""
    fields: dict[str, float] = {}
    if control := controls.selectivity(study, inputs, measured, config):
        fields.update(
            control=control.control,
            selectivity=control.points,
            selectivity_low=control.low,
            selectivity_high=control.high,
        )
    if config.capacity:
        fields["capacity"] = controls.capacity(study, inputs[0], measured, config)
    if config.mdl:
        train = study.cuts[0][0]
        groups = np.array(study.items.groups)[train]
        make, labels = probe_factory(config.probe, config.l2), study.labels[train]
        codes = [
            codelength(make, vectors[train], labels, groups, len(study.names), seed=config.seed) for vectors in inputs
        ]
        fields["codelength"] = float(np.mean([code.bits for code in codes]))
        fields["compression"] = codes[0].uniform / fields["codelength"]
    return fields


def summarise(
    study: Study,
    latents: Sequence[str],
    scores: Mapping[str, ProbeScore],
    measured: Mapping[str, Measured],
    runs: Mapping[str, Runs],
    config: ProbeConfig,
) -> ProbeResult:
    """Scores with their notes, and the differences of latents, baselines and the majority; all arguments are by
    predictor."""

    def gap(first: str, second: str) -> Difference:
        return difference(study.task, study.lang, (first, second), runs[first] - runs[second], config.level)

    n_dev = len(study.cuts[0][1])
    warnings = [
        line for name in scores if name != MAJORITY for line in predictor_warnings(scores[name], measured[name], n_dev)
    ]
    best = max(
        (row for row in scores.values() if is_baseline(row.latent, latents)), key=lambda row: row.accuracy
    ).latent
    shown = [row for row in scores.values() if row.latent != MAJORITY or config.baselines]
    predictions = {name: predictions_of(measured[name]) for name in measured}
    return replace(
        result_of(study, [with_note(row, scores, latents) for row in shown], predictions, warnings, config),
        difference=gap(*latents[:2]) if len(latents) > 1 else None,
        over_baseline=[gap(name, best) for name in latents] if config.baselines else [],
        over_majority=[gap(name, MAJORITY) for name in latents],
    )


def result_of(
    study: Study,
    rows: list[ProbeScore],
    predictions: dict[str, Predictions],
    warnings: list[str],
    config: ProbeConfig,
) -> ProbeResult:
    """The part of the result that both protocols have."""
    return ProbeResult(
        study.task,
        study.lang,
        len(study.cuts),
        config.seed,
        config.level,
        rows,
        None,
        study.left_out,
        config.resamples,
        warnings=warnings,
        labels=study.names,
        items=study.items,
        predictions=predictions,
    )


def predictions_of(measured: Measured) -> Predictions:
    """The stored data of each item; an item that no seed tested has NaN as pointwise information."""
    counts = (measured.predicted >= 0).sum((0, 1))
    pvi = np.where(counts, np.nansum(measured.saved, (0, 1)) / np.maximum(counts, 1), np.nan)
    return Predictions(measured.predicted, measured.bits, pvi.astype(np.float32))
