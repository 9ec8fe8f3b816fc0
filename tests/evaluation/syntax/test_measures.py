"""Each measure against a second implementation, and values worked by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import nltk
import numpy as np
import pytest

from bgt_core.evaluation.syntax.edit_distance import distances
from bgt_core.evaluation.syntax.measures import EDITS, TAGS, Counts, best_choice, chosen, counts, expected, total
from bgt_core.evaluation.syntax.pairing import CONSTITUENTS, DEPENDENCIES, Group, read_treebank

Write = Callable[..., Path]
CAT = "(S (NP-SBJ (DT The) (NN cat)) (VP (VBZ sleeps)) (. .))"
DOG = "(ROOT (S (NP (PRP He)) (VP (VBZ is) (NP (NN dog))) (. .)))"


FERRY = [
    "(ROOT (S (NP (PRP She)) (VP (VBD waited)) (. .)))",
    "(ROOT (S (NP (DT The) (JJ old) (NN ferry)) (VP (VBD left) (PP (IN without) (NP (PRP us)))) (. .)))",
    "(ROOT (SQ (VBD Did) (NP (DT the) (NN ferry)) (VP (VB leave) (PP (IN before) (NP (NN noon)))) (. ?)))",
    "(ROOT (S (SBAR (IN If) (S (NP (PRP it)) (VP (VBZ rains)))) (, ,) (NP (PRP I)) (VP (MD will) (VP (VB go))) (. .)))",
    "(ROOT (S (NP (PRP We)) (VP (MD will) (VP (VB stay) (SBAR (IN if) (S (NP (PRP it)) (VP (VBZ rains)))))) (. .)))",
    "(ROOT (FRAG (NP (NP (NN Bread)) (CC and) (NP (NN butter))) (. .)))",
]


def nltk_brackets(text: str) -> Counter[tuple[str, int, int]]:
    """Labels and spans by nltk's reader and tree positions, without parts of speech."""
    tree = nltk.Tree.fromstring(text)
    leaves = tree.treepositions("leaves")
    brackets: Counter[tuple[str, int, int]] = Counter()
    for position in tree.treepositions():
        node = tree[position]
        if isinstance(node, nltk.Tree) and node.height() > 2:
            below = [number for number, leaf in enumerate(leaves) if leaf[: len(position)] == position]
            brackets[node.label(), below[0], below[-1] + 1] += 1
    return brackets


def textbook_distance(left: nltk.Tree, right: nltk.Tree) -> int:
    """The recurrence on forests, remembered, without keyroots."""

    def plain(tree: nltk.Tree) -> tuple:
        return tree.label(), tuple(plain(child) for child in tree if isinstance(child, nltk.Tree))

    def size(forest: tuple) -> int:
        return sum(1 + size(children) for _, children in forest)

    @cache
    def edits(one: tuple, two: tuple) -> int:
        if not one or not two:
            return size(one) + size(two)
        (label, children), (other, others) = one[-1], two[-1]
        return min(
            edits(one[:-1] + children, two) + 1,
            edits(one, two[:-1] + others) + 1,
            edits(one[:-1], two[:-1]) + edits(children, others) + (label != other),
        )

    return edits((plain(left),), (plain(right),))


def test_labelled_f1_is_that_of_a_second_implementation(trees: list[str], treebank: Write) -> None:
    """500 trees, each beside the next; some with two equal brackets, as (NP (NP ...))."""
    sentences = read_treebank([treebank("a.mrg", trees)]).sentences
    brackets = [nltk_brackets(tree) for tree in trees]
    assert any(max(each.values()) > 1 for each in brackets)
    for one, two, left, right in zip(sentences, sentences[1:], brackets, brackets[1:], strict=False):
        assert Counter(one.structure) == left
        group = Group([one], [two])
        same_length = len(one.tags) == len(two.tags)
        if same_length:
            part, whole = counts(group, CONSTITUENTS)["labelled F1"]
            assert part.item() == 2 * (left & right).total()
            assert whole.item() == left.total() + right.total()


def test_labelled_f1_of_every_pair_of_one_length(trees: list[str], treebank: Write) -> None:
    ten = [tree for tree in trees if len(nltk.Tree.fromstring(tree).leaves()) == 8]
    half = len(ten) // 2
    sentences = read_treebank([treebank("a.mrg", ten)]).sentences
    part, whole = counts(Group(sentences[:half], sentences[half:]), CONSTITUENTS)["labelled F1"]
    brackets = [nltk_brackets(tree) for tree in ten]
    shared = [[2 * (left & right).total() for right in brackets[half:]] for left in brackets[:half]]
    assert half > 5
    assert np.array_equal(part, shared)
    assert np.array_equal(
        whole, [[left.total() + right.total() for right in brackets[half:]] for left in brackets[:half]]
    )


def test_edits_are_those_of_the_textbook(trees: list[str], treebank: Write) -> None:
    """Words are no nodes; trees of different lengths too."""
    short = [tree for tree in trees if len(tree) < 160][:16]
    sentences = read_treebank([treebank("a.mrg", short)]).sentences
    ordered = [sentence.tree for sentence in sentences]
    expected_edits = [
        [textbook_distance(*map(nltk.Tree.fromstring, pair)) for pair in product([a], short)] for a in short
    ]
    edits = distances(ordered, ordered)
    assert np.array_equal(edits, expected_edits)
    assert np.ptp(edits) > 5


def test_edits_are_those_of_two_libraries(treebank: Write) -> None:
    """The numbers of apted 1.0.3 and zss 1.2.0, which agree."""
    ordered = [sentence.tree for sentence in read_treebank([treebank("a.mrg", FERRY)]).sentences]
    assert distances(ordered, ordered).tolist() == [
        [0, 7, 9, 11, 10, 6],
        [7, 0, 5, 15, 10, 9],
        [9, 5, 0, 16, 11, 8],
        [11, 15, 16, 0, 13, 14],
        [10, 10, 11, 13, 0, 13],
        [6, 9, 8, 14, 13, 0],
    ]


def test_all_three_by_hand(treebank: Write) -> None:
    """CAT has brackets ROOT 0-4, S 0-4, NP 0-2, VP 2-3; DOG has ROOT 0-4, S 0-4, NP 0-1, VP 1-3, NP 2-3.

    Nodes are 8 and 9. The inner NP and its NN are inserted, DT is deleted, NN becomes PRP.
    """
    cat, dog = read_treebank([treebank("a.mrg", [CAT, DOG])]).sentences
    assert (cat.text, cat.tags) == ("The cat sleeps.", ["DT", "NN", "VBZ", "."])
    counted = {
        name: (part.item(), whole.item()) for name, (part, whole) in counts(Group([cat], [dog]), CONSTITUENTS).items()
    }
    assert counted == {"labelled F1": (4, 9), EDITS: (4, 17), TAGS: (1, 4)}


CONLLU = """1\tShe\t_\tPRON\t_\t_\t2\tnsubj{subtype}\t_\t_
2\tsees\t_\tVERB\t_\t_\t0\troot\t_\t_
3\told\t_\tADJ\t_\t_\t4\tamod\t_\t_
4\tcats\t_\t{tag}\t_\t_\t2\tobj\t_\t_
"""


def test_dependencies_by_hand(treebank: Write) -> None:
    """The third word has another head and relation: it moves up beside the fourth, and is called another name."""
    other = CONLLU.format(subtype=":pass", tag="PROPN").replace("\t4\tamod", "\t2\tadvmod")
    bank = read_treebank([treebank("a.conllu", [CONLLU.format(subtype="", tag="NOUN"), other])])
    assert bank.kind == DEPENDENCIES
    one, two = bank.sentences
    counted = {
        name: (part.item(), whole.item()) for name, (part, whole) in counts(Group([one], [two]), DEPENDENCIES).items()
    }
    assert counted == {"labelled attachment": (6, 8), EDITS: (2, 8), TAGS: (3, 4)}
    assert list(one.tree.labels) == ["nsubj", "amod", "obj", "root"]


@pytest.mark.parametrize("lowest", [False, True])
def test_the_best_choice_is_the_best_of_all_choices(lowest: bool) -> None:
    """Every choice tried; the best candidate of each query alone is often not the best of all together."""
    rng = np.random.default_rng(0)
    alone_is_worse = 0
    for _ in range(50):
        wholes = [rng.integers(1, 20, shape).astype(np.float32) for shape in ((2, 3), (2, 4))]
        parts = [Counts(np.floor(rng.random(whole.shape) * whole), whole) for whole in wholes]
        shares = [
            total(parts, [np.array(choice[:2]), np.array(choice[2:])])
            for choice in product(range(3), range(3), range(4), range(4))
        ]
        best = min(shares) if lowest else max(shares)
        assert total(parts, best_choice(parts, lowest=lowest)) == pytest.approx(best, rel=1e-12)
        sign = -1 if lowest else 1
        alone_is_worse += total(parts, [(sign * part / whole).argmax(1) for part, whole in parts]) != best
    assert alone_is_worse > 0


def test_a_random_candidate_is_the_mean_of_all() -> None:
    parts = [Counts(np.array([[1.0, 2.0], [0.0, 5.0]]), np.full((2, 2), 6.0)), Counts(np.eye(1), np.full((1, 1), 4.0))]
    part, whole = expected(parts)
    assert (part.tolist(), whole.tolist()) == ([1.5, 2.5, 1.0], [6, 6, 4])
    assert chosen(parts, [np.array([1, 0]), np.array([0])]).part.tolist() == [2, 0, 1]
