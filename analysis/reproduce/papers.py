"""The comparisons of papers other than BGT's: each has its own data, and systems that may follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from analysis.reproduce import backtranslation, var_siamese, vgvae
from analysis.reproduce.comparisons import COMPARISONS, SCALES
from analysis.reproduce.datasets import Dataset, Langs
from analysis.reproduce.experiments import Comparison, ExperimentSpec
from analysis.reproduce.stored import Records
from bgt_core.errors import UsageError

# A comparison, what each of its systems is trained and measured on, and the scale's arguments of recipes.
ComparisonData = tuple[Comparison, Callable[[ExperimentSpec], Dataset], Mapping[str, Mapping[str, object]]]


class Paper(NamedTuple):
    """A paper's comparison."""

    read: Callable[[Path, str], ComparisonData]  # a folder of data, at a scale
    of_results: Callable[[Records], Comparison]  # that whose stored results these are


OTHER_PAPERS = {
    backtranslation.NAME: Paper(backtranslation.read, backtranslation.of_results),
    vgvae.NAME: Paper(vgvae.read, lambda records: vgvae.comparison()),
    var_siamese.NAME: Paper(var_siamese.read, lambda records: var_siamese.comparison()),
}


def read(name: str, data: Path, scale: str, translations: Callable[[Path, Langs], Dataset]) -> ComparisonData:
    """The data of a comparison at a scale; `translations` reads those of two languages."""
    if name in OTHER_PAPERS:
        return OTHER_PAPERS[name].read(data, scale)
    return COMPARISONS[name], lambda system: translations(data, system.langs), SCALES[scale]


def check_names(names: Sequence[str]) -> None:
    """UsageError for a name of no comparison."""
    known = (*COMPARISONS, *OTHER_PAPERS)
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"There is no table '{unknown[0]}'; choose from {', '.join(known)} or all.")


def comparison_of(name: str, records: Records) -> Comparison:
    """The comparison that has this name, whose stored results these are."""
    return COMPARISONS[name] if name in COMPARISONS else OTHER_PAPERS[name].of_results(records)
