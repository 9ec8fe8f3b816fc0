"""Queries, candidates and measures of small parsed sentences, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.syntax.measures import EDITS, STRUCTURE, TAGS, Counts, counts, expected, same_tags, shared
from bgt_core.evaluation.syntax.neighbours import neighbour_counts, neighbours
from bgt_core.evaluation.syntax.pairing import (
    CONSTITUENTS,
    DEPENDENCIES,
    Group,
    OrderedTree,
    ParsedSentence,
    Treebank,
    pair_up,
    without_copies,
)
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.syntax import RANDOM, UPPER_BOUND, Syntax
from bgt_core.vectors.compare import ComparesByCosine

pytest.importorskip("numba")


def parsed(text: str, tags: str = "", structure: Sequence[Any] = (("S", 0, 1),), labels: str = "S") -> ParsedSentence:
    """A sentence whose tree is a root over leaves."""
    tree = OrderedTree([*labels[1:], labels[0]], [*range(len(labels) - 1), 0])
    return ParsedSentence(text, tags or ["X"] * len(text.split()), structure, tree)


def bank(*texts: str, kind: str = CONSTITUENTS) -> Treebank:
    return Treebank(kind, [parsed(text) for text in texts])


def texts(side: Sequence[ParsedSentence]) -> list[str]:
    return [each.text for each in side]


SIX = [f"a{row} b" for row in range(5)] + [f"a{row} b c" for row in range(6)]


def test_half_of_the_sentences_are_queries_by_the_seed() -> None:
    made = pair_up(bank(*SIX), seed=7)
    order = np.random.default_rng([7, 0]).permutation(11)
    first, second = np.sort(order[:6]), np.sort(order[6:])
    by_length = sorted(first.tolist(), key=lambda row: len(SIX[row].split()))
    assert texts(made.queries) == [SIX[row] for row in by_length]
    assert texts(made.candidates) == [SIX[row] for row in sorted(second.tolist(), key=lambda r: len(SIX[r].split()))]
    assert made.kind == CONSTITUENTS and len(made.groups) == 2
    assert texts(pair_up(bank(*SIX)).queries) == texts(pair_up(bank(*SIX), seed=0).queries) != texts(made.queries)
    limited = pair_up(bank(*SIX), seed=7, limit=3)
    rng = np.random.default_rng([7, 0])
    rng.permutation(11)
    chosen = [sorted(first.tolist())[row] for row in np.sort(rng.permutation(6)[:3])]
    assert sorted(texts(limited.queries)) == sorted(SIX[row] for row in chosen)
    assert limited.left_out["queries beyond the limit"] == 3
    assert "queries beyond the limit" not in pair_up(bank(*SIX), seed=7, limit=6).left_out
    assert len(pair_up(bank(*SIX), seed=7, limit=2).queries) == 2


def test_lengths_are_from_the_first_to_the_last_and_1_to_29_unless_said() -> None:
    rows = [" ".join(["w"] * n + [str(copy)]) for n in (0, 1, 2, 28, 29) for copy in range(2)]
    queries, offered = bank(*rows), bank(*(row + "x" for row in rows))
    lengths = [len(each.tags) for each in pair_up(queries, offered).queries]
    assert lengths == [1, 1, 2, 2, 3, 3, 29, 29]
    made = pair_up(queries, offered, lengths=(2, 3))
    assert [len(each.tags) for each in made.queries] == [2, 2, 3, 3]
    assert made.left_out == {"of another length": 12, "copies": 0, "queries without a candidate of their length": 0}
    assert len(pair_up(queries, offered, lengths=(3, 3)).queries) == 2
    assert len(pair_up(queries, offered, lengths=(1, 200)).queries) == 10


@pytest.mark.parametrize("lengths", [(0, 5), (5, 4), (1, 201)])
def test_impossible_lengths_are_refused(lengths: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=f"lengths {lengths[0]}-{lengths[1]}: expected from 1 to 200 words"):
        pair_up(bank(*SIX), lengths=lengths)


def test_what_can_not_be_paired_is_refused() -> None:
    with pytest.raises(UsageError, match="limit 1 must be at least 2"):
        pair_up(bank(*SIX), limit=1)
    with pytest.raises(UsageError, match="Queries have constituents and candidates dependencies; give one kind"):
        pair_up(bank(*SIX), bank(*SIX, kind=DEPENDENCIES))
    message = (
        r"^1 of 5 sentences are queries with a candidate of their length \(1 to 29 words\); expected 2 or more\. "
        "0 of another length; 1 copies; 1 queries without a candidate of their length$"
    )
    with pytest.raises(DataError, match=message):
        pair_up(bank("a b", "a b c", "A b"), bank("d e", "f"))


def test_copies_differ_in_case_alone_and_the_first_is_kept() -> None:
    pools = [[parsed("Straße a"), parsed("b"), parsed("STRASSE A")], [parsed("B"), parsed("c"), parsed("C")]]
    assert [texts(pool) for pool in without_copies(pools)] == [["Straße a", "b"], ["c"]]


ONE = parsed("a b", ["D", "N"], [("S", 0, 2), ("N", 0, 1), ("N", 0, 1)], "SDN")
TWO = parsed("c d", ["D", "V"], [("S", 0, 2), ("N", 0, 1), ("V", 1, 2)], "SDV")
THREE = parsed("e f", ["V", "V"], [("N", 0, 1), ("N", 0, 1), ("N", 0, 1), ("S", 1, 2)], "SVVV")


def test_counts_of_a_group_by_hand() -> None:
    assert shared([ONE, THREE], [ONE, TWO, THREE]).tolist() == [[3, 2, 2], [2, 1, 4]]
    assert same_tags([ONE, THREE], [ONE, TWO, THREE]).tolist() == [[2, 1, 0], [0, 1, 2]]
    counted = counts(Group([ONE, THREE], [TWO, ONE]), CONSTITUENTS)
    assert list(counted) == [STRUCTURE[CONSTITUENTS], EDITS, TAGS]
    assert all(part.dtype == np.float32 for both in counted.values() for part in both)
    assert counted[STRUCTURE[CONSTITUENTS]].part.tolist() == [[4, 6], [2, 4]]
    assert counted[STRUCTURE[CONSTITUENTS]].whole.tolist() == [[6, 6], [7, 7]]
    assert counted[EDITS].part.tolist() == [[1, 0], [2, 3]]
    assert counted[EDITS].whole.tolist() == [[6, 6], [7, 7]]
    assert counted[TAGS].part.tolist() == [[1, 2], [1, 0]] and counted[TAGS].whole.tolist() == [[2, 2], [2, 2]]


class Spelling(ComparesByCosine):
    """How often each letter comes; the language latent has them turned round."""

    langs: Sequence[str] = ("en", "fr")
    latents: Sequence[str] = ("semantic", "language")
    fingerprint = ""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "none") -> np.ndarray:
        self.asked.append((lang, latent))
        table = np.array([[text.count(letter) for letter in "abcdef"] for text in sentences], dtype=np.float32)
        return table if latent == "semantic" else table[:, ::-1] * [1, 2, 3, 4, 5, 6]


QUERIES = [("a b", "D N"), ("c c", "D V"), ("a c", "N N"), ("a b c", "D N V")]
OFFERED = [("a a b", "V V V"), ("c d", "D V"), ("b b", "D N"), ("c c d", "D N N"), ("a d", "N D")]


class Alone(Spelling):
    latents = ("semantic",)


def treebank(rows: Sequence[tuple[str, str]]) -> Treebank:
    return Treebank(CONSTITUENTS, [parsed(text, tags.split(), [("S", 0, len(text))], "S" + tags.replace(" ", ""))
                                   for text, tags in rows])  # fmt: skip


def test_the_nearest_of_its_length_is_compared_with_each_query() -> None:
    pairing, encoder = pair_up(treebank(QUERIES), treebank(OFFERED)), Spelling()
    two, three = neighbours(System("x", encoder), pairing, "fr")
    # "a b": b b and a d are as near, the first counts; "c c": c d; "a c": c d before a d; "a b c": a a b
    assert (two.tolist(), three.tolist()) == ([1, 0, 0], [0])
    assert encoder.asked == [("fr", "semantic")]
    counted = neighbour_counts(System("x", encoder), pairing, "fr")
    assert encoder.asked[-1] == ("fr", "semantic")
    assert counted[TAGS].part.tolist() == [2, 2, 0, 1] and counted[TAGS].whole.tolist() == [2, 2, 2, 3]
    table = evaluate(Syntax(lang="fr", latent="semantic"), {"x": encoder}, pairing, resamples=150, seed=5)
    assert table.systems == [RANDOM, "x semantic", UPPER_BOUND]
    agree = np.array([[1, 2, 0], [2, 1, 0], [0, 1, 1]])  # with c d, b b, a d
    by_chance = agree.mean(1).sum() + (1 + 2) / 2
    values = [cell.value for cell in table.scores[TAGS, 4]]
    assert values == pytest.approx([100 * by_chance / 9, 100 * 5 / 9, 100 * 7 / 9])
    random, _, best = (cell.value for cell in table.scores[EDITS, 4])
    assert best < random
    assert {(gap.first, gap.second) for gap in table.differences} == {(RANDOM, "x semantic")}
    with pytest.raises(UsageError, match=f"Two systems are named '{RANDOM}'"):
        evaluate(Syntax(), {RANDOM: Alone()}, pairing)


def test_neighbours_of_the_same_parse_are_marked_best_where_low_is_good_and_where_high_is() -> None:
    """10 queries of one kind and 20 of another, whose trees are two labels apart; their letters tell which is which.

    A random candidate is of the other kind for 20 of 30 of the 10, and for 10 of 30 of the 20: 4 in 9.
    """
    kinds = {"a": ("b", "D N", 10), "c": ("d", "V V", 20)}
    both = [(first * n, second, tags) for first, (second, tags, size) in kinds.items() for n in range(1, size + 1)]
    queries = treebank([(f"{first} {second}", tags) for first, second, tags in both])
    offered = treebank([(f"{second} {first}", tags) for first, second, tags in both])
    pairing = pair_up(queries, offered)
    table = evaluate(Syntax(latent="semantic"), {"x": Spelling()}, pairing, resamples=200, seed=1)
    assert [cell.value for cell in table.scores[EDITS, 30]] == pytest.approx([400 / 27, 0, 0])  # 2 edits of 6 nodes
    assert [cell.value for cell in table.scores[TAGS, 30]] == pytest.approx([500 / 9, 100, 100])
    for measure, gain in ((EDITS, 400 / 27), (TAGS, -400 / 9)):
        assert [cell.mark for cell in table.scores[measure, 30]] == ["", "best", ""]
        (gap,) = (gap for gap in table.differences if gap.key.score == measure)
        assert gap.difference.value == pytest.approx(gain) and gap.p < 0.001

    def at_random(**settings: Any) -> Any:
        made = evaluate(Syntax(latent="semantic"), {"x": Spelling()}, pairing, resamples=200, **settings)
        return made.scores[TAGS, 30][0][1:3]

    assert at_random(seed=1) == at_random(seed=1) != at_random(seed=2)
    narrow, wide = at_random(level=0.5), at_random(level=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_neighbours_are_by_the_encoder_s_own_similarity() -> None:
    class Opposed(Spelling):
        def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return -super().similarity(left, right)

    two, three = neighbours(System("x", Opposed()), pair_up(treebank(QUERIES), treebank(OFFERED)), "en")
    assert (two.tolist(), three.tolist()) == ([0, 1, 1], [1])


def test_a_random_candidate_is_the_mean_in_double_precision() -> None:
    group = Counts(np.array([[1, 0, 0]], np.float32), np.array([[3, 3, 1]], np.float32))
    counted = expected([group])
    assert counted.part.tolist() == [1 / 3] and counted.whole.tolist() == [7 / 3]


def test_without_numba_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.errors.find_spec", lambda name: None)
    with pytest.raises(NotFound, match=r"numba.*\[syntax\]"):
        counts(Group([ONE], [TWO]), CONSTITUENTS)
