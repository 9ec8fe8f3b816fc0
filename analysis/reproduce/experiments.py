"""What a comparison of the paper is made of; `comparisons` lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.tasks.syntax import CONSTITUENTS, EDITS, STRUCTURE, TAGS

AVERAGE, DEV, RETRIEVAL = "STS average", "STSB dev", "P@1"  # measures; a year is "STS 2012", a track "STS17 en-tr"
SETS = "mean of sets"  # over all data sets of the STS years and SICK (Wieting, Mallinson & Gimpel 2017)
# Sentences written anew: from their own latents, and with the meaning of the other language in the style of the
# reference or of a random sentence.
CHRF_OWN, EXACT_OWN, CHRF_OTHER, CHRF_STYLE = "chrF own", "exact own", "chrF other's meaning", "chrF random style"
FIDELITY = (CHRF_OWN, EXACT_OWN, CHRF_OTHER, CHRF_STYLE)
F1 = STRUCTURE[CONSTITUENTS]  # compares a sentence and its nearest neighbour
SYNTAX = (*STRUCTURE.values(), EDITS, TAGS)
# By how much the latent that should be better at a measure is: the semantic one (1), or the syntactic one (-1).
STS_GAP, DEV_GAP, F1_GAP = "STS gap", "STSB dev gap", "F1 gap"
GAPS = {STS_GAP: (AVERAGE, 1), DEV_GAP: (DEV, 1), F1_GAP: (F1, -1)}
ONE, THREE = (1,), (1, 2, 3)


@dataclass(frozen=True)
class Selection:
    """Random pairs of a table of paraphrases, the first candidate of each reference that a filter keeps."""

    table: str
    keep: str = ""  # as `bgt data prepare --keep`; a limit of "33%" is that quantile of the table's own scores
    times: int = 1  # size, in multiples of the other selections' size

    def __str__(self) -> str:
        return " ".join(filter(None, (self.table, self.keep, f"x{self.times}" if self.times > 1 else "")))


@dataclass(frozen=True)
class ExperimentSpec:
    """One system of a comparison: a recipe, overrides of the scale's arguments, and the seeds to train it with."""

    name: str
    recipe: str
    overrides: Mapping[str, object] = field(default_factory=dict)
    langs: tuple[str, ...] = ("en", "fr")
    seeds: Sequence[int] = ONE
    latent: str = SEMANTIC  # the one that is measured
    against: str = "BGT"  # the system that it is compared with
    selection: Selection | None = None  # training data, instead of all translations of `langs`
    starts_from: str = ""  # for a second stage, the system of the first stage; the seed is the same
    best_of: Sequence[str] = ()  # it is that one of these systems that is best on STS Benchmark's dev set


@dataclass(frozen=True)
class Claim:
    """A statement of the paper about a measure: the sum of `weights` times the systems' scores is above 0."""

    statement: str
    where: str  # in the paper
    weights: Mapping[str, float]
    measure: str = AVERAGE


@dataclass(frozen=True)
class Comparison:
    """Systems side by side: a table or figure of the paper."""

    title: str
    systems: Sequence[ExperimentSpec]
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # system -> measure -> Pearson x 100
    claims: Sequence[Claim] = ()
    note: str = ""
    measure: str = AVERAGE  # the one that its page goes by


def average_of_years(numbers: Mapping[str, float], measure: str) -> float | None:
    """The paper's number of a measure, its average over all its years."""
    years = [value for name, value in numbers.items() if name.startswith("STS 2")]
    return sum(years) / len(years) if measure == AVERAGE and years else numbers.get(measure)


def above(first: str, second: str, where: str, measure: str = AVERAGE) -> Claim:
    """The claim that one system scores more than another."""
    return Claim(f"{first} is above {second} on {measure}", where, {first: 1, second: -1}, measure)


def years(*scores: float, **others: float) -> dict[str, float]:
    """STS 2012 and the following years, in order; Hard+ and Hard- as `plus` and `minus`."""
    by_year = {f"STS {year}": score for year, score in enumerate(scores, 2012)}
    hard = {"plus": "Hard+", "minus": "Hard-"}
    return by_year | {hard[name]: score for name, score in others.items()}
