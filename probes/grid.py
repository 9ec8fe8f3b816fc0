"""Run probes for several encoders, tasks and languages. A `Cell` is the result of one encoder, task and language."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bgt_core import __version__
from bgt_core.contracts import SentenceEncoder, silent
from bgt_core.data.columns import lang_codes, split_langs
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.tables import Plain
from probes.data.load import Dataset, check_applicable, label_sentences, load_items
from probes.measures.measure import ProbeConfig
from probes.probe import DEFAULT, Report, check, probeable, run
from probes.results.store import Cell
from probes.tables import corrected, long_table
from probes.task import ProbeTask
from probes.tasks import GROUPS, find

ALL = "all"
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")  # what "all" stands for if encoders accept any language


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
    """Run a probe as `probes.run` does, and record the weights, the data, the version and the date in the result.

        cell = probes.measure_cell(bgt_core.load(), "length", lang="en", name="shipped")

    `sentences` can also be a `Dataset`, which names its source (see `label_sentences` and `load_items`). `name` is the
    encoder's name in tables. For the other parameters and the errors, see `probes.run`.
    """
    task = find(task) if isinstance(task, str) else task
    latents = probeable(latents or encoder.latents, lang)
    check(encoder, lang, latents)
    dataset = sentences if isinstance(sentences, Dataset) else label_sentences(task, sentences, lang, seed=config.seed)
    options: dict[str, Any] = {"latents": latents, "references": references, "config": config, "report": report}
    trail = {
        **dataset.about,
        "fingerprint": encoder.fingerprint or "unknown",
        "version": __version__,
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "probe": "senteval" if config.senteval else config.probe,
        "langs": list(encoder.langs),
        "latents": latents,
    }
    return Cell(name, run(encoder, task, dataset.items, lang=lang, **options), trail)


@dataclass
class ProbeTable:
    """The results of a table, in the order of measurement, and a (label, error) for each failure."""

    cells: list[Cell] = field(default_factory=list)
    failures: list[tuple[str, BgtError]] = field(default_factory=list)

    def records(self) -> list[dict[str, Plain]]:
        """Return a dict for each latent and baseline of each result, for example for `pandas.DataFrame`."""
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
    """Measure tasks in languages for several encoders, with Holm's p-values over the whole table.

        table = probes.table({"mine": mine, "shipped": bgt_core.load()}, ["length", "gender"], ["fr"])
        frame = pandas.DataFrame(table.records())

    Args:
        encoders: Name in the table -> encoder.
        tasks: One or several names of tasks or groups (paper, surface, syntax, semantic, style, all), or your own
            tasks. A task that can't be measured in a language is a failure if you named the task itself; as part of a
            group, it is skipped.
        langs: One or several languages of the sentences; "all" stands for the languages that all encoders support.
        latents: Latents to probe; by default all.
        data: A folder with labelled files, treebanks or text, or one file; by default the built-in sentences.
        config: One or several configurations of the probes.
        report: Called with a line of text before each step.

    Returns:
        The results. If there is only one result, its error is raised; otherwise errors are in `failures`.

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
    """The encoders, tasks and languages of a table. All fields mean the same as in `table()` and `probes.run()`."""

    tasks: Sequence[str | ProbeTask]
    langs: Sequence[str]
    data: Path | None = None
    configs: Sequence[ProbeConfig] = (DEFAULT,)
    encoders: Mapping[str, SentenceEncoder] = field(default_factory=dict)
    latents: Sequence[str] = ()
    references: Mapping[str, Sequence[SentenceEncoder]] = field(default_factory=dict)

    def check(self) -> None:
        """Raise UsageError or NotFound for an argument that is wrong for every encoder."""
        for task in self.named():
            for lang in langs_of(task, [lang for lang in self.langs if lang != ALL]):
                task.check(lang)
            if self.data is None and "text" not in task.builds:
                task.items([], next(iter(task.langs), "en"))  # raises an error that names the files that the task needs
        if self.data and not self.data.exists():
            raise NotFound(f"{self.data}: no such file or folder.", parameter="data")

    def measure(self, table: ProbeTable, report: Report = silent, word: Callable[[BgtError], object] = str) -> None:
        """Run each probe, and add its result to the table, or its error to the failures.

        If there is only one probe, its error is raised. `report` is also called with each error and with the reason for
        each skipped task of a group; `word` converts these errors to text.
        """
        self.check()
        for encoder in self.encoders.values():
            for lang in encoder.langs[:1] if ALL in self.langs else self.langs:
                check(encoder, lang, probeable(self.latents or encoder.latents, lang))
        skipped: list[BgtError] = []

        def skip(error: BgtError) -> None:
            skipped.append(error)
            report(f"skipped: {word(error)}")

        rows = list(self._rows(skip))
        single = len(rows) * len(self.encoders) * len(self.configs) == 1

        def fail(label: str, error: BgtError) -> None:
            if single:
                raise error from None
            table.failures.append((label, error))
            report(f"{label}: {word(error)}")

        noted: set[str] = set()
        options: dict[str, Any] = {"latents": self.latents, "references": self.references, "report": report}
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
            notes = dataset.about.get("card", {}).get("notes", ())
            lost = [note for note in notes if "left out" in note and "label" in note]
            for note in [*(note for note in notes if note.startswith("passed over")), *lost]:
                if note not in noted:
                    noted.add(note)
                    report(note)
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
            if not skipped:
                raise UsageError(f"{text} Choose others.", parameter="tasks")
            reason = next((error for error in skipped if isinstance(error, NotFound)), skipped[0])
            raise type(reason)(f"{reason.args[0]} So {text}", parameter=reason.parameter)

    def _rows(self, skip: Callable[[BgtError], None]) -> Iterator[tuple[ProbeTask, str, bool]]:
        """Yield (task, language, whether the user named the task). Tasks of a group are skipped if they lack data."""
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
                        skip(error)
                        continue
                yield task, lang, task in named

    def named(self) -> list[ProbeTask]:
        """Return the tasks that the user named, not those of a named group. They must exist in every language."""
        tasks = [task if isinstance(task, ProbeTask) else find(task) for task in self.tasks if task not in GROUPS]
        return list(dict.fromkeys(tasks))


def langs_of(task: ProbeTask, langs: Sequence[str]) -> list[str]:
    """Return the languages in which to run a task. For a task that compares languages, all are joined: "en-fr"."""
    if "texts" in task.builds and langs and all(len(split_langs(lang)) == 1 for lang in langs):
        return ["-".join(langs)]
    return list(langs)
