"""Choose queries and candidates: a neighbour has as many words as its query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bgt_core.errors import DataError, UsageError, check_least
from bgt_core.evaluation.syntax.sentences import ParsedSentence, Treebank

LENGTHS = (1, 29)  # minimum and maximum number of words in the VGVAE paper's evaluation
LONGEST = 200


class Group(NamedTuple):
    """The sentences of one length."""

    queries: Sequence[ParsedSentence]
    candidates: Sequence[ParsedSentence]


@dataclass(frozen=True, eq=False)
class Pairing:
    """Groups by length, and the number of sentences left out, by reason."""

    kind: str  # of the treebank
    groups: Sequence[Group]
    left_out: dict[str, int]

    @property
    def queries(self) -> list[ParsedSentence]:
        """All queries, group by group: the order of all counts by query."""
        return [query for group in self.groups for query in group.queries]

    @property
    def candidates(self) -> list[ParsedSentence]:
        return [candidate for group in self.groups for candidate in group.candidates]


def pair_up(
    sentences: Treebank,
    candidates: Treebank | None = None,
    *,
    lengths: tuple[int, int] = LENGTHS,
    limit: int | None = None,
    seed: int = 0,
) -> Pairing:
    """Pair queries with candidates. Without `candidates`, a random half of the sentences are queries and the others
    candidates.

    Of sentences that differ only in case the first is kept, and no candidate is also a query: a copy would be nearest
    for any encoder. `limit` draws at most that many queries. Raises UsageError for impossible lengths or limits and for
    treebanks of two kinds, DataError if fewer than two queries have a candidate.
    """
    shortest, longest = lengths
    if not 1 <= shortest <= longest <= LONGEST:
        raise UsageError(f"{shortest}-{longest}: expected from 1 to {LONGEST} words, as in 1-29.", parameter="lengths")
    check_least(2, limit=limit)
    if candidates and candidates.kind != sentences.kind:
        raise UsageError(f"Queries have {sentences.kind} and candidates {candidates.kind}; give one kind.")
    pools = [[*sentences.sentences], [*candidates.sentences]] if candidates else [[*sentences.sentences]]
    fitting = [[each for each in pool if shortest <= len(each.tags) <= longest] for pool in pools]
    distinct = without_copies(fitting)
    left_out = {
        "of another length": sum(map(len, pools)) - sum(map(len, fitting)),
        "copies": sum(map(len, fitting)) - sum(map(len, distinct)),
    }
    rng = np.random.default_rng([seed, 0])
    if candidates:
        queries, offered = distinct
    else:
        (pool,) = distinct
        order = rng.permutation(len(pool))
        queries, offered = ([pool[row] for row in np.sort(part)] for part in np.array_split(order, 2))
    lengths_of_candidates = {len(each.tags) for each in offered}
    answerable = [query for query in queries if len(query.tags) in lengths_of_candidates]
    left_out["queries without a candidate of their length"] = len(queries) - len(answerable)
    if limit is not None and limit < len(answerable):
        chosen = np.sort(rng.permutation(len(answerable))[:limit])
        left_out["queries beyond the limit"] = len(answerable) - limit
        answerable = [answerable[row] for row in chosen]
    if len(answerable) < 2:
        raise DataError(
            f"{len(answerable)} of {sum(map(len, pools))} sentences are queries with a candidate of their length "
            f"({shortest} to {longest} words); expected 2 or more. "
            + "; ".join(f"{count} {why}" for why, count in left_out.items())
        )
    return Pairing(sentences.kind, by_length(answerable, offered), left_out)


def without_copies(pools: Iterable[Sequence[ParsedSentence]]) -> list[list[ParsedSentence]]:
    """The pools without sentences that equal, except for case, an earlier one in this pool or before it."""
    seen: set[str] = set()
    kept = []
    for pool in pools:
        new = []
        for sentence in pool:
            if sentence.text.casefold() not in seen:
                seen.add(sentence.text.casefold())
                new.append(sentence)
        kept.append(new)
    return kept


def by_length(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> list[Group]:
    groups = []
    for length in sorted({len(query.tags) for query in queries}):
        groups.append(Group(*([each for each in side if len(each.tags) == length] for side in (queries, candidates))))
    return groups
