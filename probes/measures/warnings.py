"""Notes on scores, and warnings, for readers of the numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.clean import copy_key
from probes.data.items import RARE, some
from probes.measures.measure import Measured
from probes.measures.study import Study
from probes.result import MAJORITY, ProbeScore, is_baseline
from probes.task import SPLITS

DOMINANT = 0.90  # share of one label above which accuracy is not informative
MAX_DEVIATION = 3  # half-widths of an interval between dev and test; more is unlikely to be chance
MAX_TRUNCATED = 0.01  # share of sentences an encoder may truncate without a warning


def with_note(score: ProbeScore, scores: Mapping[str, ProbeScore], latents: Sequence[str]) -> ProbeScore:
    """Add a note that compares the score with the baselines; `scores` are by predictor."""
    notes = [score.note] if score.note else []
    if score.latent != MAJORITY and score.ci_low <= scores[MAJORITY].accuracy:
        notes.append("not separable from majority")
    elif score.latent in latents:
        best = max((scores[name] for name in scores if is_baseline(name, latents)), key=lambda other: other.accuracy)
        if score.ci_high < best.ci_low:
            notes.append(f"below {best.latent}")
    return replace(score, note="; ".join(notes))


def item_warnings(study: Study) -> list[str]:
    """Warnings about the labelled sentences, for any encoder."""
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


def predictor_warnings(score: ProbeScore, measured: Measured, n_dev: int) -> list[str]:
    """Warnings about one latent or baseline; `n_dev` is the number of dev items."""
    warnings, probes = [], math.prod(measured.right.shape[:2])
    if measured.unconverged:
        warnings.append(f"{score.latent}: {measured.unconverged} of {probes} probes did not converge.")
    dev = measured.dev
    half = 1.96 * math.sqrt(dev * (1 - dev) / n_dev + score.accuracy * (1 - score.accuracy) / score.n_test)
    if abs(dev - score.accuracy) > MAX_DEVIATION * half:
        warnings.append(
            f"{score.latent}: dev accuracy {100 * dev:.1f} and test accuracy {100 * score.accuracy:.1f} are more than "
            f"{MAX_DEVIATION} intervals apart: the splits differ by more than chance."
        )
    if score.control is not None and score.selectivity is not None and score.selectivity < 0:
        warnings.append(
            f"{score.latent}: accuracy on the control task, {100 * score.control:.1f}, is above that on the task: "
            "the probe memorises."
        )
    return warnings


def encoder_warnings(encoder: SentenceEncoder, study: Study) -> list[str]:
    """Warn if an encoder truncates too many sentences.

    An encoder that truncates has a method `count_truncated(sentences, lang=...)`; others are assumed not to.
    """
    count_truncated = getattr(encoder, "count_truncated", None)
    if count_truncated is None:
        return []
    count, items = count_truncated(study.items.sentences, lang=study.lang), len(study.labels)
    if count <= MAX_TRUNCATED * items:
        return []
    return [f"{count:,} of {items:,} sentences are too long for the encoder, which ignores their ends."]
