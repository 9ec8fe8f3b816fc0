"""Probe one task in one language: every latent and baseline on the same test items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.columns import known_lang, lang_codes, split_langs, takes
from bgt_core.errors import UsageError
from probes.classifiers.baselines import BASELINES
from probes.measures.measure import Measured, ProbeFactory, Vectors, embed_items, measure, probe_factory, selectivity
from probes.measures.significance import bootstrap
from probes.measures.study import ProbeConfig, Study, prepare
from probes.measures.summary import (
    encoder_warnings,
    item_warnings,
    result_of,
    score,
    senteval_score,
    summarise,
)
from probes.result import MAJORITY, TRANSLATION, ProbeResult
from probes.task import Items, ProbeTask
from probes.tasks import find

Report = Callable[[str], None]  # called with a text for each step; an exception that it raises ends the work
DEFAULT = ProbeConfig()


def silent(line: object) -> None:
    """A `Report` that prints nothing."""


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
    """Probe the latents of an encoder: accuracies of probes trained and tested on one task in one language.

        import bgt_core, probes

        result = probes.run(bgt_core.load(), "length", lang="en", config=probes.ProbeConfig(seeds=3))
        for score in result.rows:
            print(score.latent, score.accuracy, score.ci_low, score.ci_high)

    Args:
        encoder: `bgt_core.load()`, `encoders.open_encoder(...)`, or any object with `langs`, `latents` and `embed`.
        task: one of `probes.TASKS`, or a `ProbeTask` of your own.
        sentences: for the task to label, or labelled `Items`; by default built-in ones.
        lang: language of the sentences, as in "fr"; for tasks that distinguish languages, two joined, as in "en-fr".
        latents: latents to probe; by default all, without language latents if `lang` is joined.
        references: encoders for comparison, name -> one or several seeds, such as untrained models or the mean of
            the model's token vectors; their first latent is probed.
        config: probes, seeds, items, intervals, the control task; or SentEval's protocol, in which items keep their
            order and their repeats. For SentEval's own items use `load_items` with `senteval` on a labelled file.
        report: called with a text for each step.

    An accuracy has two intervals. Wilson's is for new sentences and the same probes. The bootstrap's is also for new
    probes and, if a reference has several encoders, for new encoders. Raises UsageError for an unknown task, language
    or latent, and DataError for too few items.
    """
    task, lang = find(task) if isinstance(task, str) else task, lang_codes(lang)
    latents = probeable(encoder.latents, lang) if latents is None else latents
    check(encoder, lang, latents)
    study = prepare(task, sentences, lang=lang, config=config)
    warnings = item_warnings(study) + encoder_warnings(encoder, study)
    if config.senteval:
        rows, predictions = [], {}
        for latent in latents:
            report(f"{task.name} {lang}: {latent}")
            row, predictions[latent] = senteval_score(encoder, study, latent, config)
            rows.append(row)
        return result_of(study, rows, predictions, warnings, config)

    inputs: dict[str, Sequence[Vectors]] = {}  # of each latent
    measured: dict[str, Measured] = {}
    for name, make, vectors in predictors(study, encoder, latents, references or {}, config):
        report(f"{task.name} {lang}: {name}")
        measured[name] = measure(make, vectors, study.labels, study.cuts)
        if name in latents:
            inputs[name] = vectors
    right = [predictor.right for predictor in measured.values()]
    resampled = bootstrap(right, study.tested, study.items.groups, config.resamples, config.seed)
    runs = dict(zip(measured, resampled, strict=True))
    scores = {name: score(study, name, measured[name], runs[name], config) for name in measured}
    for latent in latents if config.control else ():
        report(f"{task.name} {lang}: {latent}, control task")
        scores[latent] = replace(scores[latent], **selectivity(study, inputs[latent], measured[latent], config))
    result = summarise(study, latents, scores, measured, runs, config)
    return replace(result, warnings=warnings + result.warnings)


def probeable(latents: Sequence[str], lang: str) -> list[str]:
    """Return the latents that can be probed in `lang`; language latents are not comparable across languages."""
    joined = len(split_langs(lang)) > 1
    return [name for name in latents if not joined or name != LANGUAGE] or list(latents)


def check(encoder: SentenceEncoder, lang: str, latents: Sequence[str]) -> None:
    """Raise UsageError for a language or latent that an encoder lacks; an encoder without a list of languages accepts
    any."""
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
        raise UsageError("must be one or more different latents, as in semantic,language.", parameter="latents")


def predictors(
    study: Study,
    encoder: SentenceEncoder,
    latents: Sequence[str],
    references: Mapping[str, Sequence[SentenceEncoder]],
    config: ProbeConfig,
) -> Iterator[tuple[str, ProbeFactory, Sequence[Vectors]]]:
    """Yield each predictor's name, a factory of its probes, and its inputs, one (N, D) per encoder seed.

    The predictors are the latents, the translations' semantic latent if the encoder has their language, the baselines
    (always with the majority), and the references.
    """
    make, items = probe_factory(config.probe), study.items
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
