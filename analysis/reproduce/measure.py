"""Measure a finished training: compute its scores on the test data, and on every bootstrap resample of these data.

The tasks of `bgt evaluate` compute the scores. The resamples depend only on the test data. So all trainings have the
same resamples, and differences between trainings are paired. The output of `bgt evaluate --out` is not used, because it
does not contain the resamples, which the p-value of a claim needs. A score is an array (1 + B,): the value on the test
data, then the value on each of B resamples. It is stored as a row with the columns latent, measure, value and draws.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from analysis.reproduce import comparisons as names
from analysis.reproduce.comparisons import AVERAGE, DEV, GAPS, RETRIEVAL, SETS
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC, DuplicateModel, GenerativeModel, SentenceEncoder
from bgt_core.embedder import Embedder
from bgt_core.encoders.distances import PROBABILITY, WMD, compared_by
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap
from bgt_core.evaluation.sts_files import StsSet
from bgt_core.evaluation.task import Task, evenly
from bgt_core.evaluation.tasks.fidelity import Fidelity, HeldOut
from bgt_core.evaluation.tasks.pairs import ACCURACY, AUC, CLASSIFIER, LabelledPairs, Pairs, PairsData
from bgt_core.evaluation.tasks.retrieval import Retrieval
from bgt_core.evaluation.tasks.sts import ScoreKey, Sts
from bgt_core.evaluation.tasks.syntax import Pairing, Syntax
from bgt_core.evaluation.writing import OWN, RANDOM, REFERENCE
from bgt_core.files import atomic_file, reading_parquet
from bgt_core.posterior.distances import DISTANCES

Scores = dict[str, dict[str, np.ndarray]]  # scores by latent and measure
Translations = dict[str, tuple[Sequence[str], Sequence[str]]]  # file name -> sentences and their translations

PAIRS = 300  # number of translations from which text is generated, evenly spaced in the test set
WRITTEN = {names.CHRF_OWN: (OWN, "chrF"), names.EXACT_OWN: (OWN, "exact %")}  # measure -> (style, name in `Fidelity`)
WRITTEN |= {names.CHRF_OTHER: (REFERENCE, "chrF"), names.CHRF_STYLE: (RANDOM, "chrF")}

WORDS_ACCURACY, WORDS_AUC = f"{ACCURACY}, tf-idf", f"{AUC}, tf-idf"  # measures of the tf-idf baseline
AUC_OF = {name: f"{AUC}, {name}" for name in (*DISTANCES, WMD, PROBABILITY)}
OVER_WORDS, OVER_MOVERS = f"{ACCURACY} above tf-idf", f"{AUC}, w2 above wmd"
LEADS = {OVER_WORDS: (ACCURACY, WORDS_ACCURACY), OVER_MOVERS: (AUC_OF["w2"], AUC_OF[WMD])}
OF_PAIRS = (ACCURACY, WORDS_ACCURACY, *AUC_OF.values(), WORDS_AUC, *LEADS)


def latents_of(embedder: Embedder) -> list[str]:
    """List the latents with at least one unit. Without language variables, a model's language latent has no units."""
    return [latent for latent in embedder.latents if embedder.width(embedder.langs[0], latent)]


def drawn(task: Task[Any], items: Any, encoders: SentenceEncoder, resamples: int, system: int = 0) -> dict[Any, Any]:
    """Measure an encoder in a task, on the test data and on each resample. Return a score (1 + B,) for each row of the
    task's table. Some tasks also measure baselines; `system` is the index of the encoder among all systems."""
    statistic = task.statistic(items, {"model": encoders}, seed=0)
    table: dict[Any, np.ndarray] = {}
    if statistic.samples:
        values, draws = bootstrap(statistic.scores, statistic.samples, resamples=resamples, seed=0)
        table = {key: np.append(value[system], draws[key][:, system]) for key, value in values.items()}
    return table | {key: share(hits[system], resamples) for key, hits in statistic.hits.items()}


def share(right: np.ndarray, resamples: int) -> np.ndarray:
    """Return the percentage of items that are True in `right` (N,), on all items and on B resamples, (1 + B,)."""
    items = [ItemSample(len(right), (len(right),))]
    shares = bootstrap(lambda weights: {"": weights[0] @ right / len(right)}, items, resamples=resamples, seed=0)
    return 100 * np.append(right.mean(), shares[1][""])


def sts(embedder: Embedder, sets: Sequence[StsSet], hard: bool, resamples: int) -> Scores:
    """Measure STS for each latent, on the sets in the model's languages. The language latent is measured only on sets
    in a single language."""
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
            scores[latent][SETS] = np.mean([table[key] for key in each], axis=0)
    return scores


def measure_of(key: ScoreKey) -> str | None:
    """Return a score's name in comparisons; None for a single data set of an STS year, because only the average
    of a year is compared."""
    if key.dataset == "average":
        return AVERAGE
    if key.year.isdigit():
        return f"STS {key.year}" if key.dataset == "all" else None
    if key.year == "hard":
        return "Hard STS, all" if key.dataset == "all" else key.dataset
    return DEV if key.year == "stsb" else f"{key.year.upper()} {key.dataset}"


def translations(embedder: Embedder, given: Translations, langs: Sequence[str], resamples: int) -> dict[str, Any]:
    """Measure P@1 on translations, averaged over both directions and all files. If the model generates text, also
    score text that it generates for translations, averaged over both languages. The result is empty without
    translations, or if the model lacks one of the languages."""
    if not given or not set(langs) <= set(embedder.langs):
        return {}
    both = ",".join(langs)
    scores = {RETRIEVAL: np.mean([*drawn(Retrieval(both), given, embedder, resamples).values()], axis=0)}
    pairs = [pair for columns in given.values() for pair in zip(*columns, strict=True)]
    if len(pairs) > 1 and isinstance(embedder.model, GenerativeModel):
        chosen = zip(*evenly(pairs, PAIRS), strict=True)
        items = HeldOut(dict(zip(langs, map(list, chosen), strict=True)))
        table = drawn(Fidelity(both), items, embedder, resamples)
        for name, (style, measure) in WRITTEN.items():
            each = [
                score
                for key, score in table.items()
                if (key.style_of, key.measure) == (style, measure) and (style == OWN or key.meaning_of != key.written)
            ]
            if each:
                scores[name] = np.mean(each, axis=0)
    return scores


def syntax(embedder: Embedder, pairing: Pairing, lang: str, resamples: int) -> Scores:
    """Measure, for each latent, how similar the parse trees of sentences and of their nearest neighbours are."""
    scores: Scores = {}
    for latent in latents_of(embedder):
        table = drawn(Syntax(lang=lang, latent=latent), pairing, embedder, resamples, system=1)
        scores[latent] = {key.score: score for key, score in table.items()}
    return scores


def gaps(scores: Scores) -> dict[str, np.ndarray]:
    """Return each gap in `GAPS`: the score of the latent that should be better minus the score of the other latent.
    A gap is left out if a latent has no score."""
    semantic, syntactic = scores.get(SEMANTIC, {}), scores.get(SYNTACTIC, {})
    return {
        name: sign * (semantic[measure] - syntactic[measure])
        for name, (measure, sign) in GAPS.items()
        if measure in semantic and measure in syntactic
    }


def pairs(embedder: Embedder, train: LabelledPairs, test: LabelledPairs, resamples: int) -> dict[str, np.ndarray]:
    """Measure how well each distance identifies duplicates, by the area under the ROC curve (AUC). For a model of the
    second stage, also measure AUC and accuracy of its duplicate probability, and of logistic regression on tf-idf."""
    second_stage = isinstance(embedder.model, DuplicateModel)
    encoders = {name: compared_by(embedder, name) for name in (*DISTANCES, WMD, *([PROBABILITY] * second_stage))}
    statistic = Pairs().statistic(PairsData(test, train=train if second_stage else None), encoders, seed=0)
    values, draws = bootstrap(statistic.scores, statistic.samples, resamples=resamples, seed=0)
    shown = {ACCURACY: {PROBABILITY: ACCURACY, CLASSIFIER: WORDS_ACCURACY}, AUC: AUC_OF | {CLASSIFIER: WORDS_AUC}}
    table = {
        shown[key.measure][system]: np.append(value[row], draws[key][:, row])
        for key, value in values.items()
        for row, system in enumerate(statistic.systems)
        if system in shown.get(key.measure, {})
    }
    leads = {lead: both for lead, both in LEADS.items() if {*both} <= table.keys()}
    return table | {lead: table[first] - table[second] for lead, (first, second) in leads.items()}


def write(path: Path, scores: Scores) -> None:
    """Write scores to a Parquet file, atomically."""
    rows = [
        {"latent": latent, "measure": name, "value": score[0], "draws": score[1:]}
        for latent, measures in scores.items()
        for name, score in measures.items()
    ]
    with atomic_file(path) as partial:
        parquet.write_table(pa.Table.from_pylist(rows), partial)


def read(path: Path) -> Scores:
    """Read a file written by `write`. Raises DataError if it is damaged."""
    scores: Scores = {}
    with reading_parquet(path), parquet.ParquetFile(path) as file:
        for row in file.read().to_pylist():
            scores.setdefault(row["latent"], {})[row["measure"]] = np.array([row["value"], *row["draws"]])
    return scores
