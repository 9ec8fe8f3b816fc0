"""Question retrieval: a query against 100,000 stored questions, with and without the filter of topics.

    bgt retrieve-similar build questions.txt --model runs/siamese --topics 20 --out store
    python -m benchmarks.questions --store store --queries queries.txt

The store is one of a trained `var-siamese`; the queries, one a line, should not be in it. A query is timed alone, from
text to ranked questions, once the store is loaded. The peer is the exhaustive search: the siamese network's probability
of the query with each stored question. That takes a second or so, so that only EXHAUSTIVE queries of a round are timed
in it. All queries are searched in both ways once, to see how often the first question is the same.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator

import faiss

from benchmarks.measure import Measurement, clock_of, interleave, page
from bgt_core.cli.options import open_encoder
from bgt_core.data.textfile import text_lines
from bgt_core.errors import UsageError
from bgt_core.questions import QuestionStore
from bgt_core.questions.card import StoreCard
from bgt_core.questions.store import SHORTLIST

SECONDS = 0.2  # that a query may take, with 100,000 stored
EXHAUSTIVE, QUICK = 2, 20  # queries of a round
WITHIN = (None, 1, 3)  # topics of the query that are searched; None: all questions


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Nothing without a store; else seconds a query, and how often the first is that of the exhaustive search."""
    if not (options.store and options.queries):
        return
    faiss.omp_set_num_threads(options.threads)
    store = QuestionStore.open(options.store, open_encoder(StoreCard.load(options.store).model, "cpu"))
    queries = [line for _, line in text_lines(options.queries) if line.strip()]
    if len(queries) < QUICK:
        raise UsageError(f"{options.queries}: {len(queries)} queries; expected {QUICK} or more.")
    best = [first(store, query, shortlist=None) for query in queries]
    for within in WITHIN if store.topics else (None,):
        yield measure(store, queries, best, within, options)


def measure(
    store: QuestionStore, queries: list[str], best: list[int], within: int | None, options: argparse.Namespace
) -> Measurement:
    """One way of searching against the exhaustive one."""

    def some(number: int, count: int) -> list[str]:
        return [queries[(number * count + at) % len(queries)] for at in range(count)]

    quick, slow = interleave(
        lambda number: [first(store, query, within=within) for query in some(number, QUICK)],
        lambda number: [first(store, query, shortlist=None) for query in some(number, EXHAUSTIVE)],
        options.threads,
        options.rounds,
    )
    quick, slow = [seconds / QUICK for seconds in quick], [seconds / EXHAUSTIVE for seconds in slow]
    same = sum(first(store, query, within=within) == row for query, row in zip(queries, best, strict=True))
    looked = "all" if within is None else f"those of the query's {within} largest of {store.card.topics} topics"
    return Measurement(
        work=f"a query, {len(store):,} stored questions, {looked}; {SHORTLIST} ranked by the network",
        against=f"{SECONDS} s a query",
        ratios=[seconds / SECONDS for seconds in quick],
        target="<= 1",
        ours=f"{statistics.median(quick):.4f} s, {1 / statistics.median(quick):.0f} queries/s",
        peer=f"the network ranks all: {statistics.median(slow):.2f} s",
        error=f"the same first question for {same} of {len(queries)} queries ({100 * same / len(queries):.1f}%)",
        bottleneck=parts(store, queries, options.threads),
    )


def parts(store: QuestionStore, queries: list[str], threads: int, count: int = 50) -> str:
    """What embedding a query alone takes."""
    clock = clock_of(threads)
    begun = clock()
    for query in queries[:count]:
        store.ranking.encoder.embed([query], lang=store.card.lang)
    return f"embedding the query {1_000 * (clock() - begun) / min(count, len(queries)):.1f} ms; the rest is search"


def first(store: QuestionStore, query: str, within: int | None = None, shortlist: int | None = SHORTLIST) -> int:
    """The row of the best stored question."""
    return store.query([query], k=1, within=within, shortlist=shortlist)[0][0].row


if __name__ == "__main__":
    page(rows, __doc__)
