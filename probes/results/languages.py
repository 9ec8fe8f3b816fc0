"""Does the separation of the latents change with a language's distance to English? (paper, sec. 5.2)

    results of `bgt-probe` and `bgt evaluate sts`, or the paper's table 3 -> gaps -> trends over distances -> verdicts

A gap is semantic minus language, in points: of a probe's accuracy, or of the STS average.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist, mean

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import DataError, NotFound
from bgt_core.evaluation.bootstrap import NOT_RUN, holm, verdict
from bgt_core.files import read_json
from bgt_core.tables import Estimate, Table, Value, p_text
from probes.measures.distance import Trend, trend
from probes.results.published import STS, TABLE, published, published_sts
from probes.results.separation import latent_gap
from probes.results.store import Cell
from probes.tasks import PAPER

STS_TASK = "sts"  # a task beside the probing tasks
LETTERS = "letters"  # the distance of one of the claims
LEVEL = 0.95  # of the verdicts
FEWEST = 3  # minimum number of languages for a trend


@dataclass(frozen=True)
class LanguageGap:
    """The gap of a model of English and `other`, or of a multilingual model probed in `other`."""

    other: str
    task: str
    points: float
    error: float = 0.0  # standard error; 0 if unknown


@dataclass(frozen=True)
class DistanceClaim:
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


@dataclass(frozen=True)
class Judgement:
    """A claim by one distance: the verdicts from our gaps and from the paper's."""

    claim: DistanceClaim
    distance: str
    ours: Trend | None  # None with fewer than three languages
    ours_holm: float
    verdict: str
    paper: Trend | None
    paper_holm: float
    paper_verdict: str


def other_language(lang: str, langs: Sequence[str]) -> str:
    """The language that a result in `lang` of a model of `langs` is about: for English, the model's other language, if
    it has one."""
    others = [other for other in langs if other != "en"]
    return others[0] if lang == "en" and len(others) == 1 else lang


def probe_gaps(cells: Sequence[Cell]) -> list[LanguageGap]:
    """The gaps of results that compare the two latents: for a model of English and one other language, on English
    sentences, as in the paper; for a multilingual model, in each language except English."""
    gaps = []
    for cell in cells:
        difference, langs = latent_gap(cell.result.difference), cell.trail["langs"]
        of_pair = len(langs) == 2 and "en" in langs
        about_other = (cell.result.lang == "en") == of_pair
        if difference and about_other:
            other = other_language(cell.result.lang, langs)
            error = standard_error(difference.ci_low, difference.ci_high, cell.result.level)
            gaps.append(LanguageGap(other, difference.task, difference.points, error))
    return gaps


def sts_gap(other: str, path: Path) -> LanguageGap:
    """Read the gap from the JSON of `bgt evaluate sts` for one model with both latents: of the average, or of the only
    set; DataError for anything else."""
    try:
        document = read_json(path)
        gaps = [row for row in document["differences"] if is_gap(row)]
        (row,) = [row for row in gaps if row["dataset"] == "average"] or gaps
        sign = 1 if row["first"].endswith(SEMANTIC) else -1
        return LanguageGap(
            other, STS_TASK, sign * row["value"], standard_error(row["ci_low"], row["ci_high"], document["level"])
        )
    except NotFound as error:
        raise NotFound(str(error), parameter="sts") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path}: expected the JSON of one model with both latents, an average or one set, as in: "
            "bgt evaluate sts sts --json > FILE"
        ) from None


def is_gap(row: Mapping[str, str]) -> bool:
    """Whether a row compares the two latents of one model; systems are named as in "mine semantic"."""
    return {row[name].split()[-1] for name in ("first", "second")} == {SEMANTIC, LANGUAGE}


def standard_error(low: float, high: float, level: float) -> float:
    """The standard error from the bounds of a normal interval; too large, by 1.4 at most with five probe seeds, from
    those of Student's t."""
    return (high - low) / 2 / NormalDist().inv_cdf((1 + level) / 2)


def paper_gaps() -> list[LanguageGap]:
    """The gaps of the paper's table 3."""
    probed = [(other, task, published(other, task, "en")) for other in TABLE for task in PAPER]
    scored = [(other, STS_TASK, published_sts(other)) for other in STS]
    return [LanguageGap(other, task, cell.gap) for other, task, cell in (*probed, *scored) if cell]


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
    return LanguageGap(gaps[0].other, task, mean(gap.points for gap in gaps), error)


def claim_trend(claim: DistanceClaim, gaps: Sequence[LanguageGap], distance: Mapping[str, float]) -> Trend | None:
    """The trend of the mean gap of the claim's tasks, over the languages that have all of them; None as for
    `gap_trend`."""
    tasks = by_task(gaps)
    if any(task not in tasks for task in claim.tasks):
        return None
    langs = [lang for lang in distance if all(lang in tasks[task] for task in claim.tasks)]
    return gap_trend({lang: mean_gap("", [tasks[task][lang] for task in claim.tasks]) for lang in langs}, distance)


def gap_trend(gaps: Mapping[str, LanguageGap], distance: Mapping[str, float]) -> Trend | None:
    """The trend of {language: gap}, over the languages with a distance.

    None for fewer than three, or if all have the same gap or distance.
    """
    points = {lang: gap.points for lang, gap in gaps.items() if lang in distance}
    if len(points) < FEWEST or len(set(points.values())) == 1 or len({distance[lang] for lang in points}) == 1:
        return None
    return trend(points, distance, error={lang: gap.error for lang, gap in gaps.items()})


def judge(gaps: Sequence[LanguageGap], distances: Mapping[str, Mapping[str, float]]) -> list[Judgement]:
    """Test every claim by every distance that it is about. Holm's correction covers the rows with a trend, for our gaps
    and for the paper's separately."""
    rows = [
        (claim, name, claim_trend(claim, gaps, distances[name]), claim_trend(claim, paper_gaps(), distances[name]))
        for claim in CLAIMS
        for name in distances
        if claim.distance in ("", name)
    ]
    ours = corrected([own for _, _, own, _ in rows])
    papers = corrected([paper for *_, paper in rows])
    return [
        Judgement(claim, name, own, p, decide(own, p), paper, paper_p, decide(paper, paper_p))
        for (claim, name, own, paper), p, paper_p in zip(rows, ours, papers, strict=True)
    ]


def corrected(trends: Sequence[Trend | None]) -> list[float]:
    """Holm's p of each trend in rank; 1 without a trend."""
    adjusted = iter(holm(np.array([each.spearman_p for each in trends if each])))
    return [float(next(adjusted)) if each else 1.0 for each in trends]


def decide(each: Trend | None, p_holm: float) -> str:
    """Whether a claim holds: the gap falls with distance."""
    return verdict(-each.spearman, p_holm, LEVEL) if each else NOT_RUN


def language_table(gaps: Sequence[LanguageGap], distances: Mapping[str, Mapping[str, float]]) -> Table:
    """A row for each language: its distances, and the gap of each task."""
    tasks = by_task(gaps)
    langs = dict.fromkeys(gap.other for gap in gaps)
    rows: list[list[Value]] = [
        [
            lang,
            *(plain(distance.get(lang)) for distance in distances.values()),
            *(task[lang].points if lang in task else None for task in tasks.values()),
        ]
        for lang in langs
    ]
    return Table(["language", *distances, *(f"{task} gap" for task in tasks)], rows)


def plain(distance: float | None) -> str:
    return "" if distance is None else f"{distance:.3g}"


def judged_table(judgements: Sequence[Judgement]) -> Table:
    """A row for each claim and distance."""
    rows: list[list[Value]] = [
        [
            row.claim.text,
            row.distance,
            row.verdict,
            *trend_values(row.ours, row.ours_holm),
            row.paper_verdict,
            *trend_values(row.paper, row.paper_holm),
        ]
        for row in judgements
    ]
    head = ["claim", "distance", "ours", "languages", "rho", "p (Holm)"]
    return Table([*head, "the paper's numbers", "its languages", "its rho", "its p (Holm)"], rows, digits=2)


def trend_values(each: Trend | None, p_holm: float) -> list[Value]:
    if each is None:
        return ["", None, ""]
    rho = Estimate(each.spearman, each.spearman_low, each.spearman_high)
    return [" ".join(each.langs), rho, p_text(p_holm)]
