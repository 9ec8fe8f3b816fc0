"""Neighbours, rows and their order, what is left out, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError
from bgt_core.evaluation.result import Result
from bgt_core.evaluation.syntax.measures import EDITS, TAGS
from bgt_core.evaluation.syntax.neighbours import neighbour_counts, neighbours
from bgt_core.evaluation.syntax.pairing import Pairing, pair_up, read_treebank
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.syntax import RANDOM, UPPER_BOUND, Syntax

Write = Callable[..., Path]


def noise(seed: int) -> ExternalEncoder:
    """Vectors that have nothing to do with the sentences, in their order."""

    def embed(texts: list[str], lang: str, latent: str) -> np.ndarray:
        return np.random.default_rng(seed).normal(size=(len(texts), 5)).astype(np.float32)

    return ExternalEncoder("noise", embed, fingerprint=str(seed))


def measured(encoders: dict[str, Any], pairing: Pairing, **how: Any) -> Result:
    return evaluate(Syntax(), encoders, pairing, **how)


def shape(texts: list[str], lang: str, latent: str) -> np.ndarray:
    """How often each kind of word stands in each place, from words such as nn3."""
    vectors = np.zeros((len(texts), 40, 6), dtype=np.float32)
    for row, text in enumerate(texts):
        for place, word in enumerate(text.lower().split()):
            vectors[row, place, "dnvic".find(word[0])] = 1
    return vectors.reshape(len(texts), -1)


def test_the_nearest_neighbour_is_that_of_a_loop(trees: list[str], treebank: Write) -> None:
    pairing = pair_up(read_treebank([treebank("a.mrg", trees)]), lengths=(3, 20))
    rows = neighbours(System("n", noise(0)), pairing, "en")
    texts = [each.text for group in pairing.groups for side in group for each in side]
    vectors = dict(zip(texts, noise(0).embed(texts, lang="en"), strict=True))
    for group, own in zip(pairing.groups, rows, strict=True):
        for query, row in zip(group.queries, own, strict=True):
            best, best_cosine = -1, -2.0
            for number, candidate in enumerate(group.candidates):
                assert len(candidate.tags) == len(query.tags)
                a, b = vectors[query.text], vectors[candidate.text]
                cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
                if cosine > best_cosine + 1e-6:
                    best, best_cosine = number, cosine
            assert row == best


def test_rows_lie_between_chance_and_the_upper_bound(trees: list[str], treebank: Write) -> None:
    """An encoder of word order is better than chance; nothing is better than the best choice."""
    pairing = pair_up(read_treebank([treebank("a.mrg", trees)]))
    encoders = {"noise": noise(1), "noise2": noise(2), "shape": ExternalEncoder("shape", shape, fingerprint="")}
    table = measured(encoders, pairing, resamples=200)
    assert list(table.systems) == [RANDOM, "noise", "noise2", "shape", UPPER_BOUND]
    for measure, cells in table.scores.items():
        sign = -1 if measure.score == EDITS else 1
        values = [sign * cell.value for cell in cells]
        assert max(values) == values[-1]
        assert cells[-1].mark == ""
        assert [cell.mark for cell in cells[:-1]] == ["", "", "", "best"]
        assert values[3] > max(values[:3])
        assert all(cell.low < cell.value < cell.high for cell in cells)
    noises = [gap for gap in table.differences if {gap.first, gap.second} == {"noise", "noise2"}]
    assert len(noises) == 3
    assert all(gap.p_holm > 0.05 for gap in noises)
    sizes = {"queries": len(pairing.queries), "candidates": len(pairing.candidates)}
    assert table.counts == {**sizes, **pairing.left_out}
    assert table.table().columns == ["system", "labelled F1", EDITS, TAGS]


@pytest.mark.slow
def test_an_interval_is_that_of_a_mean(treebank: Write, trees: list[str]) -> None:
    """Of queries of one length, POS accuracy is a mean, whose standard error is known."""
    pairing = pair_up(read_treebank([treebank("a.mrg", trees)]), lengths=(8, 8))
    table = measured({"noise": noise(3)}, pairing, resamples=4_000)
    (group,) = pairing.groups
    (rows,) = neighbours(System("n", noise(3)), pairing, "en")
    shares = np.array(
        [
            np.mean([one == two for one, two in zip(query.tags, group.candidates[row].tags, strict=True)])
            for query, row in zip(group.queries, rows, strict=True)
        ]
    )
    cell = table.scores[TAGS, len(pairing.queries)][1]
    half = 1.96 * 100 * shares.std() / np.sqrt(len(shares))
    assert cell.value == pytest.approx(100 * shares.mean())
    assert [cell.low, cell.high] == pytest.approx([cell.value - half, cell.value + half], abs=0.15 * half)


def sentence(words: str) -> str:
    return f"(S {' '.join(f'(NN {word})' for word in words.split())})"


def test_what_is_left_out_is_counted(treebank: Write) -> None:
    queries = read_treebank([treebank("q.mrg", [*map(sentence, ["a b", "A b", "c d", "e f g", "h i j k", "l"])])])
    offered = read_treebank([treebank("c.mrg", [*map(sentence, ["c d", "m n", "o p", "q r s", "t u v w x"])])])
    pairing = pair_up(queries, offered, lengths=(2, 4))
    assert [each.text for each in pairing.queries] == ["a b", "c d", "e f g"]
    assert [each.text for each in pairing.candidates] == ["m n", "o p", "q r s"]
    assert pairing.left_out == {
        "of another length": 2,
        "copies": 2,
        "queries without a candidate of their length": 1,
    }
    assert len(pair_up(queries, offered, lengths=(2, 4), limit=2).queries) == 2


def test_one_file_is_split_by_the_seed(trees: list[str], treebank: Write) -> None:
    bank = read_treebank([treebank("a.mrg", trees)])
    first, again, other = (pair_up(bank, lengths=(3, 12), seed=seed) for seed in (0, 0, 1))
    texts = [[each.text for each in one.queries] for one in (first, again, other)]
    assert texts[0] == texts[1] != texts[2]
    assert not set(texts[0]) & {each.text for each in first.candidates}


def refuse(treebank: Write, trees: Sequence[str] = ("(S (NN a))",), **settings: object) -> None:
    pair_up(read_treebank([treebank("a.mrg", list(trees))]), **settings)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda write: refuse(write, []), "0 of 0 sentences are queries"),
        (lambda write: refuse(write), "0 of 1 sentences are queries with a candidate of their length"),
        (lambda write: refuse(write, ["(S (NN a)"]), r"a.mrg:1: a bracket that is never closed"),
        (lambda write: refuse(write, lengths=(5, 4)), "lengths 5-4: expected from 1 to 200"),
        (lambda write: refuse(write, limit=1), "limit 1 must be at least 2"),
        (lambda write: Syntax(lengths="29").load([], seed=0), "lengths 29: expected the minimum and maximum"),
        (lambda write: read_treebank([]), "expected one or more"),
        (lambda write: read_treebank([Path("a.conllu.xz"), Path("b.mrg")]), "a.conllu.xz is CoNLL-U and b.mrg is not"),
        (lambda write: read_treebank([Path("absent.mrg")]), "absent.mrg"),
    ],
)
def test_bad_input_is_named(treebank: Write, call: Callable[[Write], None], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        call(treebank)


def test_the_counts_of_neighbours_alone_are_those_of_the_table(trees: list[str], treebank: Write) -> None:
    pairing = pair_up(read_treebank([treebank("a.mrg", trees)]))
    encoder = ExternalEncoder("shape", shape, fingerprint="")
    table = measured({"shape": encoder}, pairing, resamples=100)
    counts = neighbour_counts(System("shape", encoder), pairing, "en")
    assert list(counts) == [key.score for key in table.scores]
    for measure, (part, whole) in counts.items():
        assert part.shape == whole.shape == (len(pairing.queries),)
        assert 100 * part.sum() / whole.sum() == pytest.approx(table.value((measure,), "shape"))


def test_files_are_read_and_queries_drawn_by_the_seed(trees: list[str], treebank: Write) -> None:
    half, other = treebank("a.mrg", trees[:200]), treebank("b.mrg", trees[200:])
    drawn = Syntax(lengths="3-12", limit=9).load([half, other], seed=4)
    expected = pair_up(read_treebank([half, other]), lengths=(3, 12), limit=9, seed=4)
    assert [each.text for each in drawn.queries] == [each.text for each in expected.queries]
    given = Syntax(candidates=[other]).load([half], seed=0)
    assert {each.text for each in given.queries} <= {each.text for each in read_treebank([half]).sentences}
