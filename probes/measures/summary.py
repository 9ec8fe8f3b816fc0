"""Turn measurements into a result: scores with intervals and notes, differences, and warnings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.clean import copy_key
from probes.classifiers.baselines import BASELINES
from probes.classifiers.senteval import SentEval, split_classify
from probes.data.items import RARE, some
from probes.measures.measure import Measured, embed_items
from probes.measures.significance import Runs, difference, wilson
from probes.measures.study import ProbeConfig, Study, hidden_units
from probes.result import MAJORITY, Difference, Predictions, ProbeResult, ProbeScore, is_baseline
from probes.task import SPLITS

DOMINANT = 0.90  # if one label has a larger share, accuracy is not informative
MAX_DEVIATION = 3  # number of half-widths of an interval by which dev and test may differ by chance
MAX_TRUNCATED = 0.01  # share of sentences an encoder may truncate without a warning
NO_HIDDEN_LAYER = "word-content"  # SentEval removes the hidden layer for this task, whatever `config.probe` is


def score(study: Study, name: str, measured: Measured, runs: Runs, config: ProbeConfig) -> ProbeScore:
    """Return accuracy, its intervals and V-information of one predictor."""
    tested = int(study.tested.any(0).sum())
    low, high = wilson(runs.mean * tested, tested)
    boot_low, boot_high = runs.interval()
    if low == 0 or high == 1:  # if all or none are correct, all resamples are equal
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


def senteval_score(
    encoder: SentenceEncoder, study: Study, latent: str, config: ProbeConfig
) -> tuple[ProbeScore, Predictions]:
    """Score one latent by SentEval's protocol (`probes.classifiers.senteval`), and return its predictions.

    As in SentEval, each split is first sorted by number of tokens (at spaces), then by label, then by the items' order;
    this determines which sentences share a minibatch. SentEval reports percent with two decimals; this is a fraction,
    with Wilson's interval, which SentEval does not have.
    """
    hidden = 0 if study.task == NO_HIDDEN_LAYER else hidden_units(config.probe)
    vectors = embed_items(encoder, study, latent)
    tokens = np.array([len(sentence.split()) for sentence in study.items.sentences])
    train, dev, test = (rows[np.lexsort((study.labels[rows], tokens[rows]))] for rows in study.cuts[0])
    by_split = [(vectors[rows], study.labels[rows]) for rows in (train, dev, test)]
    result = split_classify(by_split[0], by_split[1], by_split[2], SentEval(hidden))
    accuracy = float((result.predicted == study.labels[test]).mean())
    low, high = wilson(accuracy * len(test), len(test))
    probe = f"senteval, {hidden} hidden units, L2 {result.penalty:g}"
    sizes = len(train), len(test), len(study.names)
    row = ProbeScore(study.task, study.lang, latent, *sizes, accuracy, low, high, 0.0, probe=probe)
    predicted = np.full((1, 1, len(study.labels)), -1, np.int32)
    predicted[0, 0, test] = result.predicted
    no_bits = np.full(predicted.shape, np.nan, np.float32)
    return row, Predictions(predicted, no_bits, no_bits[0, 0])


def summarise(
    study: Study,
    latents: Sequence[str],
    scores: Mapping[str, ProbeScore],
    measured: Mapping[str, Measured],
    runs: Mapping[str, Runs],
    config: ProbeConfig,
) -> ProbeResult:
    """Combine scores with their notes, and the differences of latents, baselines and the majority; the keys of all
    mappings are predictors."""

    def gap(first: str, second: str) -> Difference:
        return difference(study.task, study.lang, (first, second), runs[first] - runs[second])

    n_dev = len(study.cuts[0][1])
    named = [name for name in scores if name != MAJORITY]
    warnings = [line for name in named for line in score_warnings(scores[name], measured[name], n_dev)]
    rivals = [row for row in scores.values() if is_baseline(row.latent, latents)]
    best = max(rivals, key=lambda row: row.accuracy)
    shown = [row for row in scores.values() if row.latent != MAJORITY or config.baselines]
    rows = [with_note(row, scores[MAJORITY], best if row.latent in latents else None) for row in shown]
    predictions = {name: predictions_of(measured[name]) for name in measured}
    return replace(
        result_of(study, rows, predictions, warnings, config),
        difference=gap(*latents[:2]) if len(latents) > 1 else None,
        over_baseline=[gap(name, best.latent) for name in latents] if config.baselines else [],
        over_majority=[gap(name, MAJORITY) for name in latents],
    )


def result_of(
    study: Study,
    rows: list[ProbeScore],
    predictions: dict[str, Predictions],
    warnings: list[str],
    config: ProbeConfig,
) -> ProbeResult:
    """Make the part of the result that both protocols share."""
    given = study.task, study.lang, len(study.cuts), config.seed, rows, None, study.left_out, config.resamples
    return ProbeResult(*given, warnings=warnings, labels=study.names, items=study.items, predictions=predictions)


def predictions_of(measured: Measured) -> Predictions:
    """Return the stored data of each item; pointwise V-information is NaN for items that no seed tested."""
    counts = (measured.predicted >= 0).sum((0, 1))
    pvi = np.where(counts, np.nansum(measured.saved, (0, 1)) / np.maximum(counts, 1), np.nan)
    return Predictions(measured.predicted, measured.bits, pvi.astype(np.float32))


def with_note(row: ProbeScore, majority: ProbeScore, best: ProbeScore | None) -> ProbeScore:
    """Add a note that compares the score with the majority's, and a latent's score with the `best` baseline's."""
    notes = [row.note] if row.note else []
    if row.latent != MAJORITY and row.ci_low <= majority.accuracy:
        notes.append("not separable from majority")
    elif best and row.ci_high < best.ci_low:
        notes.append(f"below {best.latent}")
    return replace(row, note="; ".join(notes))


def item_warnings(study: Study) -> list[str]:
    """Warn about the labelled sentences, for any encoder."""
    warnings, items = [], study.items
    labels = Counter(items.labels)
    label, count = labels.most_common(1)[0]
    if count > DOMINANT * len(items.labels):
        warnings.append(
            f"{100 * count / len(items.labels):.0f}% of the items are '{label}': accuracy is not informative."
        )
    train, dev, test = ({copy_key(items.sentences[row]) for row in rows} for rows in study.cuts[0])
    twice = len(train & (dev | test)) + len(dev & test - train)
    if twice:
        warnings.append(f"{twice} sentences are in two splits: drop them, or put their versions in one group.")
    for part, effect in ((0, "no probe can learn it"), (2, "its accuracy is not measured")):
        parts = [np.bincount(study.labels[cut[part]], minlength=len(study.names)) > 0 for cut in study.cuts]
        present = np.all(parts, 0) if part == 0 else np.any(parts, 0)
        absent = [name for name, here in zip(study.names, present, strict=True) if not here and labels[name] >= RARE]
        if absent:
            warnings.append(f"No {SPLITS[part]} item has the label {some(absent)}: {effect}.")
    return warnings


def score_warnings(row: ProbeScore, measured: Measured, n_dev: int) -> list[str]:
    """Warn about one latent or baseline; `n_dev` is the number of dev items."""
    warnings, probes = [], math.prod(measured.right.shape[:2])
    if measured.unconverged:
        warnings.append(f"{row.latent}: {measured.unconverged} of {probes} probes did not converge.")
    dev = measured.dev
    half = 1.96 * math.sqrt(dev * (1 - dev) / n_dev + row.accuracy * (1 - row.accuracy) / row.n_test)
    if abs(dev - row.accuracy) > MAX_DEVIATION * half:
        warnings.append(
            f"{row.latent}: dev accuracy {100 * dev:.1f} and test accuracy {100 * row.accuracy:.1f} are more than "
            f"{MAX_DEVIATION} intervals apart: the splits differ by more than chance."
        )
    if row.control is not None and row.selectivity is not None and row.selectivity < 0:
        warnings.append(
            f"{row.latent}: accuracy on the control task, {100 * row.control:.1f}, is above that on the task: "
            "the probe memorises."
        )
    return warnings


def encoder_warnings(encoder: SentenceEncoder, study: Study) -> list[str]:
    """Warn if an encoder truncates too many sentences.

    An encoder that truncates has a method `count_truncated(sentences, lang=...)`; others are assumed not to truncate.
    """
    count_truncated = getattr(encoder, "count_truncated", None)
    if count_truncated is None:
        return []
    count, items = count_truncated(study.items.sentences, lang=study.lang), len(study.labels)
    if count <= MAX_TRUNCATED * items:
        return []
    return [f"{count:,} of {items:,} sentences are too long for the encoder, which ignores their ends."]
