"""Surface: what a linear probe tells from a sentence's vector, of things that any text shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import text_columns
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.properties import PROPERTIES, final_mark
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import systems
from bgt_core.evaluation.task import Langs, Latent, Task, one_path

Columns = Sequence[Sequence[str]]  # sentence n of all columns has the same meaning
FOLDS = 5
THIRDS = 3
WORDINGS = ("address", "politeness", "contraction")  # told of the sentences that show one of their values
FEWEST = 100  # sentences with a value
GUESS = "the most frequent"  # the system that has no vector


class SurfaceKey(NamedTuple):
    property: str
    sentences: int


@dataclass(frozen=True)
class Surface(Task[Columns]):
    """Surface: does a linear probe tell the language, the closing mark, the length and the wording from a vector?

    In percent of sentences, in five folds; sentences of one line are in one fold. The length is the third of its
    language that a sentence is in, by its characters. The form of address, politeness and contraction are those of the
    probing tasks, of the sentences that show them. The last system guesses what is most frequent.
    """

    data = "Sentences that mean the same, a column for each language: TSV, Parquet, or X for X.en and X.fr."

    langs: Langs
    latent: Latent = None

    def load(self, paths: Sequence[Path], *, seed: int) -> Columns:
        """Read the file."""
        path = one_path(paths, "one file of sentences")
        return list(zip(*read_pairs(path, text_columns(self.langs)[0], Skipped(), strict=True), strict=True))

    def statistic(self, items: Columns, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Fit the probes of each system."""
        from bgt_core.vectors.linear_probe import held_out_hits  # a second, which other tasks need not wait

        langs = text_columns(self.langs)[1]
        if len(items) != len(langs) or len({len(column) for column in items}) != 1:
            raise UsageError(f"{self.langs}: expected a language for each column, and as many sentences in each.")
        lines = len(items[0])
        if lines < FOLDS:
            raise DataError(f"{lines} lines: a probe in {FOLDS} folds needs at least {FOLDS}.")
        labels = labels_of(items, langs)
        rows = systems(encoders, langs, self.latent, reserved=[GUESS])
        folds = np.tile(np.random.default_rng(seed).permutation(lines) % FOLDS, len(langs))
        hits: dict[str, list[np.ndarray]] = {name: [] for name in labels}
        for system in rows:
            parts = [system.embed(column, lang) for column, lang in zip(items, langs, strict=True)]
            system.check_widths(parts[0], parts[-1])
            vectors = np.concatenate(parts)
            for name, (of, known) in labels.items():
                hits[name].append(held_out_hits(vectors[known], of[known], folds[known]))
        by_line: dict[str, np.ndarray] = {}
        for name, (of, known) in labels.items():
            hits[name].append(held_out_hits(np.zeros((known.sum(), 1)), of[known], folds[known]))
            # sentences of one line tend to be right together: a line counts as one item
            spread = np.full((len(hits[name]), len(known)), np.nan)
            spread[:, known] = hits[name]
            by_column = spread.reshape(len(spread), len(langs), lines)
            by_line[name] = np.nanmean(by_column[:, :, ~np.isnan(by_column[0]).all(0)], axis=1)
        return Statistic(
            systems=[*(system.name for system in rows), GUESS],
            hits={SurfaceKey(name, int(labels[name][1].sum())): shares for name, shares in by_line.items()},
            about=f"{lines:,} lines in {', '.join(langs)}; sentences that a linear probe is right about, x 100",
            counts={"lines": lines},
        )


TASK = Surface


def labels_of(columns: Columns, langs: Sequence[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What is told of each sentence, column after column, (N x C,), and whether it has a label, (N x C,).

    Left out: what is the same everywhere, and properties of wording that fewer than `FEWEST` sentences have.
    """
    lengths = [np.array([len(sentence) for sentence in column]) for column in columns]
    thirds = [np.searchsorted(np.quantile(of, [1 / THIRDS, 1 - 1 / THIRDS]), of) for of in lengths]
    labels = {
        "language": np.repeat(langs, len(columns[0])),
        "closing mark": np.array([final_mark(sentence) for column in columns for sentence in column]),
        "length": np.concatenate(thirds),
    }
    every = np.ones(len(labels["language"]), bool)
    known = {name: (of, every) for name, of in labels.items() if len(set(of)) > 1}
    for name in WORDINGS:
        of = np.array(
            [PROPERTIES[name].value(text, lang) for lang, column in zip(langs, columns, strict=True) for text in column]
        )
        if len({*of} - {""}) > 1 and (of != "").sum() >= FEWEST:
            known[name] = of, of != ""
    return known
