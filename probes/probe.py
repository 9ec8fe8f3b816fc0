"""Probe one task in one language: score every latent and baseline on the same test items."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder, silent
from bgt_core.data.clean import copy_key
from bgt_core.data.columns import known_lang, lang_codes, split_langs, takes
from bgt_core.errors import UsageError
from probes.classifiers.baselines import BASELINES
from probes.classifiers.senteval import SentEval, split_classify
from probes.measures import measure as measuring
from probes.measures.measure import Measured, ProbeConfig, Study, Vectors, embed_items, measure, prepare, selectivity
from probes.measures.significance import Runs, bootstrap, difference, wilson
from probes.results.store import MAJORITY, PREDICTIONS, TRANSLATION, Difference, ProbeResult, ProbeScore, is_baseline
from probes.task import RARE, SPLITS, Items, ProbeTask, some
from probes.tasks import find

Report = Callable[[str], None]  # called with a line of text at each step; raising an exception ends the work
DEFAULT = ProbeConfig()
DOMINANT = 0.90  # if a larger share of the items has the same label, accuracy is not informative
MAX_DEVIATION = 3  # dev and test accuracy differ by chance by at most this number of half-widths of the interval
MAX_TRUNCATED = 0.01  # if an encoder truncates a larger share of sentences, a warning is given
NO_HIDDEN_LAYER = "word-content"  # SentEval never uses a hidden layer for this task


def run(
    encoder: SentenceEncoder,
    task: ProbeTask | str,
    sentences: Sequence[str] | Items | None = None,
    *,
    lang: str,
    latents: Sequence[str] | None = None,
    references: Mapping[str, Sequence[SentenceEncoder]] | None = None,
    config: ProbeConfig = DEFAULT,
    report: Report = silent,
) -> ProbeResult:
    """Probe the latents of an encoder: train probes on one task in one language, and measure their test accuracy.

        import bgt_core, probes

        result = probes.run(bgt_core.load(), "length", lang="en", config=probes.ProbeConfig(seeds=3))
        for score in result.rows:
            print(score.latent, score.accuracy, score.ci_low, score.ci_high)

    Args:
        encoder: `bgt_core.load()`, `encoders.open_encoder(...)`, or any object with `langs`, `latents` and `embed`.
        task: One of `probes.TASKS`, or a `ProbeTask` of your own.
        sentences: Sentences that the task labels, or labelled `Items`; by default the built-in sentences.
        lang: Language of the sentences, as in "fr"; for tasks that distinguish languages, two joined, as in "en-fr".
        latents: Latents to probe; by default all, without language latents if `lang` is joined.
        references: Encoders to compare with, such as untrained models or the mean of token vectors: name -> one or
            several encoders that differ in their seed. Only the first latent of these encoders is probed.
        config: The options of the probes.
        report: Called with a line of text before each step.

    Returns:
        A `ProbeScore` for each latent, baseline and reference. The difference of the first two latents, and the
        differences of each latent and the best baseline, are paired on test items. Intervals allow for the choice of
        sentences and of probe seeds and, if a reference has several encoders, of encoder seeds.

    Raises:
        UsageError: The task, language or latent is unknown.
        DataError: There are too few items.
    """
    task, lang = find(task) if isinstance(task, str) else task, lang_codes(lang)
    latents = probeable(encoder.latents, lang) if latents is None else latents
    check(encoder, lang, latents)
    study = prepare(task, sentences, lang=lang, config=config)
    if config.senteval:
        result = by_senteval(encoder, study, latents, config, report)
    else:
        result = by_probes(encoder, study, latents, references or {}, config, report)
    return replace(result, warnings=item_warnings(study) + encoder_warnings(encoder, study) + result.warnings)


def probeable(latents: Sequence[str], lang: str) -> list[str]:
    """Return the latents that can be probed in `lang`; language latents are not comparable across languages."""
    joined = len(split_langs(lang)) > 1
    return [name for name in latents if not joined or name != LANGUAGE] or list(latents)


def check(encoder: SentenceEncoder, lang: str, latents: Sequence[str]) -> None:
    """Raise UsageError for a language or latent that the encoder lacks. Empty `langs` stand for any language."""
    langs = split_langs(lang)
    for each in langs:
        known_lang(each, encoder.langs, "the model")
    for latent in latents:
        if latent not in encoder.latents:
            raise UsageError(f"'{latent}': choose from {', '.join(encoder.latents)}.", parameter="latents")
    if len(langs) > 1 and LANGUAGE in latents:
        raise UsageError(
            f"language: the latents of {' and '.join(langs)} are not comparable; choose semantic.", parameter="latents"
        )
    if not latents or len(set(latents)) < len(latents):
        raise UsageError("must name one or more latents, each only once, as in semantic,language.", parameter="latents")


def by_probes(
    encoder: SentenceEncoder,
    study: Study,
    latents: Sequence[str],
    references: Mapping[str, Sequence[SentenceEncoder]],
    config: ProbeConfig,
    report: Report,
) -> ProbeResult:
    """Train and test the probes that `config` selects on each latent and baseline. The arguments are those of `run`."""
    inputs: dict[str, Sequence[Vectors]] = {}  # vectors of each latent, one array per encoder seed
    measured: dict[str, Measured] = {}
    for name, make, vectors in predictors(study, encoder, latents, references, config):
        report(f"{study.task} {study.lang}: {name}")
        measured[name] = measure(make, vectors, study.labels, study.cuts)
        if name in latents:
            inputs[name] = vectors
    right = [predictor.right for predictor in measured.values()]
    resampled = bootstrap(right, study.tested, study.items.groups, config.resamples, config.seed)
    runs = dict(zip(measured, resampled, strict=True))
    scores = {name: score(study, name, measured[name], runs[name], config) for name in measured}
    for latent in latents if config.control else ():
        report(f"{study.task} {study.lang}: {latent}, control task")
        scores[latent] = replace(scores[latent], **selectivity(study, inputs[latent], measured[latent], config))

    def gap(first: str, second: str) -> Difference:
        return difference(study.task, study.lang, (first, second), runs[first] - runs[second])

    best = max((row for row in scores.values() if is_baseline(row.latent, latents)), key=lambda row: row.accuracy)
    shown = [row for row in scores.values() if row.latent != MAJORITY or config.baselines]
    n_dev = len(study.cuts[0][1])
    return result_of(
        study,
        config,
        [with_note(row, scores[MAJORITY], best if row.latent in latents else None) for row in shown],
        measured,
        difference=gap(*latents[:2]) if len(latents) > 1 else None,
        over_baseline=[gap(name, best.latent) for name in latents] if config.baselines else [],
        over_majority=[gap(name, MAJORITY) for name in latents],
        warnings=[
            line for name in scores if name != MAJORITY for line in score_warnings(scores[name], measured[name], n_dev)
        ],
    )


def predictors(
    study: Study,
    encoder: SentenceEncoder,
    latents: Sequence[str],
    references: Mapping[str, Sequence[SentenceEncoder]],
    config: ProbeConfig,
) -> Iterator[tuple[str, measuring.ProbeFactory, Sequence[Vectors]]]:
    """Yield (name, function that makes a probe, vectors (N, D) per encoder seed) for each latent and baseline."""
    make, items = measuring.probe_factory(config.probe), study.items
    for latent in latents:
        yield latent, make, [embed_items(encoder, study, latent)]
    if config.baselines and items.translations and SEMANTIC in latents and takes(encoder.langs, items.other):
        translated = replace(study, items=replace(items, sentences=items.translations), lang=items.other)
        yield TRANSLATION, make, [embed_items(encoder, translated, SEMANTIC)]
    for name, (features, probe) in BASELINES.items():
        if config.baselines or name == MAJORITY:
            yield name, lambda _, probe=probe: probe(), [features(items.sentences)]  # type: ignore[misc]
    for name, several in references.items():
        yield name, make, [embed_items(each, study, each.latents[0]) for each in several]


def score(study: Study, name: str, measured: Measured, runs: Runs, config: ProbeConfig) -> ProbeScore:
    """Compute the accuracy of one latent or baseline, its intervals and its V-information."""
    tested = int(study.tested.any(0).sum())
    low, high = wilson(runs.mean * tested, tested)
    boot_low, boot_high = runs.interval()
    if low == 0 or high == 1:  # if all or no predictions are correct, all resamples are equal
        boot_low, boot_high = min(low, boot_low), max(high, boot_high)
    encoders, seeds = runs.points.shape
    return ProbeScore(
        task=study.task, lang=study.lang, latent=name, probe=name if name in BASELINES else config.probe,
        n_train=round(np.mean([len(train) for train, _, _ in study.cuts])), n_test=tested, classes=len(study.names),
        accuracy=runs.mean, ci_low=low, ci_high=high,
        boot_low=max(0.0, boot_low), boot_high=min(1.0, boot_high),  # with two seeds, the interval may extend beyond 1
        sd=float(runs.points.std(1, ddof=1).mean()) if seeds > 1 else 0.0,
        encoders=encoders, encoder_sd=float(runs.points.mean(1).std(ddof=1)) if encoders > 1 else 0.0,
        information=float(np.nanmean(measured.saved)), note="did not converge" if measured.unconverged else "",
    )  # fmt: skip


def by_senteval(
    encoder: SentenceEncoder, study: Study, latents: Sequence[str], config: ProbeConfig, report: Report
) -> ProbeResult:
    """Score the latents by SentEval's protocol (`probes.classifiers.senteval`), with Wilson's interval.

    As in SentEval, each split is first sorted: by the number of tokens (split at spaces), then by label, then by the
    original order. The order determines which sentences share a minibatch.
    """
    hidden = 0 if study.task == NO_HIDDEN_LAYER else measuring.hidden_units(config.probe)
    tokens = np.array([len(sentence.split()) for sentence in study.items.sentences])
    train, dev, test = (rows[np.lexsort((study.labels[rows], tokens[rows]))] for rows in study.cuts[0])
    rows, measured = [], {}
    for latent in latents:
        report(f"{study.task} {study.lang}: {latent}")
        vectors = embed_items(encoder, study, latent)
        splits = [(vectors[part], study.labels[part]) for part in (train, dev, test)]
        classified = split_classify(splits[0], splits[1], splits[2], SentEval(hidden))
        predicted = np.full((1, 1, len(study.labels)), -1, np.int32)
        predicted[0, 0, test] = classified.predicted
        right = predicted == study.labels
        no_bits = np.full(right.shape, np.nan, np.float32)
        measured[latent] = Measured(predicted, no_bits, no_bits, right, classified.dev_accuracy / 100, 0)
        accuracy = float(right[0, 0, test].mean())
        interval = wilson(accuracy * len(test), len(test))
        probe = f"senteval, {hidden} hidden units, L2 {classified.penalty:g}"
        sizes = len(train), len(test), len(study.names)
        rows.append(ProbeScore(study.task, study.lang, latent, *sizes, accuracy, *interval, sd=0.0, probe=probe))
    return result_of(study, config, rows, measured, difference=None)


def result_of(
    study: Study, config: ProbeConfig, rows: list[ProbeScore], measured: Mapping[str, Measured], **more: Any
) -> ProbeResult:
    """Make a result from the scores and predictions of all latents and baselines; `more` has the other fields."""
    tables = []
    for predictor, of in measured.items():
        encoder, seed, item = np.nonzero(of.predicted >= 0)
        tests = (of.predicted >= 0).sum((0, 1)).clip(min=1)  # (N,) number of probes that tested each item
        pvi = np.where(of.predicted >= 0, of.saved, 0).sum((0, 1)) / tests
        texts = {"sentence": study.items.sentences, "label": study.items.labels, "group": study.items.groups}
        columns = {
            "predictor": [predictor] * len(item),
            "encoder": encoder,
            "seed": seed,
            "item": item,
            **{name: np.array(values, dtype=object)[item] for name, values in texts.items()},
            "predicted": np.array(study.names, dtype=object)[of.predicted[encoder, seed, item]],
            "bits": of.bits[encoder, seed, item],
            "pvi": pvi[item].astype(np.float32),
        }
        tables.append(pa.table(columns, PREDICTIONS))
    return ProbeResult(
        study.task, study.lang, len(study.cuts), config.seed, rows, left_out=study.left_out, resamples=config.resamples,
        labels=study.names, predictions=pa.concat_tables(tables), **more,
    )  # fmt: skip


def with_note(row: ProbeScore, majority: ProbeScore, best: ProbeScore | None) -> ProbeScore:
    """Add a note if a score is not above the majority baseline's, or is below that of the best baseline `best`."""
    notes = [row.note] if row.note else []
    if row.latent != MAJORITY and row.ci_low <= majority.accuracy:
        notes.append("not separable from majority")
    elif best and row.ci_high < best.ci_low:
        notes.append(f"below {best.latent}")
    return replace(row, note="; ".join(notes))


def item_warnings(study: Study) -> list[str]:
    """Return warnings about defects of the labelled sentences, which affect every encoder."""
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
    """Return warnings about the score of one latent or baseline; `n_dev` is the number of dev items."""
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
    """Return a warning if an encoder truncates too many sentences, according to its method `count_truncated`."""
    count_truncated = getattr(encoder, "count_truncated", None)
    count = count_truncated(study.items.sentences, lang=study.lang) if count_truncated else 0
    if count <= MAX_TRUNCATED * len(study.labels):
        return []
    return [f"{count:,} of {len(study.labels):,} sentences are too long for the encoder, which ignores their ends."]
