"""Test whether the separation of the latents changes with a language's distance to English.

A gap is the semantic latent's score minus the language latent's score, in points of a probe's accuracy or of the STS
average. Gaps are stored in a data frame with a row for each model and task, and these columns: `other`, the language of
the model besides English, or the language in which a multilingual model was probed; `task`, a probing task or "sts";
`points`, the gap; and `error`, the standard error of the gap, 0 if unknown.

The BGT paper (sec. 5.2, Table 3) claims trends of the gaps with distance, but tests none and measures no distance: it
calls French and Spanish closely related to English, Arabic and Turkish more distantly related, and Japanese very
distant ("paper" in `DISTANCES`). Here, a trend is the rank correlation of the gaps with the distances.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, permutation_test, zscore

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import UsageError
from bgt_core.evaluation.bootstrap import NOT_RUN, holm, verdict
from bgt_core.tables import Estimate, Table, Value, p_text
from probes.measures.significance import correct
from probes.results.store import LEVEL, Cell, Difference
from probes.tables import accuracy, best_baseline

ORDERS = math.factorial(8)  # maximum number of permutations in a test; for more than 8 languages, a random sample
RESAMPLES = 4_000  # number of bootstrap resamples of the languages for an interval
FEWEST = 3  # minimum number of languages for a trend

# Claim of the paper -> tasks whose mean gap should fall with distance, and the name of the distance ("" for each).
CLAIMS = {
    "word content, subject and object number: the gap shrinks": (["word-content", "subj-num", "obj-num"], ""),
    "word content goes with the overlap of alphabets": (["word-content"], "letters"),
    "length and punctuation: the language latent's lead grows": (["length", "punct-num", "punct-first"], ""),
    "STS: the gap shrinks": (["sts"], ""),
}
_SCORES, _LANGUAGES = (
    pd.read_csv(Path(__file__).with_name(name), sep="\t", comment="#") for name in ("published.tsv", "distances.tsv")
)
# The paper's scores of both latents, by (the model's language besides English, task, language of the sentences).
PUBLISHED = {(other, task, lang): tuple(scores) for _, other, task, lang, *scores in _SCORES.itertuples()}
# Measures of distance to English, each with the distance of every language.
DISTANCES = {name: column.dropna().to_dict() for name, column in _LANGUAGES.set_index("lang").items()}


def paper_gaps() -> pd.DataFrame:
    """Return the differences between the latents' scores in the paper's table 3, on English sentences."""
    points = _SCORES["semantic"] - _SCORES["language"]
    return _SCORES.assign(points=points, error=0.0)[_SCORES["lang"] == "en"]


def other_language(lang: str, langs: Sequence[str]) -> str:
    """Return the value of the column `other` for a result in `lang` by a model of the languages `langs`.

    For a bilingual model with English, results on English sentences count for the other language, as in the paper.
    """
    others = [other for other in langs if other != "en"]
    return others[0] if lang == "en" and len(others) == 1 else lang


def latent_gap(difference: Difference | None) -> Difference | None:
    """Return a difference between both latents as semantic minus language latent; None for any other difference."""
    names = (difference.first, difference.second) if difference else ()
    if difference and names == (LANGUAGE, SEMANTIC):
        low, high = -difference.ci_high, -difference.ci_low
        points = -difference.points
        return replace(difference, first=SEMANTIC, second=LANGUAGE, points=points, ci_low=low, ci_high=high)
    return difference if names == (SEMANTIC, LANGUAGE) else None


def probe_gaps(cells: Sequence[Cell]) -> pd.DataFrame:
    """Return the score differences of all results that compare both latents.

    For a bilingual model with English, only results on English sentences are used, as in the paper; for a multilingual
    model, results in each language except English. The standard errors are computed from the intervals as if these were
    normal intervals. They are Student's intervals, so the errors are too large, by a factor of at most 1.4 with five
    probe seeds.
    """
    gaps = []
    for cell in cells:
        gap, langs, lang = latent_gap(cell.result.difference), cell.trail["langs"], cell.result.lang
        if gap and (lang == "en") == (len(langs) == 2 and "en" in langs):
            error = (gap.ci_high - gap.ci_low) / 2 / norm.isf((1 - LEVEL) / 2)
            gaps.append((other_language(lang, langs), gap.task, gap.points, error))
    return pd.DataFrame(gaps, columns=["other", "task", "points", "error"])


def mean_gaps(gaps: pd.DataFrame, tasks: Sequence[str]) -> pd.DataFrame:
    """Average `points` and `error` over models of the same language `other`, then over tasks; the index is `other`.

    Languages that lack a task are left out.
    """
    points, errors = (
        gaps.pivot_table(name, "other", "task", average).reindex(columns=tasks).dropna()
        for name, average in (("points", "mean"), ("error", lambda errors: np.linalg.norm(errors) / len(errors)))
    )
    return pd.DataFrame({"points": points.mean(axis=1), "error": np.linalg.norm(errors, axis=1) / len(tasks)})


def gap_trend(gaps: pd.DataFrame, distance: Mapping[str, float]) -> tuple[list[str], Estimate, float] | None:
    """Correlate the result of `mean_gaps` with {language: distance to English}, for the languages that have both.

    Returns the languages, nearest first; Spearman's rho with its interval; and its two-sided p-value, from a
    permutation test. With few languages, p can't be small: with 5 languages it is at least 1/60, and larger if
    distances tie. Returns None for fewer than three languages, or if all languages have the same gap or the same
    distance.
    """
    frame = gaps.assign(distance=pd.Series(distance)).dropna().sort_values(["distance", "other"])
    if len(frame) < FEWEST or frame[["points", "distance"]].nunique().min() < 2:
        return None
    x, y = (zscore(frame[name].rank().to_numpy()) for name in ("distance", "points"))
    p = permutation_test(
        (y,), lambda orders, axis: np.abs((orders * x).mean(axis)), permutation_type="pairings",
        vectorized=True, n_resamples=ORDERS, alternative="greater", random_state=0,
    ).pvalue  # fmt: skip
    interval = spearman_interval(*(frame[name].to_numpy() for name in ("distance", "points", "error")))
    return list(frame.index), Estimate(float((x * y).mean()), *interval), float(p)


def spearman_interval(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of Spearman's rho of x and y, both (L,), from resamples of the languages.

    Normal noise is added to each resample; its standard deviations are `errors`, the standard errors of y. Resamples in
    which all x or all y are equal are left out. With few languages, the interval is only approximate.
    """
    rng = np.random.default_rng([0, len(x)])
    rows = rng.integers(len(x), size=(RESAMPLES, len(x)))
    drawn = np.take_along_axis(y + errors * rng.standard_normal(rows.shape), rows, axis=1)
    first, second = (pd.DataFrame(values).rank(axis=1) for values in (x[rows], drawn))
    low, high = first.corrwith(second, axis=1).quantile([0.025, 0.975])  # ignores NaN (all values equal)
    return float(low), float(high)


def language_table(gaps: pd.DataFrame, distances: Mapping[str, Mapping[str, float]]) -> Table:
    """Make a table with a row per language: its distance to English by each measure, and its gap in each task."""
    tasks = gaps["task"].unique()
    means = gaps.pivot_table("points", "other", "task").reindex(gaps["other"].unique(), columns=tasks)
    rows: list[list[Value]] = []
    for lang, *points in means.itertuples():
        near = [f"{distance[lang]:.3g}" if lang in distance else "" for distance in distances.values()]
        rows.append([lang, *near, *(None if np.isnan(value) else value for value in points)])
    return Table(["language", *distances, *(f"{task} gap" for task in tasks)], rows)


def judged_table(gaps: pd.DataFrame, distances: Mapping[str, Mapping[str, float]]) -> Table:
    """Test the paper's claims on `gaps` and on its own scores; return a table with a row for each claim and distance.

    A claim holds if the gap falls significantly with distance. Holm's correction is applied to all trends of `gaps`,
    and separately to all trends of the paper's scores.
    """
    pairs = [(claim, name) for claim, (_, only) in CLAIMS.items() for name in distances if only in ("", name)]
    rows: list[list[Value]] = [list(pair) for pair in pairs]
    for side in (gaps, paper_gaps()):
        trends = [gap_trend(mean_gaps(side, CLAIMS[claim][0]), distances[name]) for claim, name in pairs]
        adjusted = iter(holm(np.array([trend[2] for trend in trends if trend])).tolist())
        for row, trend in zip(rows, trends, strict=True):
            if trend is None:
                row += [NOT_RUN, "", None, ""]
            else:
                (langs, rho, _), p = trend, next(adjusted)
                row += [verdict(-rho.value, p, LEVEL), " ".join(langs), rho, p_text(p)]
    head = ["claim", "distance", "ours", "languages", "rho", "p (Holm)"]
    return Table([*head, "the paper's numbers", "its languages", "its rho", "its p (Holm)"], rows, digits=2)


def separation(cells: Sequence[Cell]) -> tuple[Table, str]:
    """For each property, compare with the paper which latent predicts it better.

    For each task, the paper claims that one latent is better, so only the signs of the differences are compared.
    Returns a table with a row for each result of both latents, and a sentence with the number of signs that agree.
    Raises UsageError if no result is of both latents.
    """
    both = [(cell, gap) for cell in cells if (gap := latent_gap(cell.result.difference))]
    if not both:
        raise UsageError("No result has both latents; probe the semantic and the language latent of a BGT model.")
    rows: list[list[Value]] = []
    signs = []
    for (cell, _), gap in zip(both, correct([gap for _, gap in both]), strict=True):
        p = gap.p if gap.adjusted_p is None else gap.adjusted_p
        more = "neither" if p >= 1 - LEVEL else SEMANTIC if gap.points > 0 else LANGUAGE
        others = set(cell.trail["langs"]) - {"en"}  # the paper's models are for English and one more language
        paper = PUBLISHED.get((others.pop() if len(others) == 1 else "", gap.task, gap.lang), (None, None))
        sign = "no such cell"
        if paper[0] is not None:
            same = (paper[0] > paper[1]) == (more == SEMANTIC)
            sign = "undecided" if more == "neither" else "as the paper" if same else "not as the paper"
            signs.append(sign)
        best = best_baseline(cell)
        accuracies = (accuracy(cell, latent) for latent in (SEMANTIC, LANGUAGE))
        points = Estimate(gap.points, gap.ci_low, gap.ci_high)
        baseline = ["", None] if best is None else [best.latent, 100 * best.accuracy]
        rows.append([gap.task, gap.lang, *accuracies, points, p_text(p), more, *paper, sign, *baseline])
    columns = ["task", "lang", "semantic", "language", "difference", "p (Holm)", "holds more", "paper semantic"]
    counted = (
        f"Cells that the paper has too: {signs.count('as the paper')} with its sign, "
        f"{signs.count('not as the paper')} with the other, {signs.count('undecided')} where the latents can't be "
        "told apart."
    )
    table = Table([*columns, "paper language", "sign", "best baseline", "its accuracy"], rows)
    return table, counted if signs else "The paper has none of these cells."
