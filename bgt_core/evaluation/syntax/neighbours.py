"""The nearest neighbour of each query among candidates of its length, and the similarity of their parses."""

from __future__ import annotations

import numpy as np

from bgt_core.evaluation.syntax.measures import Counts, counts, measures
from bgt_core.evaluation.syntax.pairing import Group, Pairing
from bgt_core.evaluation.systems import System
from bgt_core.vectors.compare import nearest


def neighbours(system: System, pairing: Pairing, lang: str) -> list[np.ndarray]:
    """The index of each query's nearest candidate of its length, the first if several tie: (N,) for each group."""
    vectors = system.embed([each.text for group in pairing.groups for side in group for each in side], lang)
    rows = []
    for group in pairing.groups:
        queries, candidates, vectors = np.split(vectors, np.cumsum([len(side) for side in group]))
        rows.append(nearest(queries, candidates, system.encoder.similarity))
    return rows


def neighbour_counts(system: System, pairing: Pairing, lang: str) -> dict[str, Counts]:
    """Both counts of each query with its nearest neighbour, by measure: (N,).

    It gives the same numbers as the evaluation, without comparing every query with every candidate.
    """
    pairs = [
        counts(Group([query], [group.candidates[row]]), pairing.kind)
        for group, rows in zip(pairing.groups, neighbours(system, pairing, lang), strict=True)
        for query, row in zip(group.queries, rows, strict=True)
    ]
    return {
        measure: Counts(*(np.array([pair[measure][side].item() for pair in pairs]) for side in range(2)))
        for measure in measures(pairing.kind)
    }
