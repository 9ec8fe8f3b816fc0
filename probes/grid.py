"""A table of cells: each task in each language, of each encoder, by each kind of probe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import lang_codes, split_langs
from bgt_core.errors import BgtError, DataError, NotFound, UsageError, check_choice
from bgt_core.tables import Plain
from probes.cells import Subject, measure_cell
from probes.dataset import Dataset, check_applicable, load_items
from probes.measures.config import ProbeConfig
from probes.measures.significance import CORRECTIONS
from probes.probe import DEFAULT, Report, silent
from probes.results.cache import Cache
from probes.results.compare import corrected
from probes.results.store import Cell
from probes.results.tables import long_table
from probes.task import ProbeTask
from probes.tasks import GROUPS, find

ALL = "all"
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")  # languages that "all" stands for, with an encoder of any language
T = TypeVar("T")


@dataclass
class ProbeTable:
    """The cells of a table in the order measured, and the failures: (label of the cell, error)."""

    cells: list[Cell] = field(default_factory=list)
    failures: list[tuple[str, BgtError]] = field(default_factory=list)

    def add(self, label: str, outcome: Cell | BgtError) -> None:
        """Add an outcome of `Grid.measure`."""
        if isinstance(outcome, BgtError):
            self.failures.append((label, outcome))
        else:
            self.cells.append(outcome)

    def records(self) -> list[dict[str, Plain]]:
        """Return a dict for each latent and baseline of each cell, as for `pandas.DataFrame(table.records())`."""
        return long_table(self.cells).records() if self.cells else []


def table(
    encoders: Mapping[str, SentenceEncoder] | Sequence[Subject],
    tasks: str | Sequence[str | ProbeTask] = ALL,
    langs: str | Sequence[str] = ALL,
    *,
    latents: Sequence[str] = (),
    data: Path | None = None,
    column: int | None = None,
    split_file: Path | None = None,
    config: ProbeConfig | Sequence[ProbeConfig] = DEFAULT,
    senteval: bool = False,
    cache: Cache | None = None,
    correction: str = "holm",
    report: Report = silent,
) -> ProbeTable:
    """Measure tasks in languages for several encoders, with p-values corrected over the table.

        table = probes.table({"mine": mine, "shipped": bgt_core.load()}, ["length", "gender"], ["fr"])
        frame = pandas.DataFrame(table.records())

    Args:
        encoders: by their names in the table, or `probes.Subject`s, which have seeds and references too.
        tasks: one or several names of tasks or of groups (paper, surface, syntax, semantic, all), or tasks of your
            own. A task of a group is skipped if it has no definition or no source; a task named itself then fails.
        langs: one or several languages of the sentences; "all" stands for those that all encoders have.
        latents: latents to probe of encoders given by name; by default all.
        data: a folder with labelled files, treebanks or text, or one file; None: the built-in sentences.
        column: of a TSV, from 1.
        split_file: assigns sentences to train, dev or test: lines of train, dev or test, a tab, a sentence.
        config: of the probes; one or several.
        senteval, cache, report: as in `probes.measure_cell`.
        correction: of p over the differences of the table: holm, bonferroni, or none.

    Returns:
        The cells. Failed cells are in `failures`; a single cell raises its error.

    Raises:
        UsageError: Nothing can be measured with these arguments.
        NotFound: A file is absent.
    """
    check_choice(CORRECTIONS, correction=correction)
    if isinstance(encoders, Mapping):
        encoders = [Subject(name, encoder, latents) for name, encoder in encoders.items()]
    tasks = [tasks] if isinstance(tasks, str) else tasks
    langs = [langs] if isinstance(langs, str) else langs
    configs = [config] if isinstance(config, ProbeConfig) else config
    grid = Grid(encoders, tasks, list(map(lang_codes, langs)), data, column, split_file, configs, senteval, cache)
    measured = ProbeTable()
    for label, outcome in grid.measure(report, lambda error: report(f"skipped: {error}")):
        measured.add(label, outcome)
    measured.cells = corrected(measured.cells, correction)
    return measured


class Slot(NamedTuple):
    """A cell to measure."""

    subject: Subject
    task: ProbeTask
    lang: str
    dataset: Dataset
    config: ProbeConfig


@dataclass(frozen=True, eq=False)
class Grid:
    """All cells of a table; parameters as in `table`."""

    subjects: Sequence[Subject]
    tasks: Sequence[str | ProbeTask]
    langs: Sequence[str]
    data: Path | None = None
    column: int | None = None
    split_file: Path | None = None
    configs: Sequence[ProbeConfig] = (DEFAULT,)
    senteval: bool = False
    cache: Cache | None = None

    def check(self) -> None:
        """Raise UsageError or NotFound for arguments that no cell can be measured with."""
        self.check_tasks()
        if self.column is not None and self.data is None:
            raise UsageError("is needed: a column belongs to a file.", parameter="data")
        if self.data and not self.data.exists():
            raise NotFound(f"{self.data}: no such file or folder.", parameter="data")
        if self.split_file and not self.split_file.is_file():
            raise NotFound(f"{self.split_file}: no such file.", parameter="split_file")
        for subject in self.subjects:
            for lang in self.langs:
                if lang != ALL:
                    subject.check(lang)

    def check_tasks(self) -> None:
        """Raise UsageError for a task that can't be measured in these languages, with any encoder."""
        for task in self.named():
            for lang in langs_of(task, [lang for lang in self.langs if lang != ALL]):
                task.check(lang)
            if self.data is None and "text" not in task.builds:
                task.items([], next(iter(task.langs), "en"))  # raises an error that names its needs

    def measure(
        self, report: Report = silent, skipped: Callable[[BgtError], None] = silent
    ) -> Iterator[tuple[str, Cell | BgtError]]:
        """Yield each cell as it is measured, or its label and its error; as `each`."""

        def measured(slot: Slot) -> Cell:
            return measure_cell(
                slot.subject.encoder,
                slot.task,
                slot.dataset,
                lang=slot.lang,
                name=slot.subject.name,
                latents=slot.subject.latents,
                encoder_seeds=slot.subject.encoder_seeds,
                references=slot.subject.references,
                config=slot.config,
                senteval=self.senteval,
                cache=self.cache,
                report=report,
            )

        return self.each(measured, report, skipped)

    def each(
        self, do: Callable[[Slot], T], report: Report = silent, skipped: Callable[[BgtError], None] = silent
    ) -> Iterator[tuple[str, T | BgtError]]:
        """Yield the result of `do` for each slot, or the slot's label and its error; a single slot raises its error.

        `skipped` is called with the error of each task of a group that can't be measured in a language.
        """
        self.check()
        passed: list[BgtError] = []  # errors of the tasks that are skipped

        def skip(error: BgtError) -> None:
            passed.append(error)
            skipped(error)

        rows, measured = list(self._rows(skip)), False
        single = len(rows) * len(self.subjects) * len(self.configs) == 1
        notes: dict[str, None] = {}
        for task, lang, named in rows:
            try:
                dataset = load_items(
                    task,
                    lang,
                    self.data,
                    column=self.column,
                    split_file=self.split_file,
                    seed=self.configs[0].seed,
                    senteval=self.senteval,
                )
            except BgtError as error:
                if single:
                    raise
                if isinstance(error, NotFound) and not named:
                    skip(error)
                else:
                    measured = True
                    yield f"{task.name} {lang}", error
                continue
            measured = True
            if dataset.note:
                report(f"{task.name} {lang}: {dataset.note}")
            remarks = dataset.about.get("card", {}).get("notes", ())
            lost = [note for note in remarks if "left out" in note and "label" in note]
            for note in [*(note for note in remarks if note.startswith("passed over")), *lost]:
                if note not in notes:
                    notes[note] = None
                    report(note)
            for subject in self.subjects:
                for config in self.configs:
                    try:
                        yield "", do(Slot(subject, task, lang, dataset, config))
                    except BgtError as error:
                        if lost and isinstance(error, DataError):
                            error = DataError(f"{error} {'; '.join(lost)}.")
                        if single:
                            raise error from None
                        yield f"{task.name} {lang}, {subject.name}", error
        if not measured:
            names = ", ".join(task if isinstance(task, str) else task.name for task in self.tasks)
            text = f"none of {names} can be measured in {', '.join(self.langs)}."
            if not passed:
                raise UsageError(f"{text} Choose others.", parameter="tasks")
            reason = next((error for error in passed if isinstance(error, NotFound)), passed[0])
            raise type(reason)(f"{reason.args[0]} So {text}", parameter=reason.parameter)

    def _rows(self, skipped: Callable[[BgtError], None]) -> Iterator[tuple[ProbeTask, str, bool]]:
        """(task, language, whether the task was named); tasks of groups only if they have a definition and a source."""
        named = self.named()
        members = [find(name) for group in self.tasks if isinstance(group, str) for name in GROUPS.get(group, ())]
        for task in dict.fromkeys([*named, *members]):
            for lang in langs_of(task, self._langs()):
                if task not in named and (len(split_langs(lang)) > 1) != ("texts" in task.builds):
                    continue
                try:
                    check_applicable(task, lang, self.data)
                except BgtError as error:
                    if task not in named or ALL in self.langs:
                        skipped(error)
                        continue
                yield task, lang, task in named

    def named(self) -> list[ProbeTask]:
        """Return the tasks given one by one, which must be measured in every language."""
        tasks = [task if isinstance(task, ProbeTask) else find(task) for task in self.tasks if task not in GROUPS]
        return list(dict.fromkeys(tasks))

    def _langs(self) -> list[str]:
        """The given languages; for "all", those that every encoder with languages has."""
        if ALL not in self.langs:
            return list(self.langs)
        known = [subject.encoder.langs for subject in self.subjects if subject.encoder.langs]
        return [lang for lang in (known[0] if known else LANGS) if all(lang in langs for langs in known)]


def langs_of(task: ProbeTask, langs: Sequence[str]) -> list[str]:
    """The languages to measure a task in; a task that compares languages is measured in all of them, joined."""
    if "texts" in task.builds and langs and all(len(split_langs(lang)) == 1 for lang in langs):
        return ["-".join(langs)]
    return list(langs)
