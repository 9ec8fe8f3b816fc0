"""What a reader must know before believing a number: notes on rows, and warnings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bgt_core.contracts import SentenceEncoder
from probes.classifiers.baselines import MAJORITY
from probes.measures.measure import Measured
from probes.measures.study import Study
from probes.result import Row

DOMINANT = 0.90  # share of one label from which accuracy says little
APART = 3  # intervals between dev and test that chance does not explain
CUT_SHORT = 0.01  # share of sentences an encoder may shorten without a word


def note(row: Row, rows: Mapping[str, Row], latents: Sequence[str]) -> Row:
    """The row with how its accuracy stands to the baselines."""
    notes = [row.note] if row.note else []
    if row.latent != MAJORITY and row.ci_low <= rows[MAJORITY].accuracy:
        notes.append("not separable from majority")
    elif row.latent in latents:
        best = max((rows[name] for name in rows if name not in latents), key=lambda other: other.accuracy)
        if row.ci_high < best.ci_low:
            notes.append(f"below {best.latent}")
    return replace(row, note="; ".join(notes))


def item_warnings(study: Study) -> list[str]:
    """Warnings that the labelled sentences give, whatever the encoder."""
    found, items = [], study.items
    label, count = Counter(items.labels).most_common(1)[0]
    if count > DOMINANT * len(items.labels):
        found.append(f"{100 * count / len(items.labels):.0f}% of the items are '{label}': accuracy says little.")
    train, dev, test = ({items.sentences[row] for row in rows} for rows in study.cuts[0])
    twice = len(train & (dev | test)) + len(dev & test - train)
    if twice:
        found.append(f"{twice} sentences are in two splits: drop them, or put their versions in one group.")
    return found


def predictor_warnings(row: Row, measured: Measured, n_dev: int) -> list[str]:
    """Warnings about one latent or baseline; `n_dev` items of dev chose."""
    found, probes = [], math.prod(measured.right.shape[:2])
    if measured.unconverged:
        found.append(f"{row.latent}: {measured.unconverged} of {probes} probes did not converge.")
    p = measured.dev
    half = 1.96 * math.sqrt(p * (1 - p) / n_dev + row.accuracy * (1 - row.accuracy) / row.n_test)
    if abs(p - row.accuracy) > APART * half:
        found.append(
            f"{row.latent}: dev accuracy {100 * p:.1f} and test accuracy {100 * row.accuracy:.1f} are more than "
            f"{APART} intervals apart: the splits differ in more than chance."
        )
    if row.control is not None and row.selectivity < 0:
        found.append(
            f"{row.latent}: accuracy on the control task, {100 * row.control:.1f}, is above that on the task: "
            "the probe memorises more than it reads."
        )
    return found


def encoder_warnings(encoder: SentenceEncoder, study: Study) -> list[str]:
    """A warning where an encoder reads only the beginning of too many sentences.

    One that cuts them says how many by a method `count_truncated(sentences, lang=...)`; others are taken to read all.
    """
    if not hasattr(encoder, "count_truncated"):
        return []
    count, items = encoder.count_truncated(study.items.sentences, lang=study.lang), len(study.labels)
    if count <= CUT_SHORT * items:
        return []
    return [f"{count:,} of {items:,} sentences are longer than the encoder reads: it never saw their ends."]
