"""Measure cells and tables: each task in each language, for each encoder, with each kind of probe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bgt_core import __version__
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import lang_codes, split_langs
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.tables import Plain
from probes.data.load import Dataset, check_applicable, label_sentences, load_items
from probes.measures.study import ProbeConfig
from probes.probe import DEFAULT, Report, check, probeable, run, silent
from probes.results.store import Cell
from probes.results.tables import corrected, long_table
from probes.task import ProbeTask
from probes.tasks import GROUPS, find

ALL = "all"
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")  # the meaning of "all" for encoders that take any language


def measure_cell(
    encoder: SentenceEncoder,
    task: ProbeTask | str,
    sentences: Sequence[str] | Dataset | None = None,
    *,
    lang: str,
    name: str = "model",
    latents: Sequence[str] = (),
    references: Mapping[str, Sequence[SentenceEncoder]] | None = None,
    config: ProbeConfig = DEFAULT,
    report: Report = silent,
) -> Cell:
    """Measure like `probes.run`, and return a cell, with predictions and a record of weights, data, code and date.

        cell = probes.measure_cell(bgt_core.load(), "length", lang="en", name="shipped")

    Args:
        sentences: as in `probes.run`, or a `Dataset` (from `label_sentences` or `load_items`), which names its source.
        name: the encoder's name in tables.

    The other parameters and the errors are those of `probes.run`.
    """
    task = find(task) if isinstance(task, str) else task
    latents = probeable(latents or encoder.latents, lang)
    check(encoder, lang, latents)
    dataset = sentences if isinstance(sentences, Dataset) else label_sentences(task, sentences, lang, seed=config.seed)
    options: dict[str, Any] = {"latents": latents, "references": references, "config": config, "report": report}
    result = run(encoder, task, dataset.items, lang=lang, **options)
    trail = {
        **dataset.about,
        "fingerprint": encoder.fingerprint or "unknown",
        "version": __version__,
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "probe": "senteval" if config.senteval else config.probe,
        "langs": list(encoder.langs),
        "latents": latents,
    }
    return Cell(name, result, trail)


@dataclass
class ProbeTable:
    """The cells of a table in the order measured, and the failures: (label of the cell, error)."""

    cells: list[Cell] = field(default_factory=list)
    failures: list[tuple[str, BgtError]] = field(default_factory=list)

    def records(self) -> list[dict[str, Plain]]:
        """Return a dict for each latent and baseline of each cell, as for `pandas.DataFrame(table.records())`."""
        return long_table(self.cells).records() if self.cells else []


def table(
    encoders: Mapping[str, SentenceEncoder],
    tasks: str | Sequence[str | ProbeTask] = ALL,
    langs: str | Sequence[str] = ALL,
    *,
    latents: Sequence[str] = (),
    data: Path | None = None,
    config: ProbeConfig | Sequence[ProbeConfig] = DEFAULT,
    report: Report = silent,
) -> ProbeTable:
    """Measure tasks in languages for several encoders, with Holm's p-values over the table.

        table = probes.table({"mine": mine, "shipped": bgt_core.load()}, ["length", "gender"], ["fr"])
        frame = pandas.DataFrame(table.records())

    Args:
        encoders: the encoders, by their names in the table.
        tasks: one or several names of tasks or of groups (paper, surface, syntax, semantic, style, all), or your own
            tasks. If a task lacks a definition or a source, it fails if you named it, and is skipped in a group.
        langs: one or several languages of the sentences; "all" stands for the languages that all encoders have.
        latents: latents to probe; by default all.
        data: a folder with labelled files, treebanks or text, or one file; None: the built-in sentences.
        config: one or several configurations of the probes.
        report: as in `probes.run`.

    Returns:
        The cells. Failed cells are in `failures`; if there is only one cell, its error is raised.

    Raises:
        UsageError: Nothing can be measured with these arguments.
        NotFound: A file is absent.
    """
    tasks = [tasks] if isinstance(tasks, str) else tasks
    langs = [langs] if isinstance(langs, str) else langs
    configs = [config] if isinstance(config, ProbeConfig) else config
    measured = ProbeTable()
    Grid(tasks, list(map(lang_codes, langs)), data, configs, encoders, latents).measure(measured, report)
    measured.cells = corrected(measured.cells)
    return measured


@dataclass(frozen=True, eq=False)
class Grid:
    """All cells of a table; parameters as in `table`."""

    tasks: Sequence[str | ProbeTask]
    langs: Sequence[str]
    data: Path | None = None
    configs: Sequence[ProbeConfig] = (DEFAULT,)
    encoders: Mapping[str, SentenceEncoder] = field(default_factory=dict)
    latents: Sequence[str] = ()
    references: Mapping[str, Sequence[SentenceEncoder]] = field(default_factory=dict)

    def check(self) -> None:
        """Raise UsageError or NotFound for arguments with which no cell can be measured, whatever the encoders."""
        for task in self.named():
            for lang in langs_of(task, [lang for lang in self.langs if lang != ALL]):
                task.check(lang)
            if self.data is None and "text" not in task.builds:
                task.items([], next(iter(task.langs), "en"))  # raises an error that names its needs
        if self.data and not self.data.exists():
            raise NotFound(f"{self.data}: no such file or folder.", parameter="data")

    def measure(self, table: ProbeTable, report: Report = silent, word: Callable[[BgtError], object] = str) -> None:
        """Measure each cell and add it to the table, or its error to the failures. A single cell raises its error.

        `report` also gets the errors, as text made by `word`, and the tasks of groups that are skipped.
        """
        self.check()
        for encoder in self.encoders.values():
            for lang in encoder.langs[:1] if ALL in self.langs else self.langs:
                check(encoder, lang, probeable(self.latents or encoder.latents, lang))
        passed: list[BgtError] = []  # errors of the tasks that are skipped

        def skip(error: BgtError) -> None:
            passed.append(error)
            report(f"skipped: {word(error)}")

        rows = list(self._rows(skip))
        single = len(rows) * len(self.encoders) * len(self.configs) == 1

        def fail(label: str, error: BgtError) -> None:
            if single:
                raise error from None
            table.failures.append((label, error))
            report(f"{label}: {word(error)}")

        noted: set[str] = set()
        for task, lang, named in rows:
            first = self.configs[0]
            try:
                dataset = load_items(task, lang, self.data, seed=first.seed, senteval=first.senteval)
            except BgtError as error:
                if isinstance(error, NotFound) and not named and not single:
                    skip(error)
                else:
                    fail(f"{task.name} {lang}", error)
                continue
            if dataset.note:
                report(f"{task.name} {lang}: {dataset.note}")
            remarks = dataset.about.get("card", {}).get("notes", ())
            lost = [note for note in remarks if "left out" in note and "label" in note]
            for note in [*(note for note in remarks if note.startswith("passed over")), *lost]:
                if note not in noted:
                    noted.add(note)
                    report(note)
            options: dict[str, Any] = {"latents": self.latents, "references": self.references, "report": report}
            for name, encoder in self.encoders.items():
                for config in self.configs:
                    try:
                        cell = measure_cell(encoder, task, dataset, lang=lang, name=name, config=config, **options)
                        table.cells.append(cell)
                    except BgtError as error:
                        if lost and isinstance(error, DataError):
                            error = DataError(f"{error} {'; '.join(lost)}.")
                        fail(f"{task.name} {lang}, {name}", error)
        if not (table.cells or table.failures):
            names = ", ".join(task if isinstance(task, str) else task.name for task in self.tasks)
            text = f"none of {names} can be measured in {', '.join(self.langs)}."
            if not passed:
                raise UsageError(f"{text} Choose others.", parameter="tasks")
            reason = next((error for error in passed if isinstance(error, NotFound)), passed[0])
            raise type(reason)(f"{reason.args[0]} So {text}", parameter=reason.parameter)

    def _rows(self, skipped: Callable[[BgtError], None]) -> Iterator[tuple[ProbeTask, str, bool]]:
        """Yield (task, language, was the task named?); tasks of groups only if they have a definition and a source."""
        named = self.named()
        members = [find(name) for group in self.tasks if isinstance(group, str) for name in GROUPS.get(group, ())]
        known = [encoder.langs for encoder in self.encoders.values() if encoder.langs]
        every = [lang for lang in (known[0] if known else LANGS) if all(lang in langs for langs in known)]
        for task in dict.fromkeys([*named, *members]):
            for lang in langs_of(task, every if ALL in self.langs else self.langs):
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
        """Return the tasks that the user named, which must be measured in every language."""
        tasks = [task if isinstance(task, ProbeTask) else find(task) for task in self.tasks if task not in GROUPS]
        return list(dict.fromkeys(tasks))


def langs_of(task: ProbeTask, langs: Sequence[str]) -> list[str]:
    """Return the languages to measure a task in; a task that compares languages is measured in all of them, joined."""
    if "texts" in task.builds and langs and all(len(split_langs(lang)) == 1 for lang in langs):
        return ["-".join(langs)]
    return list(langs)
