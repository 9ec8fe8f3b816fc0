"""The papers' comparisons: systems, published numbers, claims and scales, a file a paper in `tables`.

A system is a recipe, settings that differ from the scale's, and the seeds to train it with; `like` takes what another
system has. A claim is [first, second, where in the paper, measure]: the first scores more than the second, in the
comparison's own measure if none is named; or a sum of weights times scores is above 0. A published number alone is in
the comparison's measure, a list in those of `measures`. A scale has settings for every recipe that has them, and for
one recipe. BGT's paper is the command's `all`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bgt_core.contracts import SEMANTIC
from bgt_core.errors import UsageError
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

EVERY = "every"  # the settings of a scale for every recipe
Settings = Mapping[str, Mapping[str, object]]  # recipe or EVERY -> settings


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
    seeds: Sequence[int] = (1,)
    latent: str = SEMANTIC  # the one that is measured
    against: str = "BGT"  # the system that it is compared with
    selection: Selection | None = None  # training data, instead of all translations of `langs`
    share: float = 1.0  # of the training rows whose labels are known
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
    data: str = "translations"  # the kind of data that it trains on and is measured with, as `datasets` reads it
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the paper's tables: names of systems
    scales: Mapping[str, Settings] = field(default_factory=dict)
    pairs: Mapping[str, int] = field(default_factory=dict)  # scale -> pairs of a training, at most

    def part(self, name: str) -> Comparison:
        """One of the paper's tables."""
        return replace(self, systems=[system for system in self.systems if system.name in self.parts[name]])


def read(path: Path) -> dict[str, Comparison]:
    """The comparisons of a file, by name."""
    paper = tomllib.loads(path.read_text(encoding="utf-8"))
    scales, pairs = paper.pop("scale"), paper.pop("pairs", {})
    return {name: comparison_of(table, paper, scales, pairs) for name, table in paper.items()}


def comparison_of(
    table: dict[str, Any], paper: dict[str, Any], scales: Mapping[str, Settings], pairs: Mapping[str, int]
) -> Comparison:
    """A comparison, from its table and those of the same paper."""
    given, measure, systems = table["systems"], table.get("measure", AVERAGE), []
    for name, own in given.items():
        values = table.get("defaults", {}) | given.get(own.get("like"), {}) | own
        selection = {field: values.pop(field) for field in ("table", "keep", "times") if field in values}
        values.pop("like", None)
        values["langs"] = tuple(values.get("langs", ("en", "fr")))
        systems.append(ExperimentSpec(name, selection=Selection(**selection) if selection else None, **values))
    published = table.get("published", {})
    published = dict(paper[published]["published"] if isinstance(published, str) else published)
    measures = published.pop("measures", [])
    for name, numbers in published.items():
        if isinstance(numbers, list):
            published[name] = dict(zip(measures, numbers, strict=False))
        elif not isinstance(numbers, dict):
            published[name] = {measure: numbers}
    claims = [
        Claim(**claim) if isinstance(claim, dict) else above(*[*claim, measure][:4])
        for claim in table.get("claims", ())
    ]
    others = {name: table[name] for name in ("note", "data", "parts") if name in table}
    return Comparison(table["title"], systems, published, claims, measure=measure, scales=scales, pairs=pairs, **others)


def above(first: str, second: str, where: str, measure: str = AVERAGE) -> Claim:
    """The claim that one system scores more than another."""
    return Claim(f"{first} is above {second} on {measure}", where, {first: 1, second: -1}, measure)


TABLES = Path(__file__).with_name("tables")
OF_BGT = read(TABLES / "bgt.toml")
COMPARISONS = OF_BGT | {
    name: comparison
    for file in ("backtranslation", "vgvae", "var-siamese")
    for name, comparison in read(TABLES / f"{file}.toml").items()
}


def check_names(names: Sequence[str]) -> None:
    """UsageError for a name of no comparison."""
    if unknown := [name for name in names if name not in COMPARISONS]:
        raise UsageError(f"There is no table '{unknown[0]}'; choose from {', '.join(COMPARISONS)} or all.")
