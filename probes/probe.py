"""Probe one task in one language: every latent and baseline on the same test items."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sklearn.base import ClassifierMixin

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.columns import lang_codes, split_langs
from bgt_core.data.languages import known_lang, takes
from bgt_core.errors import UsageError
from probes.classifiers.baselines import BASELINES, Inputs
from probes.measures import controls
from probes.measures.config import ProbeConfig
from probes.measures.measure import Measured, ProbeFactory, Vectors, embed_items, measure, probe_factory
from probes.measures.senteval_protocol import senteval_score
from probes.measures.significance import bootstrap
from probes.measures.study import Study, prepare
from probes.measures.summary import extra_scores, result_of, score, summarise
from probes.measures.warnings import encoder_warnings, item_warnings
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
    encoder_seeds: Sequence[SentenceEncoder] = (),
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
        encoder_seeds: other trainings of `encoder`: scores are then means over all of them.
        references: encoders to beat, name -> one or several seeds, probed in their first latent: untrained
            ones, the mean of the model's own subword vectors.
        config: probes, seeds, items, intervals, and further measures.
        report: gets each step, in words.

    An accuracy has two intervals. Wilson's covers new sentences with the same probes; the bootstrap's also covers new
    probes and, with several encoder seeds, new encoders. Raises UsageError for an unknown task, language or latent, and
    DataError for too few items.
    """
    task, lang = find(task) if isinstance(task, str) else task, lang_codes(lang)
    latents = probeable(encoder.latents, lang) if latents is None else latents
    encoders = [encoder, *encoder_seeds]
    for trained in encoders:
        check(trained, lang, latents)
    study = prepare(task, sentences, lang=lang, config=config)
    warnings = item_warnings(study) + [line for trained in encoders for line in encoder_warnings(trained, study)]

    inputs: dict[str, Sequence[Vectors]] = {}  # of each latent
    measured: dict[str, Measured] = {}
    for predictor in predictors(study, encoders, latents, references or {}, config):
        report(f"{task.name} {lang}: {predictor.name}")
        vectors = predictor.embed()
        measured[predictor.name] = measure(predictor.make, vectors, study.labels, study.cuts)
        if predictor.name in latents:
            inputs[predictor.name] = vectors

    right = [predictor.right for predictor in measured.values()]
    resampled = bootstrap(right, study.tested, study.items.groups, config.resamples, config.seed)
    runs = dict(zip(measured, resampled, strict=True))
    scores = {name: score(study, name, measured[name], runs[name], config) for name in measured}
    for latent in latents:
        report(f"{task.name} {lang}: {latent}, controls")
        scores[latent] = replace(scores[latent], **extra_scores(study, inputs[latent], measured[latent], config))
    result = summarise(study, latents, scores, measured, runs, config)
    erasures, curve = controls.erasures(study, inputs, config), controls.curves(study, inputs, config)
    return replace(result, warnings=warnings + result.warnings, erasures=erasures, curve=curve)


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

    Of `config` it uses `probe` (hidden units), `seed`, `level`, `max_train` and `max_items`, by default all. Items keep
    their order and their repeats; for SentEval's own items use `load_items` with `senteval` on a labelled file.
    """
    task, lang = find(task) if isinstance(task, str) else task, lang_codes(lang)
    latents = probeable(encoder.latents, lang) if latents is None else latents
    check(encoder, lang, latents)
    config = senteval_config(config)
    study = prepare(task, sentences, lang=lang, config=config, in_order=True)
    scores, predictions = [], {}
    for latent in latents:
        report(f"{task.name} {lang}: {latent}")
        row, predictions[latent] = senteval_score(encoder, study, latent, config)
        scores.append(row)
    warnings = item_warnings(study) + encoder_warnings(encoder, study)
    return result_of(study, scores, predictions, warnings, config)


def senteval_config(config: ProbeConfig) -> ProbeConfig:
    """One seed, and every item unless `max_items` is set."""
    return replace(config, seeds=1, max_items=config.max_items or sys.maxsize)


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


@dataclass(frozen=True, eq=False)
class Predictor:
    """A predictor to measure: a latent, a baseline or a reference, with its probe and its inputs."""

    name: str
    make: ProbeFactory
    embed: Callable[[], Sequence[Vectors]]  # one (N, D) per encoder seed


def predictors(
    study: Study,
    encoders: Sequence[SentenceEncoder],
    latents: Sequence[str],
    references: Mapping[str, Sequence[SentenceEncoder]],
    config: ProbeConfig,
) -> Iterator[Predictor]:
    """The latents, the translations' semantic one if it can be read, the baselines (the majority always included), and
    the references."""
    make, items = probe_factory(config.probe, config.l2), study.items
    for latent in latents:
        yield Predictor(latent, make, partial(embed_each, encoders, study, latent))
    if config.baselines and items.translations and SEMANTIC in latents and takes(encoders[0].langs, items.other):
        translated = replace(study, items=replace(items, sentences=items.translations), lang=items.other)
        yield Predictor(TRANSLATION, make, partial(embed_each, encoders, translated, SEMANTIC))
    for name, (build, probe) in BASELINES.items():
        if config.baselines or name == MAJORITY:
            yield Predictor(name, partial(seedless, probe), partial(baseline_inputs, build, study))
    for name, several in references.items():
        yield Predictor(name, make, partial(embed_each, several, study))


def embed_each(encoders: Sequence[SentenceEncoder], study: Study, latent: str = "") -> list[Vectors]:
    """The (N, D) vectors of each encoder; by default of its first latent."""
    return [embed_items(encoder, study, latent or encoder.latents[0]) for encoder in encoders]


def baseline_inputs(build: Inputs, study: Study) -> list[Vectors]:
    return [build(study.items.sentences)]


def seedless(probe: Callable[[], ClassifierMixin], seed: int) -> ClassifierMixin:
    return probe()
