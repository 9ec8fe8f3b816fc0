"""Which trainings some comparisons need, at a scale, on a folder of data; and running and reporting them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from analysis.reproduce import backtranslation, pages, papers, results, runner, stored
from analysis.reproduce.bootstrapped_scores import Bootstrap
from analysis.reproduce.comparisons import EVERY, SAVE_EVERY, SCALES
from analysis.reproduce.datasets import Dataset, read_dataset
from analysis.reproduce.experiments import Comparison
from analysis.reproduce.runner import Workspace
from analysis.reproduce.text_statistics import table_statistics
from analysis.reproduce.trainings import Training, training_of
from bgt_core.device import pick_device
from bgt_core.errors import UsageError, check_choice
from bgt_core.files import file_lock, write_text
from bgt_core.run import Report


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
