"""Does the separation of the latents change with a language's distance to English? (paper, sec. 5.2 and Table 3)

    results of `bgt-probe` and `bgt evaluate sts`, or the paper's table 3 -> gaps -> trends over distances -> verdicts

A gap is semantic minus language, in points: of a probe's accuracy, or of the STS average; in the paper in models of
English with one other language each. The paper reads three trends from Table 3, without computing them: if the other
language is more distant, the gap is smaller in STS, smaller in word content and in number of subjects and objects, and
more negative in length and punctuation. It does not measure distance either: it calls French and Spanish closely
related to English, Arabic and Turkish more distantly, Japanese very distant. That order is `PAPER_ORDER`; `FSI_WEEKS`
is an independent measure. A trend is a correlation with distance, its p by permutation of the languages, its interval
by resampling them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import DataError, NotFound
from bgt_core.evaluation.bootstrap import NOT_RUN, holm, verdict
from bgt_core.files import read_json
from bgt_core.tables import Estimate, Table, Value, p_text
from probes.result import LEVEL, Difference
from probes.results.store import Cell
from probes.tasks import PAPER

PAPER_ORDER = {"fr": 1, "es": 1, "ar": 2, "tr": 2, "ja": 3}
# Weeks of full-time classes until English speakers reach professional working proficiency, as the Foreign Service
# Institute observed and the U.S. Department of State listed ("FSI's Experience with Language Learning",
# state.gov/m/fsi/sls/c78549.htm).
FSI_WEEKS = {
    "da": 24, "nl": 24, "it": 24, "no": 24, "pt": 24, "ro": 24, "es": 24, "sv": 24, "fr": 30,
    "de": 36, "id": 36, "ms": 36, "sw": 36,
    "bg": 44, "cs": 44, "et": 44, "fa": 44, "fi": 44, "el": 44, "he": 44, "hi": 44, "hu": 44, "lt": 44, "lv": 44,
    "pl": 44, "ru": 44, "sk": 44, "sl": 44, "ta": 44, "th": 44, "tr": 44, "uk": 44, "vi": 44,
    "ar": 88, "ja": 88, "ko": 88, "zh": 88,
}  # fmt: skip
# Angular distance to English, 0 to 1, of the syntactic features of URIEL (Littell et al. 2017), unknown ones as
# predicted from the nearest languages: 2 arccos(cosine) / pi of the "syntax_knn" vectors in lang2vec 1.1.2. Arabic is
# the standard one.
URIEL_SYNTAX = {
    "nl": 0.249, "de": 0.283, "it": 0.344, "pt": 0.362, "es": 0.386, "fr": 0.397, "ru": 0.397, "zh": 0.495,
    "ar": 0.554, "ko": 0.627, "tr": 0.662, "ja": 0.667,
}  # fmt: skip
EXACT = 8  # up to this many languages all orders are enumerated: 40,320
ORDERS = 20_000  # random orders beyond that
RESAMPLES = 4_000  # of the languages, for the interval
FEWEST = 3  # minimum number of languages for a trend
STS_TASK = "sts"  # a task beside the probing tasks
LETTERS = "letters"  # the distance of one of the claims

# The paper's accuracies in percent (Wieting et al. 2020, table 3). For each model of OpenSubtitles, of English and
# another language: BilingualTrans, its semantic latent, its English language latent, on English sentences; gender is
# probed on sentences of the other language, from that language's own latent. The paper does not describe how the probes
# were trained, and gives no intervals.
TABLE: dict[str, tuple[tuple[float, ...], ...]] = {  # other language -> a row for each of the three
    "fr": (
        (78.0, 76.5, 28.2, 65.9, 80.2, 74.0, 56.9, 88.3, 53.0),
        (84.6, 80.9, 29.7, 70.5, 77.4, 73.0, 60.7, 87.9, 52.6),
        (75.2, 72.0, 28.0, 63.6, 65.4, 80.2, 65.3, 92.2, 56.5),
    ),
    "es": (
        (84.5, 82.1, 29.7, 68.5, 79.2, 77.7, 63.4, 90.1, 54.3),
        (85.7, 83.6, 32.5, 71.0, 77.3, 76.7, 63.1, 89.9, 52.6),
        (75.7, 73.7, 29.1, 63.9, 63.3, 80.2, 64.2, 92.7, 54.7),
    ),
    "ar": (
        (77.6, 74.5, 28.1, 67.0, 77.5, 72.3, 57.5, 89.0),
        (81.9, 80.8, 32.1, 71.7, 71.9, 73.3, 61.8, 88.5),
        (76.2, 73.1, 28.4, 60.7, 71.2, 79.8, 63.4, 92.4),
    ),
    "tr": (
        (78.5, 74.9, 28.1, 60.2, 78.4, 72.1, 54.8, 87.3),
        (81.7, 80.2, 30.6, 66.0, 75.2, 72.4, 59.3, 86.7),
        (77.3, 74.4, 28.3, 63.1, 67.1, 79.7, 67.0, 92.5),
    ),
    "ja": (
        (66.4, 64.6, 25.4, 54.1, 76.0, 67.6, 53.8, 87.8),
        (68.0, 66.8, 27.5, 58.9, 70.1, 68.7, 52.9, 86.6),
        (77.6, 76.4, 28.0, 64.6, 70.0, 80.4, 62.8, 92.0),
    ),
}
STS: dict[str, tuple[float, float, float]] = {  # average of 2012-2016, Pearson x 100, in the same order
    "fr": (71.2, 72.4, 56.8),
    "es": (70.5, 72.1, 55.8),
    "ar": (70.2, 70.8, 58.9),
    "tr": (70.7, 72.3, 57.8),
    "ja": (71.0, 71.9, 60.6),
}


class Published(NamedTuple):
    """A cell of the paper's table."""

    semantic: float
    language: float

    @property
    def gap(self) -> float:
        """Semantic minus language, in points."""
        return self.semantic - self.language


class LanguageGap(NamedTuple):
    """The gap of a model of English and `other`, or of a multilingual model probed in `other`."""

    other: str
    task: str
    points: float
    error: float = 0.0  # standard error; 0 if unknown


class Trend(NamedTuple):
    """The trend of L languages' gaps with distance; each p is two-sided, by permutation of the languages."""

    langs: tuple[str, ...]  # nearest first
    gaps: tuple[float, ...]
    pearson: float
    pearson_p: float
    spearman: float
    spearman_low: float  # 95%, see `spearman_interval`
    spearman_high: float
    spearman_p: float


class DistanceClaim(NamedTuple):
    """The claim that the mean gap of these tasks falls with a language's distance to English."""

    text: str
    tasks: tuple[str, ...]
    distance: str = ""  # the only distance that it is about, if any


CLAIMS = (
    DistanceClaim("word content, subject and object number: the gap shrinks", ("word-content", "subj-num", "obj-num")),
    DistanceClaim("word content goes with the overlap of alphabets", ("word-content",), LETTERS),
    DistanceClaim("length and punctuation: the language latent's lead grows", ("length", "punct-num", "punct-first")),
    DistanceClaim("STS: the gap shrinks", (STS_TASK,)),
)


class Judgement(NamedTuple):
    """The trend of a claim by one distance, None with fewer than three languages; Holm's p; and the verdict."""

    trend: Trend | None
    p_holm: float
    verdict: str


def published(other: str, task: str, lang: str) -> Published | None:
    """The paper's scores of its model of English and `other` on this task in `lang`; None if it has none."""
    if task == STS_TASK:
        return Published(*STS[other][1:]) if other in STS and lang == "en" else None
    where = other if task == "gender" else "en"
    if other not in TABLE or task not in PAPER or lang != where:
        return None
    column = PAPER.index(task)
    _, semantic, language = TABLE[other]
    return Published(semantic[column], language[column]) if column < len(semantic) else None


def paper_gaps() -> list[LanguageGap]:
    """The gaps of the paper's table 3, on English sentences."""
    cells = [(other, task, published(other, task, "en")) for task in (*PAPER, STS_TASK) for other in TABLE]
    return [LanguageGap(other, task, cell.gap) for other, task, cell in cells if cell]


def other_language(lang: str, langs: Sequence[str]) -> str:
    """The language that a result in `lang` of a model of `langs` is about: for English, the model's other language, if
    it has one."""
    others = [other for other in langs if other != "en"]
    return others[0] if lang == "en" and len(others) == 1 else lang


def latent_gap(difference: Difference | None) -> Difference | None:
    """Semantic minus language, whichever was measured first; None for other predictors."""
    names = (difference.first, difference.second) if difference else ()
    if difference and names == (LANGUAGE, SEMANTIC):
        low, high = -difference.ci_high, -difference.ci_low
        points = -difference.points
        return replace(difference, first=SEMANTIC, second=LANGUAGE, points=points, ci_low=low, ci_high=high)
    return difference if names == (SEMANTIC, LANGUAGE) else None


def probe_gaps(cells: Sequence[Cell]) -> list[LanguageGap]:
    """The gaps of results that compare the two latents: for a model of English and one other language, on English
    sentences, as in the paper; for a multilingual model, in each language except English."""
    gaps = []
    for cell in cells:
        difference, langs = latent_gap(cell.result.difference), cell.trail["langs"]
        of_pair = len(langs) == 2 and "en" in langs
        if difference and (cell.result.lang == "en") == of_pair:
            error = standard_error(difference.ci_low, difference.ci_high)
            other = other_language(cell.result.lang, langs)
            gaps.append(LanguageGap(other, difference.task, difference.points, error))
    return gaps


def sts_gap(other: str, path: Path) -> LanguageGap:
    """Read the gap from the JSON of `bgt evaluate sts` for one model with both latents: of the average, or of the only
    set; DataError for anything else."""
    try:
        document = read_json(path)
        both = {SEMANTIC, LANGUAGE}  # systems are named as in "mine semantic"
        gaps = [row for row in document["differences"] if {row["first"].split()[-1], row["second"].split()[-1]} == both]
        (row,) = [row for row in gaps if row["dataset"] == "average"] or gaps
        sign = 1 if row["first"].endswith(SEMANTIC) else -1
        error = standard_error(row["ci_low"], row["ci_high"], document["level"])
        return LanguageGap(other, STS_TASK, sign * row["value"], error)
    except NotFound as error:
        raise NotFound(str(error), parameter="sts") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path}: expected the JSON of one model with both latents, an average or one set, as in: "
            "bgt evaluate sts sts --json > FILE"
        ) from None


def standard_error(low: float, high: float, level: float = LEVEL) -> float:
    """The standard error from the bounds of a normal interval; too large, by 1.4 at most with five probe seeds, from
    those of Student's t."""
    return (high - low) / 2 / NormalDist().inv_cdf((1 + level) / 2)


def by_task(gaps: Sequence[LanguageGap]) -> dict[str, dict[str, LanguageGap]]:
    """Task -> language -> gap; the mean if several models were measured."""
    several: dict[tuple[str, str], list[LanguageGap]] = defaultdict(list)
    for gap in gaps:
        several[gap.task, gap.other].append(gap)
    means: dict[str, dict[str, LanguageGap]] = defaultdict(dict)
    for (task, other), same in several.items():
        means[task][other] = mean_gap(task, same)
    return dict(means)


def mean_gap(task: str, gaps: Sequence[LanguageGap]) -> LanguageGap:
    error = float(np.linalg.norm([gap.error for gap in gaps])) / len(gaps)
    return LanguageGap(gaps[0].other, task, float(np.mean([gap.points for gap in gaps])), error)


def claim_trend(claim: DistanceClaim, gaps: Sequence[LanguageGap], distance: Mapping[str, float]) -> Trend | None:
    """The trend of the mean gap of the claim's tasks, over the languages that have all of them."""
    tasks = by_task(gaps)
    each = [tasks.get(task, {}) for task in claim.tasks]
    langs = [lang for lang in distance if all(lang in of_task for of_task in each)]
    return gap_trend({lang: mean_gap("", [of_task[lang] for of_task in each]) for lang in langs}, distance)


def gap_trend(gaps: Mapping[str, LanguageGap], distance: Mapping[str, float]) -> Trend | None:
    """Correlate {language: gap} with distances {language: distance to English}, over the languages with a distance.

    A few languages give little evidence: with 5 no p is below 1/60, and ties raise that. None for fewer than three, or
    if all have the same gap or distance.
    """
    langs = tuple(sorted((lang for lang in gaps if lang in distance), key=lambda lang: (distance[lang], lang)))
    x = np.array([distance[lang] for lang in langs], dtype=float)
    y, errors = (np.array([getattr(gaps[lang], part) for lang in langs], float) for part in ("points", "error"))
    if len(langs) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    spearman, p = correlation(rankdata(x), rankdata(y))
    return Trend(langs, tuple(y.tolist()), *correlation(x, y), spearman, *spearman_interval(x, y, errors), p)


def spearman_interval(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """The 95% interval of Spearman's rho of x and y, (L,) both: languages are resampled, and y varies by its standard
    errors.

    Draws need at least two distinct distances and gaps; like any interval it is rough for a handful of languages.
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


def correlation(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Pearson's r of x and y, (L,) both, and its two-sided p over orders of y: the share of orders with a correlation
    at least as far from 0."""
    x, y = ((values - values.mean()) / np.linalg.norm(values - values.mean()) for values in (x, y))
    size = len(x)
    if size <= EXACT:
        orders = np.array(list(permutations(range(size))))
    else:  # the observed order is included, so that p is never 0
        shuffled = np.random.default_rng(0).permuted(np.tile(np.arange(size), (ORDERS, 1)), axis=1)
        orders = np.concatenate([[np.arange(size)], shuffled])
    r = float(x @ y)
    return r, float((np.abs(y[orders] @ x) >= abs(r) - 1e-9).mean())


def judge(
    gaps: Sequence[LanguageGap], distances: Mapping[str, Mapping[str, float]]
) -> dict[tuple[DistanceClaim, str], Judgement]:
    """Test every claim by every distance that it is about; a claim holds if the gap falls with distance. Holm's
    correction covers the claims with a trend."""
    pairs = [(claim, name) for claim in CLAIMS for name in distances if claim.distance in ("", name)]
    trends = [claim_trend(claim, gaps, distances[name]) for claim, name in pairs]
    adjusted = iter(holm(np.array([each.spearman_p for each in trends if each])))
    judged = {}
    for pair, each in zip(pairs, trends, strict=True):
        p = float(next(adjusted)) if each else 1.0
        judged[pair] = Judgement(each, p, verdict(-each.spearman, p, LEVEL) if each else NOT_RUN)
    return judged


def language_table(gaps: Sequence[LanguageGap], distances: Mapping[str, Mapping[str, float]]) -> Table:
    """A row for each language: its distances, and the gap of each task."""
    tasks = by_task(gaps)
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
    """A row for each claim and distance: the verdict from these gaps, and that from the paper's."""

    def values(judged: Judgement) -> list[Value]:
        each = judged.trend
        if each is None:
            return [judged.verdict, "", None, ""]
        rho = Estimate(each.spearman, each.spearman_low, each.spearman_high)
        return [judged.verdict, " ".join(each.langs), rho, p_text(judged.p_holm)]

    ours, papers = judge(gaps, distances), judge(paper_gaps(), distances)
    rows = [[claim.text, name, *values(ours[claim, name]), *values(papers[claim, name])] for claim, name in ours]
    head = ["claim", "distance", "ours", "languages", "rho", "p (Holm)"]
    return Table([*head, "the paper's numbers", "its languages", "its rho", "its p (Holm)"], rows, digits=2)
