"""Cells and tables of them: each task in each language, of each encoder, by each kind of probe, kept in a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
from probes.results.store import Cache, Cell, cell_of
from probes.results.tables import corrected, long_table
from probes.task import ProbeTask
from probes.tasks import GROUPS, find

ALL = "all"
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")  # languages that "all" stands for, with an encoder of any language


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
    cache: Cache | None = None,
    report: Report = silent,
) -> Cell:
    """Measure like `probes.run`, and return a cell: with predictions, and a trail of weights, data, code and day.

        cell = probes.measure_cell(bgt_core.load(), "length", lang="en", name="shipped", cache=probes.Cache())

    Args:
        sentences: as in `probes.run`, or a `Dataset` (`label_sentences`, `load_items`), which knows its source.
        name: the encoder's name in tables.
        cache: stores cells; a stored cell is loaded. Nothing is stored for encoders without a fingerprint (their
            `fingerprint` is empty).

    The other parameters are those of `probes.run`, as are the errors; NotFound if the cache can't be written.
    """
    task = find(task) if isinstance(task, str) else task
    latents, references = probeable(latents or encoder.latents, lang), references or {}
    check(encoder, lang, latents)
    dataset = sentences if isinstance(sentences, Dataset) else label_sentences(task, sentences, lang, seed=config.seed)
    encoders = [encoder, *(each for several in references.values() for each in several)]
    path = None
    if cache and all(each.fingerprint for each in encoders):
        path = cache.path(
            task=task.name,
            lang=lang,
            latents=latents,
            fingerprints=[each.fingerprint for each in encoders],
            references=[(other, len(several)) for other, several in references.items()],
            dataset=dict(dataset.about),
            config=asdict(config),
        )
        if kept := cache.read(path, name):
            report(f"{task.name} {lang}: {name}, measured {kept.trail['measured']}")
            return kept
        cache.check()
    result = run(
        encoder,
        task,
        dataset.items,
        lang=lang,
        latents=latents,
        references=references,
        config=config,
        report=report,
    )
    trail = {
        **dataset.about,
        "fingerprint": encoder.fingerprint or "unknown",
        "version": __version__,
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "probe": "senteval" if config.senteval else config.probe,
        "langs": list(encoder.langs),
        "latents": latents,
    }
    cell = cell_of(name, result, trail)
    if cache and path:
        cache.write(path, cell)
    return cell


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
    encoders: Mapping[str, SentenceEncoder],
    tasks: str | Sequence[str | ProbeTask] = ALL,
    langs: str | Sequence[str] = ALL,
    *,
    latents: Sequence[str] = (),
    data: Path | None = None,
    config: ProbeConfig | Sequence[ProbeConfig] = DEFAULT,
    cache: Cache | None = None,
    report: Report = silent,
) -> ProbeTable:
    """Measure tasks in languages for several encoders, with Holm's p-values over the table.

        table = probes.table({"mine": mine, "shipped": bgt_core.load()}, ["length", "gender"], ["fr"])
        frame = pandas.DataFrame(table.records())

    Args:
        encoders: by their names in the table.
        tasks: one or several names of tasks or of groups (paper, surface, syntax, semantic, all), or tasks of your
            own. A task of a group is skipped if it has no definition or no source; a task named itself then fails.
        langs: one or several languages of the sentences; "all" stands for those that all encoders have.
        latents: latents to probe; by default all.
        data: a folder with labelled files, treebanks or text, or one file; None: the built-in sentences.
        config: of the probes; one or several.
        cache, report: as in `probes.measure_cell`.

    Returns:
        The cells. Failed cells are in `failures`; a single cell raises its error.

    Raises:
        UsageError: Nothing can be measured with these arguments.
        NotFound: A file is absent.
    """
    tasks = [tasks] if isinstance(tasks, str) else tasks
    langs = [langs] if isinstance(langs, str) else langs
    configs = [config] if isinstance(config, ProbeConfig) else config
    grid = Grid(tasks, list(map(lang_codes, langs)), data, configs, cache, encoders, latents)
    measured = ProbeTable()
    for label, outcome in grid.measure(report, lambda error: report(f"skipped: {error}")):
        measured.add(label, outcome)
    measured.cells = corrected(measured.cells)
    return measured


@dataclass(frozen=True, eq=False)
class Grid:
    """All cells of a table; parameters as in `table`."""

    tasks: Sequence[str | ProbeTask]
    langs: Sequence[str]
    data: Path | None = None
    configs: Sequence[ProbeConfig] = (DEFAULT,)
    cache: Cache | None = None
    encoders: Mapping[str, SentenceEncoder] = field(default_factory=dict)
    latents: Sequence[str] = ()
    references: Mapping[str, Sequence[SentenceEncoder]] = field(default_factory=dict)

    def check(self) -> None:
        """Raise UsageError or NotFound for arguments that no cell can be measured with, the encoders aside."""
        for task in self.named():
            for lang in langs_of(task, [lang for lang in self.langs if lang != ALL]):
                task.check(lang)
            if self.data is None and "text" not in task.builds:
                task.items([], next(iter(task.langs), "en"))  # raises an error that names its needs
        if self.data and not self.data.exists():
            raise NotFound(f"{self.data}: no such file or folder.", parameter="data")

    def measure(
        self, report: Report = silent, skipped: Callable[[BgtError], None] = silent
    ) -> Iterator[tuple[str, Cell | BgtError]]:
        """Yield each cell as it is measured, or its label and its error; a single cell raises its error.

        `skipped` is called with the error of each task of a group that can't be measured in a language.
        """
        self.check()
        for encoder in self.encoders.values():
            for lang in self.langs:
                if lang != ALL:
                    check(encoder, lang, probeable(self.latents or encoder.latents, lang))
        passed: list[BgtError] = []  # errors of the tasks that are skipped

        def skip(error: BgtError) -> None:
            passed.append(error)
            skipped(error)

        rows, measured = list(self._rows(skip)), False
        single = len(rows) * len(self.encoders) * len(self.configs) == 1
        noted: set[str] = set()
        for task, lang, named in rows:
            try:
                first = self.configs[0]
                dataset = load_items(task, lang, self.data, seed=first.seed, senteval=first.senteval)
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
                if note not in noted:
                    noted.add(note)
                    report(note)
            options: dict[str, Any] = {"lang": lang, "latents": self.latents, "references": self.references}
            options |= {"cache": self.cache, "report": report}
            for name, encoder in self.encoders.items():
                for config in self.configs:
                    try:
                        yield "", measure_cell(encoder, task, dataset, name=name, config=config, **options)
                    except BgtError as error:
                        if lost and isinstance(error, DataError):
                            error = DataError(f"{error} {'; '.join(lost)}.")
                        if single:
                            raise error from None
                        yield f"{task.name} {lang}, {name}", error
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
        """Return the tasks given one by one, which must be measured in every language."""
        tasks = [task if isinstance(task, ProbeTask) else find(task) for task in self.tasks if task not in GROUPS]
        return list(dict.fromkeys(tasks))


def langs_of(task: ProbeTask, langs: Sequence[str]) -> list[str]:
    """The languages to measure a task in; a task that compares languages is measured in all of them, joined."""
    if "texts" in task.builds and langs and all(len(split_langs(lang)) == 1 for lang in langs):
        return ["-".join(langs)]
    return list(langs)
