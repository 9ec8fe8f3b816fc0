"""Syntactic evaluation of any encoder: does a sentence's nearest neighbour have the same structure? (Chen et al. 2019)

    files -> `read_treebank` -> `pair_up`: queries and candidates by length -> neighbours -> three measures of parses

A language or syntactic latent should find sentences of the same structure; a semantic one need not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import needs
from bgt_core.evaluation.bootstrap import ItemSample, share
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.syntax.measures import LOWER_IS_BETTER, Counts, best_choice, chosen, counts, expected, measures
from bgt_core.evaluation.syntax.neighbours import neighbours
from bgt_core.evaluation.syntax.pairing import CONSTITUENTS, DEPENDENCIES, Pairing, pair_up, read_treebank
from bgt_core.evaluation.systems import systems
from bgt_core.evaluation.task import Lang, Latent, Task, read_lengths

RANDOM, UPPER_BOUND = "random neighbour", "upper bound"
EXPLAINED = {
    CONSTITUENTS: "labelled F1 of brackets: micro-averaged, ROOT counted, parts of speech not",
    DEPENDENCIES: "labelled attachment: words with the same head and relation, subtypes cut off",
}


class SyntaxKey(NamedTuple):
    score: str
    queries: int


@dataclass(frozen=True)
class Syntax(Task[Pairing]):
    """Syntax: does the nearest sentence of the same length have the same structure?

    Bracketed trees, as in the Penn Treebank, lose functions (NP-SBJ is NP) and traces: labelled F1 of brackets.
    CoNLL-U: labelled attachment instead. With both: tree edit distance, lower is better, and part-of-speech accuracy.
    Copies of a sentence are left out. Reference rows: a random neighbour, and the best choice of candidates by each
    measure.
    """

    data = "Parsed sentences: CoNLL-U if called .conllu, else bracketed trees."
    across = "score"

    candidates: Annotated[list[Path] | None, "Files of the sentences to find, by default half of DATA; repeatable."] = (
        None
    )
    lang: Lang = "en"
    latent: Latent = None
    lengths: Annotated[str, "Words of the sentences, as in 1-29."] = "1-29"
    limit: Annotated[int | None, "At most this many queries, drawn by the seed."] = None

    def load(self, paths: Sequence[Path], *, seed: int) -> Pairing:
        """Read the trees and draw the queries."""
        needs("numba", "syntax")
        lengths = read_lengths(self.lengths)
        return pair_up(
            read_treebank(paths, self.lang),
            read_treebank(self.candidates, self.lang) if self.candidates else None,
            lengths=lengths,
            limit=self.limit,
            seed=seed,
        )

    def statistic(self, items: Pairing, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Compare the parses of queries and their neighbours; queries are resampled, neighbours stay.

        The score of a random neighbour is the exact mean over all candidates. The upper bound is, for each measure, the
        best choice of candidates; it is not tested against the others.
        """
        rows = systems(encoders, [self.lang], self.latent, reserved=(RANDOM, UPPER_BOUND))
        choices = [neighbours(system, items, self.lang) for system in rows]
        by_group = [counts(group, items.kind) for group in items.groups]
        queries = len(items.queries)
        sums: dict[SyntaxKey, Counts] = {}
        for measure in measures(items.kind):
            parts = [group[measure] for group in by_group]
            upper = best_choice(parts, lowest=measure in LOWER_IS_BETTER)
            of_rows = [expected(parts), *(chosen(parts, choice) for choice in (*choices, upper))]
            sums[SyntaxKey(measure, queries)] = Counts(*(np.stack(column) for column in zip(*of_rows, strict=True)))
        names = [RANDOM, *(system.name for system in rows)]
        return Statistic(
            systems=[*names, UPPER_BOUND],
            scores=lambda weights: {key: share(weights[0], *both) for key, both in sums.items()},
            samples=[ItemSample(queries, (1,))],
            about=explain(items),
            counts={"queries": queries, "candidates": len(items.candidates), **items.left_out},
            compared=names,
            lower_is_better=[key for key in sums if key.score in LOWER_IS_BETTER],
        )


TASK = Syntax


def explain(pairing: Pairing) -> str:
    """Describe the data and measures."""
    left_out = "; ".join(f"{count:,} {why}" for why, count in pairing.left_out.items() if count)
    return (
        f"{len(pairing.queries):,} queries, {len(pairing.candidates):,} candidates of their lengths"
        f"{f' (left out: {left_out})' if left_out else ''}; {EXPLAINED[pairing.kind]}; tree edit distance (lower is "
        "better): edits per 100 nodes of both trees, words left out; all are ratios of sums over queries"
    )
