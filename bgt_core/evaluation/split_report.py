"""Report how well methods divide an encoder's vectors into a part that translations share, and a private part."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.properties import final_mark
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.encoders.split import part
from bgt_core.errors import DataError
from bgt_core.evaluation.comparison import Result, Statistic, compare
from bgt_core.evaluation.systems import systems
from bgt_core.evaluation.task import Task, evaluate
from bgt_core.evaluation.tasks.retrieval import Retrieval
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.evaluation.tasks.triples import TriplesTask
from bgt_core.grammar import LANGS
from bgt_core.splitting import Split
from bgt_core.tables import Table, markdown_text

LINES = 1_000  # maximum number of held-out lines that are measured
AS_THEY_ARE, PRIVATE = "as they are", ": private"  # name of the system of whole vectors; suffix for private parts
GUESS = "the most frequent"  # name of the system that always predicts the most frequent label
FOLDS = 5
PROBES = "Accuracy of linear probes"

TEXT = """# The split of {encoder}

Measured on {lines:,} lines in {langs} that no split was fitted on. Each row is the encoder's whole vectors as they are,
or the shared or private part of them by one method. All intervals are 95 % intervals.

{sections}
## Further probes

To probe the vectors and both parts on your own text, run:

    bgt-probe --model {encoder} --model split:FOLDER --lang {lang} --data FOLDER
"""


class Report(NamedTuple):
    """A comparison of splits: results and tables by the title of the evaluation, and a page that shows all tables."""

    results: Mapping[str, Result]
    tables: Mapping[str, Table]
    page: str


class ProbedKey(NamedTuple):
    property: str
    sentences: int


def probed(
    encoders: Mapping[str, SentenceEncoder], columns: Sequence[Sequence[str]], langs: Sequence[str], *, seed: int = 0
) -> Statistic:
    """Cross-validate linear probes that predict the language, the closing mark or the length of a sentence.

    There are five folds. Translations, which have the same index in all columns, are in the same fold. The length of a
    sentence is short, medium or long: each class has a third of a language's sentences, by number of characters. The
    last system, `GUESS`, always predicts the most frequent label. A property with a single value is omitted.
    """
    from bgt_core.vectors.linear_probe import held_out_hits  # slow, because this module imports torch

    if (lines := len(columns[0])) < FOLDS:
        raise DataError(f"{lines} lines: cross-validation with {FOLDS} folds needs at least {FOLDS} lines.")
    lengths = [np.array([len(sentence) for sentence in column]) for column in columns]
    labels = {
        "language": np.repeat(langs, lines),
        "closing mark": np.array([final_mark(sentence) for column in columns for sentence in column]),
        "length": np.concatenate([np.searchsorted(np.quantile(of, [1 / 3, 2 / 3]), of) for of in lengths]),
    }
    rows = systems(encoders, langs, SEMANTIC, reserved=[GUESS])
    vectors = [
        np.concatenate([system.embed(column, lang) for column, lang in zip(columns, langs, strict=True)])
        for system in rows
    ]
    vectors.append(np.zeros((lines * len(langs), 1)))
    folds = np.tile(np.random.default_rng(seed).permutation(lines) % FOLDS, len(langs))
    # A sentence and its translations count as one test item, because a probe tends to be right about all or none.
    hits = {
        ProbedKey(name, len(of)): np.stack(
            [held_out_hits(each, of, folds).reshape(len(langs), lines).mean(0) for each in vectors]
        )
        for name, of in labels.items()
        if len(set(of)) > 1
    }
    return Statistic(
        systems=[*(system.name for system in rows), GUESS],
        hits=hits,
        about=f"{lines:,} lines in {', '.join(langs)}; accuracy of a linear probe, x 100",
        compared=[],  # no system is marked as best: accuracy should be low for shared parts, high for private parts
    )


class Remembered(ExternalEncoder):
    """An encoder that embeds each sentence only once, and keeps the vectors in memory."""

    def __init__(self, inner: SentenceEncoder):
        super().__init__(AS_THEY_ARE, self.recall, inner.langs)
        self.inner, self.known = inner, dict[tuple[str, str], np.ndarray]()

    def recall(self, sentences: list[str], lang: str, latent: str) -> np.ndarray:
        new = list(dict.fromkeys(sentence for sentence in sentences if (lang, sentence) not in self.known))
        if new:
            vectors = self.inner.embed(new, lang=lang, latent=SEMANTIC)
            self.known |= {(lang, sentence): vector for sentence, vector in zip(new, vectors, strict=True)}
        return np.stack([self.known[lang, sentence] for sentence in sentences])


def report(
    encoder: SentenceEncoder,
    name: str,
    splits: Mapping[str, Split],
    columns: Sequence[Sequence[str]],
    langs: Sequence[str],
    *,
    sts: Path | None = None,
    resamples: int = 2_000,
    seed: int = 0,
    progress: Callable[[int, int], object] = lambda done, of: None,
) -> Report:
    """Measure an encoder's vectors and the parts into which several splits divide them.

    Args:
        encoder: The encoder that was split.
        name: The encoder's name, for the page.
        splits: The splits, by the name of their method.
        columns: Translations that no split was fitted on, one list for each language. The first 1,000 lines are used.
        langs: The language of each column.
        sts: A folder of STS files. If given, STS 2012 to 2015 are measured in English.
        resamples: Number of bootstrap resamples.
        seed: Seed of the resamples and the folds.
        progress: Called with the number of finished measurements and the total number.

    Returns:
        The results of four evaluations: `probed`; retrieval between the first language and each other language; STS;
        and the triples of the built-in grammar.
    """
    columns = [list(column[:LINES]) for column in columns]
    vectors = parts(Remembered(encoder), splits)
    compared = [name for name in vectors if not name.endswith(PRIVATE)]
    tasks: dict[str, tuple[Task[Any], Any]] = {}
    for other in range(1, len(langs)):
        title = f"Retrieval of translations, {langs[0]} and {langs[other]}"
        pairs = {"held-out lines": (columns[0], columns[other])}
        tasks[title] = Retrieval(langs=f"{langs[0]},{langs[other]}", pool=True), pairs
    if sts:
        similarity = Sts(sets="2012-2015")
        tasks["English similarity (STS 2012-2015)"] = similarity, similarity.load([sts], seed=seed)
    for lang in sorted(set(langs) & set(LANGS)):
        triples = TriplesTask(lang=lang)
        tasks[f"Paraphrases nearer than altered sentences, {lang}"] = triples, triples.load([], seed=seed)
    progress(0, 1 + len(tasks))
    settings: dict[str, Any] = {"resamples": resamples, "seed": seed}
    measured = {PROBES: compare(probed(vectors, columns, langs, seed=seed), **settings)}
    for title, (task, data) in tasks.items():
        progress(len(measured), 1 + len(tasks))
        measured[title] = evaluate(task, vectors, data, compared=compared, **settings)
    tables = {title: by_system(result) for title, result in measured.items()}
    sections = [f"## {title}\n\n{markdown_text(tables[title], f'{of.about}.')}" for title, of in measured.items()]
    page = TEXT.format(
        encoder=name, lines=len(columns[0]), langs=", ".join(langs), sections="\n".join(sections), lang=langs[-1]
    )
    return Report(measured, tables, page)


def parts(inner: Remembered, splits: Mapping[str, Split]) -> dict[str, SentenceEncoder]:
    """Return {system: encoder}: whole vectors as they are, and each split's shared part and private part of them."""

    def part_of(split: Split, latent: str) -> ExternalEncoder:
        def embed(texts: list[str], lang: str, _: str) -> np.ndarray:
            return part(split, inner.embed(texts, lang=lang), lang, latent)

        return ExternalEncoder(inner.name, embed, split.langs)

    encoders: dict[str, SentenceEncoder] = {AS_THEY_ARE: inner}
    for method, split in splits.items():
        encoders |= {f"{method}: shared": part_of(split, SEMANTIC), method + PRIVATE: part_of(split, LANGUAGE)}
    return encoders


def by_system(result: Result) -> Table:
    """Make a table with a row for each system, `GUESS` first, and a column for each score."""
    heads = [" ".join(str(field) for field in key[:-1] if field != "held-out lines") for key in result.scores]
    rows = [[system, *(cells[row] for cells in result.scores.values())] for row, system in enumerate(result.systems)]
    return Table(["vectors", *heads], sorted(rows, key=lambda row: row[0] != GUESS))
