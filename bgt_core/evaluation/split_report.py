"""A page that shows what a split does: an encoder's vectors and both parts of them by each method, side by side."""

from __future__ import annotations

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

LINES = 1_000  # held out, and searched
AS_THEY_ARE, PRIVATE = "as they are", ": private"  # a system, and how the names of others end
GUESS = "the most frequent"  # the system that has no vector
FOLDS = 5

TEXT = """# What the split of {encoder} does

Measured on {lines:,} lines in {langs} that no method was fitted on. A row is the vectors as they are, or one part of
them by one method. Intervals are of 95 %.

{sections}
## Further probes

Of the vectors and of both parts, on text of your own:

    bgt-probe --model {encoder} --model split:FOLDER --lang {lang} --data FOLDER
"""


class Report(NamedTuple):
    """Results and tables by the name of what was measured, and the page that shows them."""

    results: Mapping[str, Result]
    tables: Mapping[str, Table]
    page: str


class ProbedKey(NamedTuple):
    property: str
    sentences: int


def probed(
    encoders: Mapping[str, SentenceEncoder], columns: Sequence[Sequence[str]], langs: Sequence[str], *, seed: int = 0
) -> Statistic:
    """Fit linear probes of the language, the closing mark and the length of a sentence, in five folds.

    Sentences of line n of all columns have the same meaning, and are in the same fold. The length is one of three equal
    groups of the sentences of a language, by number of characters. The last system, `GUESS`, always predicts the most
    frequent value. A property with a single value is left out. Raises DataError for fewer than 5 lines.
    """
    from bgt_core.vectors.linear_probe import held_out_hits  # imports torch

    if (lines := len(columns[0])) < FOLDS:
        raise DataError(f"{lines} lines: a probe in {FOLDS} folds needs at least {FOLDS}.")
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
    # sentences of one line tend to be right together: a line counts as one item
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
        about=f"{lines:,} lines in {', '.join(langs)}; sentences that a linear probe is right about, x 100",
        compared=[],  # no better or worse: a shared part should tell little, a private one much
    )


class Remembered(ExternalEncoder):
    """An encoder that embeds each sentence only once, and remembers its vector."""

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
    drawn: int = 1_000,
    resamples: int = 2_000,
    seed: int = 0,
    progress: Callable[[int, int], object] = lambda done, of: None,
) -> Report:
    """Measure an encoder's vectors and their parts by several methods.

    Args:
        encoder: The encoder that was split.
        name: The encoder's name, for the page.
        splits: Its splits, by method.
        columns: Sentences that no split was fitted on; those of line n mean the same. The first 1,000 lines are used.
        langs: The language of each column.
        sts: A folder of STS files, for English similarity of 2012 to 2015.
        drawn: Number of triples of the built-in grammar.
        resamples: Number of bootstrap resamples.
        seed: Seed of resamples and of folds.
        progress: Called with the number of measurements done, and of all.

    Returns:
        The results of `probed`; retrieval between each two columns, and in the pool of both; triples; and similarity.
    """
    columns = [list(column[:LINES]) for column in columns]
    vectors = parts(Remembered(encoder), splits)
    compared = [name for name in vectors if not name.endswith(PRIVATE)]
    tasks: dict[str, tuple[Task[Any], Any]] = {}
    for other in range(1, len(langs)):
        title = f"The line of the same meaning found, {langs[0]} and {langs[other]}"
        pairs = {"held-out lines": (columns[0], columns[other])}
        tasks[title] = Retrieval(langs=f"{langs[0]},{langs[other]}", pool=True), pairs
    if sts:
        similarity = Sts(sets="2012-2015")
        tasks["English similarity (STS 2012-2015)"] = similarity, similarity.load([sts], seed=seed)
    for lang in sorted(set(langs) & set(LANGS)):
        triples = TriplesTask(lang=lang, count=drawn)
        tasks[f"Paraphrases nearer than altered sentences, {lang}"] = triples, triples.load([], seed=seed)
    progress(0, 1 + len(tasks))
    settings: dict[str, Any] = {"resamples": resamples, "seed": seed}
    measured = {"What a linear probe tells": compare(probed(vectors, columns, langs, seed=seed), **settings)}
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
    """Return the whole vectors, and both parts by each method, as encoders."""

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
