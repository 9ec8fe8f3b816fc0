"""What `bgt syntax` does, in one call: whose nearest neighbours are built as the sentence is?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.evaluation.bootstrap import bootstrapped_shares
from bgt_core.evaluation.comparison import check_bootstrap, differences, estimates, marked
from bgt_core.evaluation.syntax.measures import (
    LOWER_IS_BETTER,
    Counts,
    best_choice,
    chosen,
    counts,
    expected,
    measures,
)
from bgt_core.evaluation.syntax.pairing import Group, Pairing
from bgt_core.evaluation.syntax.sentences import CONSTITUENTS, DEPENDENCIES
from bgt_core.evaluation.syntax.table import SyntaxTable
from bgt_core.vectors.compare import nearest

RANDOM, UPPER_BOUND = "random neighbour", "upper bound"
EXPLAINED = {
    CONSTITUENTS: "labelled F1 of brackets: micro-averaged, ROOT counted, parts of speech not",
    DEPENDENCIES: "labelled attachment: words with the same head and relation, subtypes cut off",
}


def evaluate(
    encoders: SentenceEncoder | Mapping[str, SentenceEncoder],
    pairing: Pairing,
    *,
    lang: str = "en",
    latent: str | None = None,
    resamples: int = 2_000,
    level: float = 0.95,
    seed: int = 0,
) -> SyntaxTable:
    """How alike the parses of queries and of their nearest neighbours are, by each latent of each encoder.

        treebank = read_treebank([Path("trees.mrg")])
        table = evaluate({"mine": bgt_core.load("runs/mine")}, pair_up(treebank))

    The nearest neighbour is the most similar candidate of the query's length, the first of equals, by the encoder's own
    similarity; `latent` is by default each that an encoder has. Beside them stand a neighbour drawn at random, as the
    exact mean over all candidates, and for each measure the upper bound: the choice of candidates that is best by it.
    Intervals and differences are from one bootstrap of the queries, neighbours kept; differences are of all but the
    upper bound, with Holm's correction over the table.

    Raises UsageError for impossible settings and for a latent or language that an encoder lacks, DataError for vectors
    that aren't finite, NotFound where numba is not installed.
    """
    check_bootstrap(resamples, level)
    named = encoders if isinstance(encoders, Mapping) else {"model": encoders}
    chosen_latents = {name: latents(name, encoder, lang, latent) for name, encoder in named.items()}
    by_system: dict[str, list[np.ndarray]] = {}
    for name, encoder in named.items():
        for each in chosen_latents[name]:
            row = f"{name} {each}" if len(encoder.latents) > 1 else name
            if row in by_system or row in (RANDOM, UPPER_BOUND):
                raise UsageError(f"Two rows are called '{row}'; give one another name.")
            try:
                by_system[row] = neighbours(encoder, pairing, lang, each)
            except BgtError as error:
                raise type(error)(f"{name}: {error}") from None
    rows = [RANDOM, *by_system, UPPER_BOUND]
    by_group = [counts(group, pairing.kind) for group in pairing.groups]
    by_measure = {}
    for measure in measures(pairing.kind):
        parts = [group[measure] for group in by_group]
        upper = best_choice(parts, lowest=measure in LOWER_IS_BETTER)
        rows_of_choices = [chosen(parts, choices) for choices in (*by_system.values(), upper)]
        by_measure[measure] = stacked([expected(parts), *rows_of_choices])
    values, draws = bootstrapped_shares(by_measure, resamples, seed)
    cells = {measure: estimates(value, draws[measure], level) for measure, value in values.items()}
    gaps = differences(rows[:-1], all_but_last(values), all_but_last(draws), level)
    compared = marked(rows[:-1], {key: row[:-1] for key, row in cells.items()}, gaps, level, LOWER_IS_BETTER)
    return SyntaxTable(
        systems=rows,
        scores={measure: [*compared[measure], row[-1]] for measure, row in cells.items()},
        differences=gaps,
        queries=len(pairing.queries),
        candidates=len(pairing.candidates),
        left_out=pairing.left_out,
        level=level,
        resamples=resamples,
        seed=seed,
        about=explain(pairing, level, resamples),
    )


def latents(name: str, encoder: SentenceEncoder, lang: str, latent: str | None) -> Sequence[str]:
    """Those to search by; UsageError where the encoder lacks the latent or the language."""
    if latent and latent not in encoder.latents:
        raise UsageError(f"{name}: there is no latent '{latent}'; choose from {', '.join(encoder.latents)}.")
    if encoder.langs and lang not in encoder.langs:
        raise UsageError(f"{name}: the model has no language '{lang}'; it has {', '.join(encoder.langs)}.")
    return [latent] if latent else encoder.latents


def neighbours(encoder: SentenceEncoder, pairing: Pairing, lang: str, latent: str) -> list[np.ndarray]:
    """The row of each query's nearest candidate of its length, (N,) for each group."""
    sentences = [each.text for group in pairing.groups for side in group for each in side]
    vectors = np.asarray(encoder.embed(sentences, lang=lang, latent=latent))  # (N + M, D)
    if vectors.ndim != 2 or len(vectors) != len(sentences):
        raise DataError(f"{len(sentences)} sentences gave vectors of shape {vectors.shape}; expected a row each.")
    if len(bad := np.flatnonzero(~np.isfinite(vectors).all(1))):
        raise DataError(f"The vector of '{sentences[bad[0]][:60]}' holds infinity or no number.")
    rows = []
    for group in pairing.groups:
        queries, candidates, vectors = np.split(vectors, np.cumsum([len(side) for side in group]))
        rows.append(nearest(queries, candidates, encoder.similarity))
    return rows


def neighbour_counts(encoder: SentenceEncoder, pairing: Pairing, lang: str, latent: str) -> dict[str, Counts]:
    """Both counts of each query with its nearest neighbour by that latent, by measure: (N,).

    What `evaluate` has in the latent's row, without comparing every query with every candidate.
    """
    by_group = neighbours(encoder, pairing, lang, latent)
    pairs = [
        counts(Group([query], [group.candidates[row]]), pairing.kind)
        for group, rows in zip(pairing.groups, by_group, strict=True)
        for query, row in zip(group.queries, rows, strict=True)
    ]
    return {
        measure: Counts(*(np.array([pair[measure][side].item() for pair in pairs]) for side in range(2)))
        for measure in measures(pairing.kind)
    }


def all_but_last(by_measure: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Without the row of the upper bound: (..., S) -> (..., S - 1)."""
    return {measure: each[..., :-1] for measure, each in by_measure.items()}


def stacked(rows: Sequence[Counts]) -> Counts:
    """Both counts of S rows, (N,) each -> (S, N)."""
    return Counts(*(np.stack(column) for column in zip(*rows, strict=True)))


def explain(pairing: Pairing, level: float, resamples: int) -> str:
    """What was measured on what, in a line or two."""
    left_out = "".join(f"; {count:,} {why}" for why, count in pairing.left_out.items() if count)
    return (
        f"{len(pairing.queries):,} queries, {len(pairing.candidates):,} candidates of their lengths"
        f"{f' (left out: {left_out[2:]})' if left_out else ''}\n"
        f"{EXPLAINED[pairing.kind]}; tree edit distance (lower is better): edits per 100 nodes of both trees, words "
        f"left out; all are sums over queries; {100 * level:g}% intervals from {resamples} resamples of the queries; "
        "differences: paired, Holm over the table"
    )
