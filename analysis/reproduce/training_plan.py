"""Which trainings some comparisons need, at a scale, on a folder of data; and running and reporting them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from analysis.reproduce import backtranslation, pages, papers, results, runner, stored
from analysis.reproduce.bootstrapped_scores import Bootstrap
from analysis.reproduce.comparisons import EVERY, SAVE_EVERY, SCALES
from analysis.reproduce.datasets import Dataset, read_dataset
from analysis.reproduce.experiments import Comparison
from analysis.reproduce.paraphrases import TRANSLATED, SelectedPairs
from analysis.reproduce.runner import Workspace
from analysis.reproduce.trainings import Training, training_of
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.device import pick_device
from bgt_core.encoders.distances import ReferenceProbability
from bgt_core.errors import UsageError, check_choice
from bgt_core.evaluation.backtranslation import Statistic, compare
from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_SEPARABLE
from bgt_core.files import file_lock, write_text
from bgt_core.tables import Estimate
from bgt_core.training import Report
from bgt_core.training.settings import SETTINGS


@dataclass(frozen=True)
class TrainingPlan:
    """Where trainings are kept, and those of each system of each comparison."""

    workspace: Workspace
    specs: Mapping[str, Comparison]  # by name
    comparisons: Mapping[str, Mapping[str, Sequence[Training]]]  # comparison -> system -> trainings

    def chosen(self, only: str | None = None) -> list[Training]:
        """Every training once, the lowest seeds first, each after what it starts from.

        With `only`, those whose name or system matches that pattern, and what they start from.

        Raises UsageError where none does.
        """
        matching = {
            training.key: training
            for systems in self.comparisons.values()
            for system, trainings in systems.items()
            for training in trainings
            if only is None or any(fnmatchcase(name.lower(), only.lower()) for name in (system, training.name))
        }
        if not matching:
            known = ", ".join(dict.fromkeys(system for systems in self.comparisons.values() for system in systems))
            raise UsageError(f"{only}: no such system or training; systems are {known}.", parameter="only")
        firsts = {each.first.key: each.first for each in matching.values() if each.first}
        return sorted((firsts | matching).values(), key=lambda training: (training.seed, training.first is not None))

    def comparisons_of(self, training: Training) -> list[str]:
        """The comparisons that include a training."""
        return [
            name
            for name, systems in self.comparisons.items()
            if training.key in {other.key for trainings in systems.values() for other in trainings}
        ]

    def states(self, only: str | None = None) -> dict[str, str]:
        """The state of each chosen training now, by its name; the states are listed in `runner`."""
        return {training.name: runner.state(self.workspace, training) for training in self.chosen(only)}


def plan_trainings(
    names: Sequence[str],
    *,
    data: Path,
    out: Path,
    scale: str = "small",
    seeds: Sequence[int] = (),
    device: str = "auto",
    say: Callable[[str], None] = print,
) -> TrainingPlan:
    """Read the data and name the trainings of these comparisons; `seeds` replace those of every system.

    `data` holds what `datasets` describes; trainings are kept in `out`; `say` gets a line per event. Raises UsageError
    for an unknown comparison, scale or device, NotFound and DataError for data that can't be used.
    """
    papers.check_names(names)
    check_choice(SCALES, scale=scale)
    pick_device(device)
    translations = cache(read_dataset)
    specs: dict[str, Comparison] = {}
    datasets: dict[str, Dataset] = {}
    comparisons: dict[str, dict[str, list[Training]]] = {}
    for name in names:
        specs[name], dataset_of, arguments = papers.read(name, data, scale, translations)
        comparisons[name] = {}
        for system in (system for system in specs[name].systems if not system.best_of):
            dataset = dataset_of(system)
            datasets[dataset.sha256] = dataset
            firsts = {training.seed: training for training in comparisons[name].get(system.starts_from, ())}
            comparisons[name][system.name] = [
                training_of(
                    system, arguments[EVERY], arguments.get(system.recipe, {}), seed, dataset.sha256, firsts.get(seed)
                )
                for seed in seeds or system.seeds
            ]
    return TrainingPlan(Workspace(out, datasets, device, SAVE_EVERY.get(scale), say), specs, comparisons)


def run(
    plan: TrainingPlan, *, only: str | None = None, retry: bool = False, progress: Report = lambda row: None
) -> dict[str, str]:
    """Train and measure what nobody has yet; with `retry` also what failed or is outdated. Returns states by name.

    `progress` gets each row of metrics of the training in progress. Raises Interrupted when stopped; what is done is
    kept, and the same call continues from there.
    """
    runner.run_trainings(replace(plan.workspace, report=progress), plan.chosen(only), retry)
    return plan.states(only)


def report(plan: TrainingPlan, folder: Path | None = None, bootstrap: Bootstrap | None = None) -> None:
    """Write the results and the page of each comparison, from what is finished, to `folder`: OUT/results unless given.

    One process at a time; others wait.
    """
    folder, bootstrap = folder or plan.workspace.out / "results", bootstrap or Bootstrap()
    with file_lock(plan.workspace.out / "results.lock", wait=True):
        for name, trainings in plan.comparisons.items():
            records = results.records(plan.workspace, plan.specs[name], trainings, bootstrap)
            if name == backtranslation.NAME:
                records["statistics"] = table_statistics(plan.workspace)
            stored.write(folder, name, records)
            draw(folder, name)


def draw(folder: Path, name: str) -> None:
    """Write the page of a comparison from its stored results. Raises NotFound without results."""
    records = stored.read(folder, name)
    write_text(folder / f"{name}.md", pages.page(name, papers.comparison_of(name, records), records))


# How the translations of a table differ from their references, beside the paper's numbers.

PUBLISHED = {  # Table 9: reference less translation, all data
    "unigram entropy": 0.46,
    "trigram entropy": 0.74,
    "unigram repetition": -2.80,
    "trigram repetition": -2.26,
}
PUBLISHED_RHO = {  # Table 10: Spearman's rho x 100 with P(reference)
    "unigram repetition": -35.1,
    "trigram repetition": -18.4,
    "average IDF": 27.8,
    "words": -34.0,
}
SIGNS = {"unigram repetition": -1, "trigram repetition": -1, "average IDF": 1}  # as in the paper

Row = dict[str, Any]


def table_statistics(workspace: Workspace) -> list[Row]:
    """Those of the random pairs of each table of back-translations."""
    tables = [data for data in workspace.datasets.values() if isinstance(data, SelectedPairs) and data.is_random]
    translated = [data for data in tables if data.table.columns == TRANSLATED]
    return [row for data in translated for row in text_statistics(data, workspace.out / "data", workspace.device)]


def text_statistics(data: SelectedPairs, out: Path, device: str) -> list[Row]:
    """One row per statistic of these pairs, kept in `out`; none where they are not selected yet.

    With the classifier's correlations where that table has a classifier.
    """
    pairs, classifier = data.path(out), data.classifier_folder(out)
    if not pairs.exists():
        return []
    trained = (classifier / SETTINGS).exists() and any(classifier.glob("step-*"))
    path = pairs.with_name(pairs.name.replace(".tsv.zst", f"-statistics{'-classified' * trained}.json"))
    if not path.exists():
        models = {"classifier": ReferenceProbability.load(classifier, device)} if trained else {}
        references, translations = zip(*read_pairs(pairs, ("a", "b"), Skipped()), strict=True)
        comparison = compare(references, translations, models=models)
        rows = [statistic_row(data.name, comparison.pairs, statistic) for statistic in comparison.statistics]
        write_text(path, json.dumps(rows))
    return json.loads(path.read_text(encoding="utf-8"))


def statistic_row(table: str, pairs: int, statistic: Statistic) -> Row:
    """A row as it is stored."""
    row: Row = {
        "table": table,
        "pairs": pairs,
        "statistic": statistic.name,
        "unit": statistic.unit,
        "reference": statistic.reference,
        "translation": statistic.translation,
        "published": PUBLISHED.get(statistic.name),
        "rho_published": PUBLISHED_RHO.get(statistic.name),
    }
    if isinstance(statistic.difference, Estimate):
        value, low, high, _ = statistic.difference
        row |= {"difference": value, "ci_low": low, "ci_high": high}
        if sign := SIGNS.get(statistic.name):
            row["verdict"] = verdict(*sorted((sign * low, sign * high)))
    else:
        row["difference"] = statistic.difference
    if rho := statistic.correlation:
        row |= {"rho": rho.value, "rho_low": rho.low, "rho_high": rho.high}
    return row


def verdict(low: float, high: float) -> str:
    """Of a claim that something is above 0, by its interval."""
    return HOLDS if low > 0 else FAILS if high < 0 else NOT_SEPARABLE
