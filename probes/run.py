"""One task, one language, every latent and baseline on the same test items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bgt_core.contracts import LANGUAGE
from bgt_core.errors import UsageError
from probes.classifiers.baselines import BASELINES, MAJORITY
from probes.measures import controls
from probes.measures.mdl import codelength
from probes.measures.measure import Measured, Vectors, embedded, maker, measure
from probes.measures.paper import paper_row
from probes.measures.significance import Runs, bootstrap, difference, wilson
from probes.measures.study import ProbeConfig, Study, prepare
from probes.measures.warnings import encoder_warnings, item_warnings, note, predictor_warnings
from probes.result import Difference, Predictions, ProbeResult, Row
from probes.task import Items, ProbeTask
from probes.tasks import find

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder


def run_probe(
    bgt: SentenceEncoder,
    task: ProbeTask | str,
    lang: str,
    sentences: Sequence[str] | Items | None = None,
    *,
    latents: Sequence[str] = ("semantic", "language"),
    encoder_seeds: Sequence[SentenceEncoder] = (),
    others: Mapping[str, Sequence[SentenceEncoder]] | None = None,
    report: Callable[[str], None] = lambda line: None,
    **asked: object,
) -> ProbeResult:
    """Train and test probes; without `sentences`, on the built-in grammar. `asked` are the fields of `ProbeConfig`.

    `encoder_seeds` are other trainings of `bgt`: scores are then means over all of them. `others` are encoders to
    beat, name -> one or several seeds, read from the first latent they have: untrained ones, the mean of the model's
    own subword vectors. `cuts_of` says who is trained and tested on what.

    An accuracy has two intervals. Wilson's is that of these probes on new sentences; the bootstrap's also covers new
    probes and, where there are several, new encoders. Raises BgtError for an unknown task, language, latent or wish,
    and for too few items.
    """
    wish, task = ProbeConfig(**asked), find(task) if isinstance(task, str) else task
    task.check(lang)
    encoders = [bgt, *encoder_seeds]
    for encoder in encoders:
        check(encoder, lang, latents)
    study = prepare(task, lang, sentences, wish)
    warnings = item_warnings(study)
    for encoder in encoders:
        warnings += encoder_warnings(encoder, study)
    if wish.paper:
        rows, predictions = {}, {}
        for name in latents:
            report(f"{task.name} {lang}: {name}")
            rows[name], predictions[name] = paper_row(bgt, study, name, wish)
        return result(study, wish, rows, predictions, warnings)

    inputs: dict[str, list[Vectors]] = {}
    measured: dict[str, Measured] = {}
    for name in latents:
        report(f"{task.name} {lang}: {name}")
        inputs[name] = [embedded(encoder, study, name) for encoder in encoders]
        measured[name] = measure(maker(wish.probe, wish.l2), inputs[name], study.labels, study.cuts)
    for name, (build, probe) in BASELINES.items():
        if wish.baselines or name == MAJORITY:
            report(f"{task.name} {lang}: {name}")
            texts = [build(study.items.sentences)]
            measured[name] = measure(lambda _, probe=probe: probe(), texts, study.labels, study.cuts)
    for name, several in (others or {}).items():
        report(f"{task.name} {lang}: {name}")
        vectors = [embedded(other, study, other.latents[0]) for other in several]
        measured[name] = measure(maker(wish.probe, wish.l2), vectors, study.labels, study.cuts)

    drawn = bootstrap(
        [found.right for found in measured.values()], study.tested, study.items.groups, wish.resamples, wish.seed
    )
    runs = dict(zip(measured, drawn, strict=True))
    rows = {name: row_of(study, name, found, runs[name], wish) for name, found in measured.items()}
    for name in latents:
        report(f"{task.name} {lang}: {name}, controls")
        rows[name] = replace(rows[name], **more(study, inputs[name], measured[name], wish))
    for name, found in measured.items():
        if name != MAJORITY:
            warnings += predictor_warnings(rows[name], found, len(study.cuts[0][1]))

    def gap(first: str, second: str) -> Difference:
        return difference(task.name, lang, (first, second), runs[first] - runs[second], wish.ci)

    against = max((row for row in rows.values() if row.latent not in latents), key=lambda row: row.accuracy).latent
    found = result(study, wish, rows, {name: kept(found) for name, found in measured.items()}, warnings)
    return replace(
        found,
        rows=[note(row, rows, latents) for row in rows.values() if row.latent != MAJORITY or wish.baselines],
        difference=gap(*latents[:2]) if len(latents) > 1 else None,
        over_baseline=[gap(name, against) for name in latents] if wish.baselines else [],
        over_majority=[gap(name, MAJORITY) for name in latents],
        erasures=[controls.erase(study, inputs[name], name, wish) for name in latents] if wish.erase else [],
        curve=[point for name in latents for point in controls.curve(study, inputs[name][0], name, wish)]
        if wish.curve
        else [],
    )


def check(bgt: SentenceEncoder, lang: str, latents: Sequence[str]) -> None:
    """BgtError for what can't be asked of this model; one without languages takes any."""
    if bgt.langs and not set(lang.split("-")) <= set(bgt.langs):
        raise UsageError(f"Model is {'-'.join(bgt.langs)}; --lang {lang} needs a model trained with '{lang}'.")
    for latent in latents:
        if latent not in bgt.latents:
            raise UsageError(f"There is no latent '{latent}'; choose from {', '.join(bgt.latents)}.")
    if "-" in lang and LANGUAGE in latents:
        raise UsageError(f"Language latents are spaces of their own; for --lang {lang} choose --latent semantic.")
    if not latents or len(set(latents)) < len(latents):
        raise UsageError("Name one or more different latents, as in --latent semantic,language.")


def result(
    study: Study, wish: ProbeConfig, rows: dict[str, Row], predictions: dict[str, Predictions], warnings: list[str]
) -> ProbeResult:
    """What every protocol reports."""
    return ProbeResult(
        study.task,
        study.lang,
        len(study.cuts),
        wish.seed,
        wish.ci,
        list(rows.values()),
        None,
        study.left_out,
        wish.resamples,
        warnings=warnings,
        labels=study.names,
        items=study.items,
        predictions=predictions,
    )


def row_of(study: Study, name: str, found: Measured, runs: Runs, wish: ProbeConfig) -> Row:
    """Accuracy, its intervals and V-information."""
    tested = int(study.tested.any(0).sum())
    low, high = wilson(runs.mean * tested, tested, wish.ci)
    boot_low, boot_high = runs.interval(wish.ci)
    encoders, seeds = runs.points.shape
    return Row(
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
        note="did not converge" if found.unconverged else "",
        probe=name if name in BASELINES else wish.probe,
        encoders=encoders,
        encoder_sd=float(runs.points.mean(1).std(ddof=1)) if encoders > 1 else 0.0,
        boot_low=max(0.0, boot_low),
        boot_high=min(1.0, boot_high),  # two seeds alone say so little that the interval may leave what is possible
        information=float(np.nanmean(found.saved)),
    )


def more(study: Study, inputs: Sequence[np.ndarray], found: Measured, wish: ProbeConfig) -> dict[str, float]:
    """The fields of `Row` that only latents have, those asked for."""
    fields = {}
    if wish.control and (control := controls.selectivity(study, inputs, found, wish)):
        names = ("control", "selectivity", "selectivity_low", "selectivity_high")
        fields |= dict(zip(names, control, strict=True))
    if wish.capacity:
        fields["capacity"] = controls.capacity(study, inputs[0], found, wish)
    if wish.mdl:
        train = study.cuts[0][0]
        groups = np.array(study.items.groups)[train]
        make, classes = maker(wish.probe, wish.l2), len(study.names)
        codes = [codelength(make, one[train], study.labels[train], groups, classes, seed=wish.seed) for one in inputs]
        fields["codelength"] = float(np.mean([code.bits for code in codes]))
        fields["compression"] = codes[0].uniform / fields["codelength"]
    return fields


def kept(found: Measured) -> Predictions:
    """What is stored of each item; an item that no seed tested has no pointwise information."""
    counts = (found.predicted >= 0).sum((0, 1))
    pvi = np.where(counts, np.nansum(found.saved, (0, 1)) / np.maximum(counts, 1), np.nan)
    return Predictions(found.predicted, found.bits, pvi.astype(np.float32))
