"""The papers' comparisons: systems, published numbers, claims and scales. Each paper has a TOML file in `tables`.

- A system has a recipe, settings that override the scale's settings, and seeds. `like` names a system to copy from.
- A claim is [first, second, place in the paper, measure]. It means that the first system has a higher score than the
  second system. The default measure is the main measure of the comparison. A claim can also be that a weighted sum of
  scores is above 0.
- A published number is in the main measure. If it is a list, it has a number for each of `measures`.
- A scale has settings for single recipes. `every` has settings for all recipes in which these settings exist.

The name `all` means all comparisons of BGT's paper.
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

AVERAGE, DEV, RETRIEVAL = "STS average", "STSB dev", "P@1"  # names of measures
SETS = "mean of sets"  # the mean over all data sets of the STS years and SICK (Wieting, Mallinson & Gimpel 2017)

# The first two measures compare reconstructed sentences with the originals. For the last two, text is generated from
# the translation's semantic latent, in the style of the original or a random sentence, and compared with the original.
CHRF_OWN, EXACT_OWN, CHRF_OTHER, CHRF_STYLE = "chrF own", "exact own", "chrF other's meaning", "chrF random style"
FIDELITY = (CHRF_OWN, EXACT_OWN, CHRF_OTHER, CHRF_STYLE)
F1 = STRUCTURE[CONSTITUENTS]  # F1 of labelled constituents between the trees of a sentence and its nearest neighbour
SYNTAX = (*STRUCTURE.values(), EDITS, TAGS)
# A gap is the semantic latent's score minus the syntactic latent's, times -1 if the syntactic one should be better.
STS_GAP, DEV_GAP, F1_GAP = "STS gap", "STSB dev gap", "F1 gap"
GAPS = {STS_GAP: (AVERAGE, 1), DEV_GAP: (DEV, 1), F1_GAP: (F1, -1)}

EVERY = "every"  # the key of a scale's settings that apply to all recipes
Settings = Mapping[str, Mapping[str, object]]  # name of a recipe, or EVERY for all recipes -> settings


@dataclass(frozen=True)
class Selection:
    """Random pairs from a table of paraphrases: each reference with its first paraphrase that passes the filter."""

    table: str
    keep: str = ""  # a filter as in `bgt data prepare --keep`; a limit such as "33%" is a quantile of the scores
    times: int = 1  # factor by which the number of selected pairs is larger than usual

    def __str__(self) -> str:
        return " ".join(filter(None, (self.table, self.keep, f"x{self.times}" if self.times > 1 else "")))


@dataclass(frozen=True)
class ExperimentSpec:
    """A trained system of a comparison: a recipe, its settings (which override those of the scale), and seeds."""

    name: str
    recipe: str
    overrides: Mapping[str, object] = field(default_factory=dict)
    langs: tuple[str, ...] = ("en", "fr")
    seeds: Sequence[int] = (1,)
    latent: str = SEMANTIC  # the latent whose vectors are measured
    against: str = "BGT"  # the system that this system is compared with
    selection: Selection | None = None  # the training pairs; None: all translations between `langs`
    share: float = 1.0  # fraction of the training rows whose labels are used; other rows count as unlabelled
    starts_from: str = ""  # the first-stage system (same seed) whose weights are the initial weights; "" if none
    best_of: Sequence[str] = ()  # this system is not trained, but is the best of these systems on STSB's dev set


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: the sum of some systems' scores in a measure, each times its weight, is above 0."""

    statement: str
    where: str  # where the paper makes the claim, such as "sec. 4.4"
    weights: Mapping[str, float]
    measure: str = AVERAGE


@dataclass(frozen=True)
class Comparison:
    """A table or figure of a paper: its systems, the published numbers, the claims, and the settings of each scale."""

    title: str
    systems: Sequence[ExperimentSpec]
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # system -> measure -> the paper's score
    claims: Sequence[Claim] = ()
    note: str = ""
    measure: str = AVERAGE  # the main measure, which the page shows first
    data: str = "translations"  # the kind of training and test data, as in `datasets`
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the systems in each table of the paper
    scales: Mapping[str, Settings] = field(default_factory=dict)
    pairs: Mapping[str, int] = field(default_factory=dict)  # maximum number of training pairs at each scale

    def part(self, name: str) -> Comparison:
        """Return the comparison of only the systems that are in the paper's table `name`, a key of `parts`."""
        return replace(self, systems=[system for system in self.systems if system.name in self.parts[name]])


def read(path: Path) -> dict[str, Comparison]:
    """Read the TOML file of a paper, and return its comparisons by name."""
    paper = tomllib.loads(path.read_text(encoding="utf-8"))
    scales, pairs = paper.pop("scale"), paper.pop("pairs", {})
    return {name: comparison_of(table, paper, scales, pairs) for name, table in paper.items()}


def comparison_of(
    table: dict[str, Any], paper: dict[str, Any], scales: Mapping[str, Settings], pairs: Mapping[str, int]
) -> Comparison:
    """Build a comparison from its TOML table. The table can name another comparison of the same paper, to use its
    published numbers."""
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
    """Return the claim that the first system has a higher score than the second system in this measure."""
    return Claim(f"{first} is above {second} on {measure}", where, {first: 1, second: -1}, measure)


TABLES = Path(__file__).with_name("tables")
OF_BGT = read(TABLES / "bgt.toml")
COMPARISONS = OF_BGT | {
    name: comparison
    for file in ("backtranslation", "vgvae", "var-siamese")
    for name, comparison in read(TABLES / f"{file}.toml").items()
}
del OF_BGT["growth"]  # this comparison is ours, so `all` does not include it


def check_names(names: Sequence[str]) -> None:
    """Raise UsageError if one of the names is not the name of a comparison."""
    if unknown := [name for name in names if name not in COMPARISONS]:
        raise UsageError(f"unknown comparison '{unknown[0]}'; choose from {', '.join(COMPARISONS)} or all.")
