"""A finished training -> its scores, and each of them in every resample of what it was measured on.

The items are those of `bgt evaluate`: a task's scores are a function of how often each item is drawn, and the draws
follow from the test data alone. So all trainings meet the same resamples, and their differences are paired. A score of
a latent is stored as a row of SCORES: latent, measure, value, draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from analysis.reproduce.experiments import (
    AVERAGE,
    CHRF_OTHER,
    CHRF_OWN,
    CHRF_STYLE,
    DEV,
    EXACT_OWN,
    GAPS,
    RETRIEVAL,
    SETS,
)
from bgt_core.capabilities import DuplicateModel, GenerativeModel
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC, SentenceEncoder
from bgt_core.embedder import Embedder
from bgt_core.encoders.distances import PROBABILITY, WMD, DuplicateEncoder, compared_by
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap
from bgt_core.evaluation.sts_files import StsSet
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.task import Task
from bgt_core.evaluation.tasks.fidelity import Fidelity, HeldOut
from bgt_core.evaluation.tasks.pairs import ACCURACY, AUC, SAMPLE_KEY, LabelledPairs, TfIdfClassifier, measured
from bgt_core.evaluation.tasks.retrieval import Retrieval
from bgt_core.evaluation.tasks.sts import ScoreKey, Sts
from bgt_core.evaluation.tasks.syntax import Pairing, Syntax
from bgt_core.evaluation.writing import OWN, RANDOM, REFERENCE
from bgt_core.files import atomic_file, reading_parquet
from bgt_core.posterior.distances import DISTANCES

Draws = tuple[float, np.ndarray]  # a score, and in each of B resamples, (B,)
Scores = dict[str, dict[str, Draws]]  # latent -> measure -> score
Translations = Mapping[str, tuple[Sequence[str], Sequence[str]]]  # by the name of their file

PAIRS = 300  # translations that are written anew, evenly spaced
WRITTEN = {CHRF_OWN: (OWN, "chrF"), EXACT_OWN: (OWN, "exact %")}  # style, and the task's measure
WRITTEN |= {CHRF_OTHER: (REFERENCE, "chrF"), CHRF_STYLE: (RANDOM, "chrF")}

WORDS = "tf-idf"  # the probability by tf-idf and logistic regression
WORDS_ACCURACY, WORDS_AUC = f"{ACCURACY}, {WORDS}", f"{AUC}, {WORDS}"
AUC_OF = {name: f"{AUC}, {name}" for name in (*DISTANCES, WMD, PROBABILITY)}
OVER_WORDS, OVER_MOVERS = f"{ACCURACY} above {WORDS}", f"{AUC}, w2 above wmd"
LEADS = {OVER_WORDS: (ACCURACY, WORDS_ACCURACY), OVER_MOVERS: (AUC_OF["w2"], AUC_OF[WMD])}
OF_PAIRS = (ACCURACY, WORDS_ACCURACY, *AUC_OF.values(), WORDS_AUC, *LEADS)


def latents_of(embedder: Embedder) -> list[str]:
    """Without language variables the language latent has no units, and is left out."""
    return [latent for latent in embedder.latents if embedder.width(embedder.langs[0], latent)]


def drawn(task: Task[Any], items: Any, encoders: SentenceEncoder, resamples: int, system: int = 0) -> dict[Any, Draws]:
    """Every score of one system of a task, by the task's keys."""
    statistic = task.statistic(items, {"model": encoders}, seed=0)
    table: dict[Any, Draws] = {}
    if statistic.samples:
        values, draws = bootstrap(statistic.scores, statistic.samples, resamples=resamples, seed=0)
        table = {key: (float(value[system]), draws[key][:, system]) for key, value in values.items()}
    for key, hits in statistic.hits.items():  # (S, N)
        table[key] = 100 * float(hits[system].mean()), share_draws(hits[system], resamples)
    return table


def share_draws(right: np.ndarray, resamples: int) -> np.ndarray:
    """The share x 100 of N items that are right, (N,), in each resample, (B,)."""

    def share(weights: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        return {"": 100 * weights[0] @ right / len(right)}

    return bootstrap(share, [ItemSample(len(right), (len(right),))], resamples=resamples, seed=0)[1][""]


def mean(parts: Sequence[Draws]) -> Draws:
    """The mean of scores, in each resample."""
    return float(np.mean([value for value, _ in parts])), np.mean([draws for _, draws in parts], axis=0)


def sts(embedder: Embedder, sets: Sequence[StsSet], hard: bool, resamples: int) -> Scores:
    """By latent: of all sets in languages that the model has; for the language latent only those of one language."""
    scores: Scores = {}
    for latent in latents_of(embedder):
        own = [
            data
            for data in sets
            if {data.left_lang, data.right_lang} <= set(embedder.langs)
            and (latent != LANGUAGE or data.left_lang == data.right_lang)
        ]
        if own:
            table = drawn(Sts(latent=latent, hard=hard), own, embedder, resamples)
            scores[latent] = {name: score for key, score in table.items() if (name := measure_of(key))}
            each = [key for key in table if (key.year.isdigit() or key.year == "sick") and key.score == "Pearson"]
            scores[latent][SETS] = mean([table[key] for key in each])
    return scores


def measure_of(key: ScoreKey) -> str | None:
    """The name of a score in our comparisons; None for a year's own data sets."""
    if key.dataset == "average":
        return AVERAGE
    if key.year.isdigit():
        return f"STS {key.year}" if key.dataset == "all" else None
    if key.year == "hard":
        return "Hard STS, all" if key.dataset == "all" else key.dataset
    return DEV if key.year == "stsb" else f"{key.year.upper()} {key.dataset}"


def translations(embedder: Embedder, given: Translations, langs: Sequence[str], resamples: int) -> dict[str, Draws]:
    """P@1, the mean of both directions and all files; and what the model writes for some, the means of both languages.

    Empty without translations, and for a model that lacks a language.
    """
    if not given or not set(langs) <= set(embedder.langs):
        return {}
    both = ",".join(langs)
    scores = {RETRIEVAL: mean([*drawn(Retrieval(both), given, embedder, resamples).values()])}
    pairs = [pair for columns in given.values() for pair in zip(*columns, strict=True)]
    if len(pairs) > 1 and isinstance(embedder.model, GenerativeModel):
        count = min(PAIRS, len(pairs))
        chosen = zip(*(pairs[row * len(pairs) // count] for row in range(count)), strict=True)
        items = HeldOut(dict(zip(langs, map(list, chosen), strict=True)))
        table = drawn(Fidelity(both), items, embedder, resamples)
        for name, (style, measure) in WRITTEN.items():
            each = [
                score
                for key, score in table.items()
                if (key.style_of, key.measure) == (style, measure) and (style == OWN or key.meaning_of != key.written)
            ]
            if each:
                scores[name] = mean(each)
    return scores


def syntax(embedder: Embedder, pairing: Pairing, lang: str, resamples: int) -> Scores:
    """By latent: how alike parsed sentences and their nearest neighbours are built."""
    return {
        latent: {
            key.score: score
            for key, score in drawn(Syntax(lang=lang, latent=latent), pairing, embedder, resamples, system=1).items()
        }
        for latent in latents_of(embedder)
    }


def pairs(embedder: Embedder, train: LabelledPairs, test: LabelledPairs, resamples: int) -> dict[str, Draws]:
    """Areas under the ROC curve of labelled pairs by every distance.

    A second stage also gives its probability of a duplicate, with its accuracy (0.5 or more is a duplicate). Beside it
    stand tf-idf and logistic regression, trained on the same labels.
    """
    encoders = {name: compared_by(embedder, name) for name in (*DISTANCES, WMD)}
    second_stage = isinstance(embedder.model, DuplicateModel)
    if second_stage:
        encoders[PROBABILITY] = DuplicateEncoder(embedder)
    (lang,) = embedder.langs
    scores = {
        name: System(name, encoder, encoder.latents[0]).similarities(test.left, test.right, lang, lang)
        for name, encoder in encoders.items()
    }
    if second_stage:
        scores[WORDS] = TfIdfClassifier(train)(test)
    return pair_draws(test.labels, scores, resamples)


def pair_draws(labels: np.ndarray, scores: Mapping[str, np.ndarray], resamples: int) -> dict[str, Draws]:
    """Accuracy, areas under the ROC curve and leads x 100 of scores (N,); all trainings meet the same draws."""
    thresholds = [DuplicateEncoder.threshold if name in (PROBABILITY, WORDS) else None for name in scores]
    values, draws = bootstrap(
        lambda weights: measured(weights[0], np.stack(list(scores.values())), thresholds, labels),
        [ItemSample(len(labels), SAMPLE_KEY)],
        resamples=resamples,
        seed=0,
    )
    table: dict[str, Draws] = {}
    for row, (name, threshold) in enumerate(zip(scores, thresholds, strict=True)):
        of_words = name == WORDS
        if threshold is not None:
            table[WORDS_ACCURACY if of_words else ACCURACY] = float(values[ACCURACY][row]), draws[ACCURACY][:, row]
        table[WORDS_AUC if of_words else AUC_OF[name]] = float(values[AUC][row]), draws[AUC][:, row]
    for lead, (first, second) in LEADS.items():
        if first in table and second in table:
            table[lead] = apart(table[first], table[second])
    return table


def apart(first: Draws, second: Draws, sign: int = 1) -> Draws:
    """The difference of two scores, in each resample."""
    return sign * (first[0] - second[0]), sign * (first[1] - second[1])


def gaps(scores: Scores) -> dict[str, Draws]:
    """The lead of the latent that should be better, in each measure that both latents of a training have."""
    semantic, syntactic = scores.get(SEMANTIC, {}), scores.get(SYNTACTIC, {})
    return {
        name: apart(semantic[measure], syntactic[measure], sign)
        for name, (measure, sign) in GAPS.items()
        if measure in semantic and measure in syntactic
    }


def write(path: Path, scores: Scores) -> None:
    """Write a Parquet file, atomically."""
    rows = [(latent, name, *score) for latent, measures in scores.items() for name, score in measures.items()]
    names = ("latent", "measure", "value", "draws")
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    with atomic_file(path) as partial:
        parquet.write_table(
            pa.table({name: list(column) for name, column in zip(names, columns, strict=True)}), partial
        )


def read(path: Path) -> Scores:
    """What `write` wrote. Raises DataError for a damaged file."""
    scores: Scores = {}
    with reading_parquet(path), parquet.ParquetFile(path) as file:
        for row in file.read().to_pylist():
            scores.setdefault(row["latent"], {})[row["measure"]] = row["value"], np.array(row["draws"])
    return scores
