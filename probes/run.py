"""One task, one language, every latent and baseline on the same test items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from bgt_core.errors import BadInput
from probes.baselines import BASELINES, MAJORITY
from probes.build import FOLDS, RARE, default_sentences, splits
from probes.classifier import STRENGTHS, logistic, predict
from probes.significance import mcnemar, paired_bootstrap, wilson
from probes.task import Difference, Items, ProbeResult, ProbeTask, Row
from probes.tasks import find

if TYPE_CHECKING:
    from bgt_core.contracts import Embeds

MAX_ITEMS = 10_000
LEAST = 200  # items; fewer give intervals that say nothing


def run_probe(
    bgt: Embeds,
    task: ProbeTask | str,
    lang: str,
    sentences: Sequence[str] | None = None,
    *,
    latents: Sequence[str] = ("semantic", "language"),
    max_items: int = MAX_ITEMS,
    seeds: int = 5,
    seed: int = 0,
    ci: float = 0.95,
    baselines: bool = True,
    report: Callable[[str], None] = lambda line: None,
) -> ProbeResult:
    """Train and test probes; without `sentences`, on those of the built-in grammar.

    Each seed trains on eight tenths, chooses the penalty on one and tests on one of its own: no item is
    tested twice. Accuracy and its Wilson interval count the test items of all seeds together, so their number
    is that of different items; `sd` is over the seeds. The interval is that of these probes on new
    sentences; it does not cover training the encoder again. Raises BadInput for an unknown task or language,
    a latent the model lacks, or too few items.
    """
    task = find(task) if isinstance(task, str) else task
    task.check(lang)
    check(bgt, lang, latents, seeds, ci)
    sentences = default_sentences(lang, seed) if sentences is None else sentences
    items, left_out = select(task.items(sentences, lang, seed), max_items, seed)
    labels = np.array(items.labels)
    if len(labels) < LEAST or len(set(items.labels)) < 2:
        found = f"{len(labels)} items with {len(set(items.labels))} labels"
        raise BadInput(f"Task '{task.name}' got {found}; it needs {LEAST} and 2: give more sentences.")
    cuts = list(splits(items.groups, seeds, seed))
    texts = np.array(items.sentences, dtype=object)
    tested = np.concatenate([test for _, _, test in cuts])

    right: dict[str, np.ndarray] = {}  # predictor -> (tested items,) booleans, the same items for all
    rows: dict[str, Row] = {}
    probes = dict.fromkeys(latents, (logistic, STRENGTHS)) | (
        BASELINES if baselines else {MAJORITY: BASELINES[MAJORITY]}
    )
    for name, (make, strengths) in probes.items():
        report(f"{task.name} {lang}: {name}")
        inputs = bgt.embed(items.sentences, lang=lang, latent=name) if name in latents else texts
        parts, notes = [], []
        for cut in cuts:
            predicted, converged = predict(make, inputs, labels, cut, strengths)
            parts.append(predicted == labels[cut[2]])
            notes += [] if converged else ["did not converge"]
        right[name] = np.concatenate(parts)
        low, high = wilson(int(right[name].sum()), len(tested), ci)
        rows[name] = Row(
            task=task.name,
            lang=lang,
            latent=name,
            n_train=round(np.mean([len(train) for train, _, _ in cuts])),
            n_test=len(tested),
            classes=len(set(items.labels)),
            accuracy=float(right[name].mean()),
            ci_low=low,
            ci_high=high,
            sd=float(np.std([part.mean() for part in parts], ddof=1)) if seeds > 1 else 0.0,
            note=notes[0] if notes else "",
        )
    difference = None
    if len(latents) > 1:
        first, second = latents[:2]
        low, high = paired_bootstrap(right[first], right[second], [items.groups[row] for row in tested], ci, seed)
        points = 100 * (rows[first].accuracy - rows[second].accuracy)
        p = mcnemar(right[first], right[second])
        difference = Difference(task.name, lang, first, second, points, 100 * low, 100 * high, p)
    noted = [remark(row, rows, latents) for row in rows.values() if row.latent != MAJORITY or baselines]
    return ProbeResult(task.name, lang, seeds, seed, ci, noted, difference, left_out)


def check(bgt: Embeds, lang: str, latents: Sequence[str], seeds: int, ci: float) -> None:
    """BadInput for what can't be asked of this model."""
    if lang not in bgt.langs:
        raise BadInput(f"Model is {'-'.join(bgt.langs)}; --lang {lang} needs a model trained with '{lang}'.", 2)
    for latent in latents:
        if latent not in bgt.latents:
            raise BadInput(f"There is no latent '{latent}'; choose from {', '.join(bgt.latents)}.", 2)
    if not latents or len(set(latents)) < len(latents):
        raise BadInput("Name one or more different latents, as in --latent semantic,language.", 2)
    if not 1 <= seeds <= FOLDS:
        raise BadInput(f"--seeds {seeds}: choose 1 to {FOLDS}; each tests on its own tenth of the items.", 2)
    if not 0 < ci < 1:
        raise BadInput(f"--ci {ci}: choose a level between 0 and 1, as in 0.95.", 2)


def select(items: Items, most: int, seed: int) -> tuple[Items, int]:
    """At most `most` items, whole groups drawn at random, without rare labels; and how many were left out."""
    common = {label for label, count in Counter(items.labels).items() if count >= RARE}
    rows: dict[int, list[int]] = {}
    for row, (group, label) in enumerate(zip(items.groups, items.labels, strict=True)):
        if label in common:
            rows.setdefault(group, []).append(row)
    order = list(rows)
    Random(seed).shuffle(order)
    chosen: list[int] = []
    for group in order:
        if len(chosen) + len(rows[group]) > most:
            break
        chosen += rows[group]
    return items.take(chosen), len(items.labels) - len(chosen)


def remark(row: Row, rows: dict[str, Row], latents: Sequence[str]) -> Row:
    """The row with what a reader must know of its accuracy."""
    notes = [row.note] if row.note else []
    if row.latent != MAJORITY and row.ci_low <= rows[MAJORITY].accuracy:
        notes.append("not separable from majority")
    elif row.latent in latents:
        best = max((rows[name] for name in rows if name not in latents), key=lambda other: other.accuracy)
        if row.ci_high < best.ci_low:
            notes.append(f"below {best.latent}")
    return replace(row, note="; ".join(notes))
