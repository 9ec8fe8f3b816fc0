"""A table of cells: each task in each language, of each encoder, by each kind of probe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import split_langs
from bgt_core.errors import BgtError, NotFound, UsageError
from bgt_core.tables.table import Plain
from probes.cells import Subject, measure_cell
from probes.dataset import Dataset, load_items, why_not_applicable
from probes.measures.config import ProbeConfig
from probes.measures.significance import check_correction
from probes.probe import DEFAULT, Report, silent
from probes.results.cache import Cache
from probes.results.compare import corrected
from probes.results.store import Cell
from probes.results.tables import long_table
from probes.task import ProbeTask
from probes.tasks import GROUPS, TASKS, find

ALL = "all"
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")  # what "all" is for an encoder of any language
T = TypeVar("T")


@dataclass
class ProbeTable:
    """The cells of a table in the order measured, and what could not be: (what it was, why)."""

    cells: list[Cell] = field(default_factory=list)
    failures: list[tuple[str, BgtError]] = field(default_factory=list)

    def add(self, label: str, outcome: Cell | BgtError) -> None:
        """One of `Grid.measure`."""
        if isinstance(outcome, BgtError):
            self.failures.append((label, outcome))
        else:
            self.cells.append(outcome)

    def records(self) -> list[dict[str, Plain]]:
        """A dict for each latent and baseline of each cell, as for `pandas.DataFrame(table.records())`."""
        return long_table(self.cells).records() if self.cells else []


def table(
    encoders: Mapping[str, SentenceEncoder] | Sequence[Subject],
    tasks: str | Sequence[str] = ALL,
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
    """What `bgt-probe` measures: tasks in languages, of encoders side by side, p values corrected over the table.

        table = probes.table({"mine": mine, "shipped": bgt_core.load()}, ["length", "gender"], ["fr"])
        frame = pandas.DataFrame(table.records())

    Args:
        encoders: by the name they have in the table, or `probes.Subject`s, which have seeds and references too.
        tasks: one or several names of tasks, or of groups: paper, surface, syntax, semantic, all. Tasks of groups are
            left out where they have no definition or no source; those named themselves are failures there.
        langs: one or several languages of the sentences; "all" stands for those that all encoders have.
        latents: those to probe of encoders given by name; none named: each that they have.
        data: a folder with labelled files, treebanks or text, or one file; None: the built-in sentences.
        column: of a TSV, from 1.
        split_file: who trains and is tested: lines of train, dev or test, a tab, a sentence.
        config: of the probes; several stand side by side.
        senteval, cache, report: as in `probes.measure_cell`.
        correction: of p over the differences of the table: holm, bonferroni, or none.

    A cell that fails is among the `failures` and leaves the others; where there is only one, its error is raised.
    Raises UsageError for what no cell could be measured with, NotFound for files that are absent.
    """
    check_correction(correction)
    if isinstance(encoders, Mapping):
        encoders = [Subject(name, encoder, latents) for name, encoder in encoders.items()]
    tasks, langs = ([names] if isinstance(names, str) else names for names in (tasks, langs))
    configs = [config] if isinstance(config, ProbeConfig) else config
    grid = Grid(encoders, tasks, langs, data, column, split_file, configs, senteval, cache)
    measured = ProbeTable()
    for label, outcome in grid.measure(report):
        measured.add(label, outcome)
    measured.cells = corrected(measured.cells, correction)
    return measured


class Slot(NamedTuple):
    """A cell that is to be measured."""

    subject: Subject
    task: ProbeTask
    lang: str
    dataset: Dataset
    config: ProbeConfig


@dataclass(frozen=True, eq=False)
class Grid:
    """All cells of a table; parameters as in `table`."""

    subjects: Sequence[Subject]
    tasks: Sequence[str]
    langs: Sequence[str]
    data: Path | None = None
    column: int | None = None
    split_file: Path | None = None
    configs: Sequence[ProbeConfig] = (DEFAULT,)
    senteval: bool = False
    cache: Cache | None = None

    def measure(self, report: Report = silent) -> Iterator[tuple[str, Cell | BgtError]]:
        """Each cell as it is measured, or its label and what is wrong with it."""
        return self.each(lambda slot: self._measured(slot, report), report)

    def _measured(self, slot: Slot, report: Report) -> Cell:
        subject, task, lang, dataset, config = slot
        return measure_cell(
            subject.encoder,
            task,
            dataset,
            lang=lang,
            name=subject.name,
            latents=subject.latents,
            encoder_seeds=subject.encoder_seeds,
            references=subject.references,
            config=config,
            senteval=self.senteval,
            cache=self.cache,
            report=report,
        )

    def each(self, do: Callable[[Slot], T], report: Report = silent) -> Iterator[tuple[str, T | BgtError]]:
        """What `do` makes of each slot, or the slot's label and what is wrong; an error of all slots is raised."""
        check_tasks(self.tasks, self.langs, self.data)
        check_files(self.data, self.column, self.split_file)
        for subject in self.subjects:
            for lang in self.langs:
                if lang != ALL:
                    subject.check(lang)
        rows = list(self._rows(report))
        if not rows:
            tasks, langs = ", ".join(self.tasks), ", ".join(self.langs)
            raise UsageError(f"`tasks` {tasks}: none can be measured in {langs}; choose other `tasks` or `langs`.")
        single = len(rows) * len(self.subjects) * len(self.configs) == 1
        reported: set[str] = set()
        for task, lang, named in rows:
            try:
                dataset = self._load(task, lang)
            except BgtError as error:
                if single:
                    raise
                if isinstance(error, NotFound) and not named:
                    report(f"skipped: {error}")
                else:
                    yield f"{task.name} {lang}", error
                continue
            if dataset.note:
                report(f"{task.name} {lang}: {dataset.note}")
            for note in dataset.about.get("card", {}).get("notes", ()):
                if note.startswith("passed over") and note not in reported:
                    reported.add(note)
                    report(note)
            for subject in self.subjects:
                for config in self.configs:
                    try:
                        yield "", do(Slot(subject, task, lang, dataset, config))
                    except BgtError as error:
                        if single:
                            raise
                        yield f"{task.name} {lang}, {subject.name}", error

    def _load(self, task: ProbeTask, lang: str) -> Dataset:
        return load_items(
            task,
            lang,
            self.data,
            column=self.column,
            split_file=self.split_file,
            seed=self.configs[0].seed,
            senteval=self.senteval,
        )

    def _rows(self, report: Report) -> Iterator[tuple[ProbeTask, str, bool]]:
        """(task, language, whether the task was named): those of groups only where they have a meaning and a source."""
        langs = self._langs()
        named = named_tasks(self.tasks)
        for name in named + grouped_tasks(self.tasks):
            task = TASKS[name]
            for lang in langs_of(task, langs):
                if name not in named and (len(split_langs(lang)) > 1) != ("texts" in task.builds):
                    continue
                why = why_not_applicable(task, lang, self.data)
                if why and (name not in named or ALL in self.langs):
                    report(f"skipped: {why}")
                else:
                    yield task, lang, name in named

    def _langs(self) -> list[str]:
        """Those given; for "all", what every encoder that has languages has."""
        if ALL not in self.langs:
            return list(self.langs)
        known = [subject.encoder.langs for subject in self.subjects if subject.encoder.langs]
        return [lang for lang in (known[0] if known else LANGS) if all(lang in langs for langs in known)]


def langs_of(task: ProbeTask, langs: Sequence[str]) -> list[str]:
    """The languages to measure a task in; one that tells languages apart is measured in all of them, joined."""
    if "texts" in task.builds and langs and all(len(split_langs(lang)) == 1 for lang in langs):
        return ["-".join(langs)]
    return list(langs)


def check_tasks(tasks: Sequence[str], langs: Sequence[str], data: Path | None = None) -> None:
    """UsageError for tasks that could not be measured in these languages, whatever the encoder."""
    for name in named_tasks(tasks):
        for lang in langs_of(TASKS[name], [lang for lang in langs if lang != ALL]):
            TASKS[name].check(lang)
        if data is None and "text" not in TASKS[name].builds:
            TASKS[name].items([], next(iter(TASKS[name].langs), "en"))  # raises, and says what it needs


def check_files(data: Path | None = None, column: int | None = None, split_file: Path | None = None) -> None:
    """NotFound for files that are absent, UsageError for a column of nothing."""
    if column is not None and data is None:
        raise UsageError("`column` says which column of `data` to read; give `data` too.")
    if data and not data.exists():
        raise NotFound(f"{data}: there is no such file or folder.")
    if split_file and not split_file.is_file():
        raise NotFound(f"`split_file` {split_file}: there is no such file.")


def named_tasks(tasks: Sequence[str]) -> list[str]:
    """Tasks named one by one, which must be measured in every language; UsageError for a name there is not."""
    return list(dict.fromkeys(find(name).name for name in tasks if name not in GROUPS))


def grouped_tasks(tasks: Sequence[str]) -> list[str]:
    """Tasks of groups that are not named too, measured where they can be."""
    members = dict.fromkeys(name for group in tasks if group in GROUPS for name in GROUPS[group])
    named = named_tasks(tasks)
    return [name for name in members if name not in named]
