"""Does the separation of the latents change with a language's distance to English? (paper, sec. 5.2 and Table 3)

    results of `bgt-probe`, or the paper's table 3 -> gaps -> trends over distances -> verdicts

A gap is the score of the semantic latent minus that of the language latent, in points of a probe's accuracy or of the
STS average. Each model of the paper has English and one other language. The paper describes three trends in Table 3,
but does not test them. With a more distant language, the gap is smaller in STS; it is smaller in word content and in
subject and object number; and it is more negative in length and punctuation. The paper does not measure distance. It
calls French and Spanish closely related to English, Arabic and Turkish more distantly related, and Japanese very
distant. This order is "paper" in `DISTANCES`; "weeks" and "syntax" are independent measures. Here a trend is a rank
correlation of gap and distance. Its p-value comes from permutations of the languages, its interval from resamples of
the languages.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.stats import permutation_test, rankdata

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.evaluation.bootstrap import NOT_RUN, holm, verdict
from bgt_core.tables import Estimate, Table, Value, p_text
from probes.result import LEVEL, Difference
from probes.results.store import Cell

ORDERS = math.factorial(8)  # with at most 8 languages, all orders are enumerated; with more, orders are random
RESAMPLES = 4_000  # number of resamples of the languages for the interval
FEWEST = 3  # minimum number of languages for a trend


class LanguageGap(NamedTuple):
    """The gap of a bilingual model of English and `other`, or of a multilingual model probed in `other`."""

    other: str
    task: str  # a probing task, or "sts"
    points: float
    error: float = 0.0  # standard error; 0 if unknown


class Trend(NamedTuple):
    """The correlation of the gaps of L languages with the distances of these languages to English."""

    langs: tuple[str, ...]  # the nearest first
    rho: Estimate  # Spearman's correlation, with the interval of `spearman_interval`
    p: float  # two-sided, by permutation of the languages


class DistanceClaim(NamedTuple):
    """The claim that the mean gap of these tasks falls with a language's distance to English."""

    text: str
    tasks: tuple[str, ...]
    distance: str = ""  # name of the measure of distance; "": the claim is tested with every measure


CLAIMS = (
    DistanceClaim("word content, subject and object number: the gap shrinks", ("word-content", "subj-num", "obj-num")),
    DistanceClaim("word content goes with the overlap of alphabets", ("word-content",), "letters"),
    DistanceClaim("length and punctuation: the language latent's lead grows", ("length", "punct-num", "punct-first")),
    DistanceClaim("STS: the gap shrinks", ("sts",)),
)


def _rows(name: str) -> list[dict[str, str]]:
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


# (the model's other language, task, language of the sentences) -> the paper's scores of both latents
PUBLISHED = {
    (row["other"], row["task"], row["lang"]): (float(row["semantic"]), float(row["language"]))
    for row in _rows("published.tsv")
}
DISTANCES = {
    name: {row["lang"]: float(row[name]) for row in _rows("distances.tsv") if row[name]}
    for name in ("weeks", "syntax", "paper")
}


def paper_gaps() -> list[LanguageGap]:
    """Return the gaps of the paper's table 3, on English sentences."""
    english = {cell: scores for cell, scores in PUBLISHED.items() if cell[2] == "en"}
    return [LanguageGap(other, task, own - second) for (other, task, _), (own, second) in english.items()]


def other_language(lang: str, langs: Sequence[str]) -> str:
    """Return the language with which to label a result in `lang`, for a model of the languages `langs`.

    Results of a bilingual model on English sentences get the other language of the model, as in the paper.
    """
    others = [other for other in langs if other != "en"]
    return others[0] if lang == "en" and len(others) == 1 else lang


def latent_gap(difference: Difference | None) -> Difference | None:
    """Return the difference of semantic minus language latent, turned if necessary; None for other predictors."""
    names = (difference.first, difference.second) if difference else ()
    if difference and names == (LANGUAGE, SEMANTIC):
        low, high = -difference.ci_high, -difference.ci_low
        points = -difference.points
        return replace(difference, first=SEMANTIC, second=LANGUAGE, points=points, ci_low=low, ci_high=high)
    return difference if names == (SEMANTIC, LANGUAGE) else None


def probe_gaps(cells: Sequence[Cell]) -> list[LanguageGap]:
    """Return the gaps in the results that compare both latents.

    For a bilingual model with English, results on English sentences are used, as in the paper; for a multilingual
    model, results in each language except English. The standard errors are computed from the intervals as if these were
    normal. But they are Student's intervals, so the errors are too large, with five probe seeds at most by a factor of
    1.4.
    """
    gaps = []
    for cell in cells:
        difference, langs = latent_gap(cell.result.difference), cell.trail["langs"]
        of_pair = len(langs) == 2 and "en" in langs
        if difference and (cell.result.lang == "en") == of_pair:
            error = (difference.ci_high - difference.ci_low) / 2 / NormalDist().inv_cdf((1 + LEVEL) / 2)
            gaps.append(LanguageGap(other_language(cell.result.lang, langs), difference.task, difference.points, error))
    return gaps


def mean_gaps(gaps: Sequence[LanguageGap], tasks: Sequence[str]) -> dict[str, LanguageGap]:
    """Average the gaps over the models of a language, and then over the tasks: language -> mean gap.

    Languages that lack a task are left out.
    """

    def mean(some: Sequence[LanguageGap]) -> LanguageGap:
        error = float(np.linalg.norm([gap.error for gap in some])) / len(some)
        return LanguageGap(some[0].other, some[0].task, float(np.mean([gap.points for gap in some])), error)

    means = {}
    for other in dict.fromkeys(gap.other for gap in gaps):
        of_tasks = [[gap for gap in gaps if (gap.other, gap.task) == (other, task)] for task in tasks]
        if all(of_tasks):
            means[other] = mean([mean(of_task) for of_task in of_tasks])
    return means


def gap_trend(gaps: Mapping[str, LanguageGap], distance: Mapping[str, float]) -> Trend | None:
    """Correlate {language: gap} with {language: distance to English}, for the languages that have both.

    With few languages, p can't be small: with 5 languages it is at least 1/60, and with ties more. Returns None for
    fewer than three languages, or if all languages have the same gap or the same distance.
    """
    langs = tuple(sorted((lang for lang in gaps if lang in distance), key=lambda lang: (distance[lang], lang)))
    x = np.array([distance[lang] for lang in langs], dtype=float)
    y, errors = (np.array([getattr(gaps[lang], part) for lang in langs], float) for part in ("points", "error"))
    if len(langs) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    ranks = [rankdata(values) - (len(langs) + 1) / 2 for values in (x, y)]
    first, second = (rank / np.linalg.norm(rank) for rank in ranks)
    rho = float(first @ second)
    p = permutation_test(
        (second,), lambda orders, axis: np.abs(np.sum(orders * first, axis)), permutation_type="pairings",
        vectorized=True, n_resamples=ORDERS, alternative="greater", random_state=0,
    ).pvalue  # fmt: skip
    return Trend(langs, Estimate(rho, *spearman_interval(x, y, errors)), float(p))


def spearman_interval(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of Spearman's rho of x and y, both (L,), from resamples of the languages.

    Normal noise with the standard `errors` of y is added to each resample. Resamples in which all x or all y are equal
    are left out. With few languages the interval is only approximate.
    """
    rng = np.random.default_rng([0, len(x)])
    rows = rng.integers(len(x), size=(RESAMPLES, len(x)))
    drawn = (y + errors * rng.standard_normal((RESAMPLES, len(y))))[np.arange(RESAMPLES)[:, None], rows]
    ranks = [rankdata(values, axis=1) for values in (x[rows], drawn)]
    first, second = (rank - rank.mean(1, keepdims=True) for rank in ranks)
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    rho = (first * second).sum(1)[norms > 0] / norms[norms > 0]
    low, high = np.quantile(rho, [0.025, 0.975])
    return float(low), float(high)


def language_table(gaps: Sequence[LanguageGap], distances: Mapping[str, Mapping[str, float]]) -> Table:
    """Make a table with a row for each language: its distances, and the gap of each task."""
    tasks = {task: mean_gaps(gaps, [task]) for task in dict.fromkeys(gap.task for gap in gaps)}
    rows: list[list[Value]] = [
        [
            lang,
            *(f"{distance[lang]:.3g}" if lang in distance else "" for distance in distances.values()),
            *(task[lang].points if lang in task else None for task in tasks.values()),
        ]
        for lang in dict.fromkeys(gap.other for gap in gaps)
    ]
    return Table(["language", *distances, *(f"{task} gap" for task in tasks)], rows)


def judged_table(gaps: Sequence[LanguageGap], distances: Mapping[str, Mapping[str, float]]) -> Table:
    """Make a table with a row for each claim and each measure of distance: the verdicts from `gaps` and from the paper.

    A claim holds if the gap falls significantly with distance. Holm's correction is over all trends of `gaps`, and
    separately over all trends of the paper.
    """
    pairs = [(claim, name) for claim in CLAIMS for name in distances if claim.distance in ("", name)]
    rows: list[list[Value]] = [[claim.text, name] for claim, name in pairs]
    for side in (gaps, paper_gaps()):
        trends = [gap_trend(mean_gaps(side, claim.tasks), distances[name]) for claim, name in pairs]
        adjusted = iter(holm(np.array([trend.p for trend in trends if trend])).tolist())
        for row, trend in zip(rows, trends, strict=True):
            if trend is None:
                row += [NOT_RUN, "", None, ""]
            else:
                p = next(adjusted)
                row += [verdict(-trend.rho.value, p, LEVEL), " ".join(trend.langs), trend.rho, p_text(p)]
    head = ["claim", "distance", "ours", "languages", "rho", "p (Holm)"]
    return Table([*head, "the paper's numbers", "its languages", "its rho", "its p (Holm)"], rows, digits=2)
