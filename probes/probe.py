"""Probe one task in one language: every latent and baseline on the same test items."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.columns import known_lang, lang_codes, split_langs, takes
from bgt_core.errors import UsageError
from probes.classifiers.baselines import BASELINES
from probes.measures.controls import curve, erase
from probes.measures.measure import Measured, ProbeFactory, Vectors, embed_items, measure, probe_factory
from probes.measures.significance import bootstrap
from probes.measures.study import ProbeConfig, Study, prepare
from probes.measures.summary import (
    encoder_warnings,
    extra_scores,
    item_warnings,
    result_of,
    score,
    senteval_score,
    summarise,
)
from probes.result import MAJORITY, TRANSLATION, ProbeResult
from probes.task import Items, ProbeTask
from probes.tasks import find

Report = Callable[[str], None]  # gets each step, in words; an exception that it raises ends the work
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
        lang: language of the sentences, as in "fr"; two joined, as in "en-fr", for tasks that tell languages apart.
        latents: latents to probe; by default all, without language latents if `lang` is joined.
        references: encoders to beat, name -> one or several seeds, probed in their first latent: untrained
            ones, the mean of the model's own subword vectors.
        config: probes, seeds, items, intervals, and further measures.
        report: gets each step, in words.

    An accuracy has two intervals. Wilson's covers new sentences with the same probes; the bootstrap's also covers new
    probes and, of a reference with several, new encoders. Raises UsageError for an unknown task, language or latent,
    and DataError for too few items.
    """
    task, lang = find(task) if isinstance(task, str) else task, lang_codes(lang)
    latents = probeable(encoder.latents, lang) if latents is None else latents
    check(encoder, lang, latents)
    study = prepare(task, sentences, lang=lang, config=config)
    warnings = item_warnings(study) + encoder_warnings(encoder, study)

    inputs: dict[str, Sequence[Vectors]] = {}  # of each latent
    measured: dict[str, Measured] = {}
    for name, (make, embed) in predictors(study, encoder, latents, references or {}, config).items():
        report(f"{task.name} {lang}: {name}")
        vectors = embed()
        measured[name] = measure(make, vectors, study.labels, study.cuts)
        if name in latents:
            inputs[name] = vectors

    right = [predictor.right for predictor in measured.values()]
    resampled = bootstrap(right, study.tested, study.items.groups, config.resamples, config.seed)
    runs = dict(zip(measured, resampled, strict=True))
    scores = {name: score(study, name, measured[name], runs[name], config) for name in measured}
    for latent in latents:
        report(f"{task.name} {lang}: {latent}, controls")
        scores[latent] = replace(scores[latent], **extra_scores(study, inputs[latent], measured[latent], config))
    result = summarise(study, latents, scores, measured, runs, config)
    erasures = [erase(study, inputs[latent], latent, config) for latent in inputs if config.erase]
    points = [point for latent in inputs if config.curve for point in curve(study, inputs[latent][0], latent, config)]
    return replace(result, warnings=warnings + result.warnings, erasures=erasures, curve=points)


def run_senteval_protocol(
    encoder: SentenceEncoder,
    task: ProbeTask | str,
    sentences: Sequence[str] | Items | None = None,
    *,
    lang: str,
    latents: Sequence[str] | None = None,
    config: ProbeConfig = DEFAULT,
    report: Report = silent,
) -> ProbeResult:
    """As `run`, by SentEval's protocol (`probes.classifiers.senteval`): one seed, its classifier, accuracy only.

    Of `config` it uses `probe` (hidden units), `seed` and `max_items`, by default all. Items keep their order and their
    repeats; for SentEval's own items use `load_items` with `senteval` on a labelled file.
    """
    task, lang = find(task) if isinstance(task, str) else task, lang_codes(lang)
    latents = probeable(encoder.latents, lang) if latents is None else latents
    check(encoder, lang, latents)
    config = replace(config, seeds=1, max_items=config.max_items or sys.maxsize)
    study = prepare(task, sentences, lang=lang, config=config, in_order=True)
    scores, predictions = [], {}
    for latent in latents:
        report(f"{task.name} {lang}: {latent}")
        row, predictions[latent] = senteval_score(encoder, study, latent, config)
        scores.append(row)
    warnings = item_warnings(study) + encoder_warnings(encoder, study)
    return result_of(study, scores, predictions, warnings, config)


def probeable(latents: Sequence[str], lang: str) -> list[str]:
    """The latents that can be probed in `lang`: language latents are not comparable across languages."""
    joined = len(split_langs(lang)) > 1
    return [name for name in latents if not joined or name != LANGUAGE] or list(latents)


def check(encoder: SentenceEncoder, lang: str, latents: Sequence[str]) -> None:
    """Raise UsageError for a language or latent that an encoder doesn't have; an encoder without languages takes
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
) -> dict[str, tuple[ProbeFactory, Callable[[], Sequence[Vectors]]]]:
    """Name -> a factory of its probes, and a function that returns its inputs, one (N, D) per encoder seed.

    The latents, the translations' semantic one if it can be read, the baselines (the majority always included), and the
    references.
    """
    make, items = probe_factory(config.probe), study.items

    def embed(several: Sequence[SentenceEncoder], study: Study, latent: str = "") -> list[Vectors]:
        return [embed_items(encoder, study, latent or encoder.latents[0]) for encoder in several]

    every: dict[str, tuple[ProbeFactory, Callable[[], Sequence[Vectors]]]] = {}
    for latent in latents:
        every[latent] = make, partial(embed, [encoder], study, latent)
    if config.baselines and items.translations and SEMANTIC in latents and takes(encoder.langs, items.other):
        translated = replace(study, items=replace(items, sentences=items.translations), lang=items.other)
        every[TRANSLATION] = make, partial(embed, [encoder], translated, SEMANTIC)
    for name, (features, probe) in BASELINES.items():
        if config.baselines or name == MAJORITY:
            every[name] = (
                lambda _, probe=probe: probe(),  # type: ignore[misc]
                lambda features=features: [features(items.sentences)],  # type: ignore[misc]
            )
    for name, several in references.items():
        every[name] = make, partial(embed, several, study)
    return every
