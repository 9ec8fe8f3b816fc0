"""The syntactic evaluation finds the right neighbours; its measures equal those of nltk, of a textbook and by hand."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import pytest

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError, NotFound, UsageError
from bgt_core.evaluation.edit_distance import distances
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks import syntax
from bgt_core.evaluation.tasks.syntax import CONSTITUENTS, Pairing, ParsedSentence, Syntax, pair_up, shared

Write = Callable[..., Path]


CAT = "(S (NP-SBJ (DT The) (NN cat)) (VP (VBZ sleeps)) (. .))"
DOG = "(ROOT (S (NP (PRP He)) (VP (VBZ is) (NP (NN dog))) (. .)))"


def nltk_brackets(text: str) -> Counter[tuple[str, int, int]]:
    """Count the labelled spans of a tree with nltk, without parts of speech."""
    tree = nltk.Tree.fromstring(text)
    for number, position in enumerate(tree.treepositions("leaves")):
        tree[position] = number
    nodes = tree.subtrees(lambda node: node.height() > 2)
    return Counter((node.label(), node.leaves()[0], node.leaves()[-1] + 1) for node in nodes)


def textbook_distance(left: nltk.Tree, right: nltk.Tree) -> int:
    """Compute the tree edit distance by a plain recursion over forests, as textbooks do."""

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


def test_shared_brackets_are_those_of_nltk(trees: list[str], treebank: Write) -> None:
    """All pairs of 60 trees are compared. In some trees, two nodes have one label and span, as in (NP (NP ...))."""
    sentences = syntax.read_treebank([treebank("a.mrg", trees[:60])])
    brackets = [nltk_brackets(tree) for tree in trees[:60]]
    assert [Counter(each.structure) for each in sentences] == brackets
    assert any(max(each.values()) > 1 for each in brackets)
    common = shared(sentences, sentences)
    for (row, left), (column, right) in product(enumerate(brackets), repeat=2):
        assert common[row, column] == (left & right).total()


def test_edits_are_those_of_the_textbook(trees: list[str], treebank: Write) -> None:
    """The trees have different sizes, and words do not count as nodes."""
    short = [tree for tree in trees if len(tree) < 160][:16]
    ordered = [(each.labels, each.first) for each in syntax.read_treebank([treebank("a.mrg", short)])]
    expected = [[textbook_distance(*map(nltk.Tree.fromstring, pair)) for pair in product([a], short)] for a in short]
    edits = distances(ordered, ordered)
    assert np.array_equal(edits, expected)
    assert np.ptp(edits) > 5


def test_the_three_measures_by_hand(treebank: Write) -> None:
    """Labelled spans of the tree CAT: ROOT 0-4, S 0-4, NP 0-2, VP 2-3; of DOG: ROOT 0-4, S 0-4, NP 0-1, VP 1-3, NP 2-3.

    The trees have 8 and 9 nodes. Four edits turn CAT into DOG: insert the inner NP and the NN in it, delete DT, and
    relabel NN as PRP.
    """
    cat, dog = syntax.read_treebank([treebank("a.mrg", [CAT, DOG])])
    assert (cat.text, cat.tags) == ("The cat sleeps.", ["DT", "NN", "VBZ", "."])
    counted = {name: (part.item(), whole.item()) for name, (part, whole) in syntax.counts([cat], [dog]).items()}
    assert counted == {"labelled F1": (4, 9), syntax.EDITS: (4, 17), syntax.TAGS: (1, 4)}


CONLLU = """1\tShe\t_\tPRON\t_\t_\t2\tnsubj{subtype}\t_\t_
2\tsees\t_\tVERB\t_\t_\t0\troot\t_\t_
3\told\t_\tADJ\t_\t_\t4\tamod\t_\t_
4\tcats\t_\t{tag}\t_\t_\t2\tobj\t_\t_
"""


def test_dependencies_by_hand(treebank: Write) -> None:
    """In the second tree, word 3 has another head and relation: one edit moves the word, and another relabels it."""
    other = CONLLU.format(subtype=":pass", tag="PROPN").replace("\t4\tamod", "\t2\tadvmod")
    one, two = syntax.read_treebank([treebank("a.conllu", [CONLLU.format(subtype="", tag="NOUN"), other])])
    counted = {name: (part.item(), whole.item()) for name, (part, whole) in syntax.counts([one], [two]).items()}
    assert counted == {"labelled attachment": (6, 8), syntax.EDITS: (2, 8), syntax.TAGS: (3, 4)}
    assert list(one.labels) == ["nsubj", "amod", "obj", "root"]


@pytest.mark.parametrize("lowest", [False, True])
def test_the_best_choice_is_the_best_of_all_choices(lowest: bool) -> None:
    """Neighbours are chosen so that the total over all queries is best; choosing for each query alone can be worse."""
    rng = np.random.default_rng(0)
    alone_is_worse = 0
    for _ in range(50):
        wholes = [rng.integers(1, 20, shape).astype(np.float32) for shape in ((2, 3), (2, 4))]
        parts = [(np.floor(rng.random(whole.shape) * whole), whole) for whole in wholes]
        shares = [
            syntax.total(parts, [np.array(choice[:2]), np.array(choice[2:])])
            for choice in product(range(3), range(3), range(4), range(4))
        ]
        best = min(shares) if lowest else max(shares)
        assert syntax.total(parts, syntax.best_choice(parts, lowest=lowest)) == pytest.approx(best, rel=1e-12)
        sign = -1 if lowest else 1
        alone_is_worse += syntax.total(parts, [(sign * part / whole).argmax(1) for part, whole in parts]) != best
    assert alone_is_worse > 0


pytest.importorskip("numba")


def sentence_of(
    text: str, tags: str = "", structure: Sequence[Any] = (("S", 0, 1),), labels: str = "S", kind: str = CONSTITUENTS
) -> ParsedSentence:
    """Make a parsed sentence whose nodes below the root are leaves."""
    first = [*range(len(labels) - 1), 0]
    return ParsedSentence(text, tags or ["X"] * len(text.split()), structure, [*labels[1:], labels[0]], first, kind)


def bank(*texts: str, kind: str = CONSTITUENTS) -> list[ParsedSentence]:
    return [sentence_of(text, kind=kind) for text in texts]


def queries_of(pairing: Pairing) -> list[ParsedSentence]:
    return [query for queries, _ in pairing.groups for query in queries]


def test_lengths_include_both_ends_and_are_1_to_29_by_default() -> None:
    rows = [" ".join(["w"] * n + [str(copy)]) for n in (0, 1, 2, 28, 29) for copy in range(2)]
    queries, offered = bank(*rows), bank(*(row + "x" for row in rows))
    assert [len(each.tags) for each in queries_of(pair_up(queries, offered))] == [1, 1, 2, 2, 3, 3, 29, 29]
    made = pair_up(queries, offered, lengths=(2, 3))
    assert [len(each.tags) for each in queries_of(made)] == [2, 2, 3, 3]
    assert made.left_out == {"of another length": 12, "copies": 0, "queries without a candidate of their length": 0}
    assert len(queries_of(pair_up(queries, offered, lengths=(1, 200)))) == 10


embedded: list[tuple[str, str]] = []


def spelling(texts: list[str], lang: str, latent: str) -> np.ndarray:
    """Embed a text as its counts of letters."""
    embedded.append((lang, latent))
    return np.array([[text.count(letter) for letter in "abcdef"] for text in texts], dtype=np.float32)


QUERIES = [("a b", "D N"), ("c c", "D V"), ("a c", "N N"), ("a b c", "D N V")]
OFFERED = [("a a b", "V V V"), ("c d", "D V"), ("b b", "D N"), ("c c d", "D N N"), ("a d", "N D")]


def bank_of(rows: Sequence[tuple[str, str]]) -> list[ParsedSentence]:
    return [sentence_of(text, tags.split(), [("S", 0, len(text))], "S" + tags.replace(" ", "")) for text, tags in rows]


def test_the_nearest_of_its_length_is_compared_with_each_query() -> None:
    pairing, encoder = pair_up(bank_of(QUERIES), bank_of(OFFERED)), ExternalEncoder("x", spelling)
    two, three = syntax.neighbours(System("x", encoder), pairing, "fr")
    # nearest: "a b" -> "b b" (a tie with "a d"), "c c" -> "c d", "a c" -> "c d" (a tie), "a b c" -> "a a b"
    assert (two.tolist(), three.tolist()) == ([1, 0, 0], [0])
    assert embedded == [("fr", "semantic")]
    table = evaluate(Syntax(lang="fr", latent="semantic"), {"x": encoder}, pairing, resamples=150, seed=5)
    assert table.systems == [syntax.RANDOM, "x", syntax.UPPER_BOUND]
    agree = np.array([[1, 2, 0], [2, 1, 0], [0, 1, 1]])  # tags that each query shares with "c d", "b b" and "a d"
    by_chance = agree.mean(1).sum() + (1 + 2) / 2
    values = [cell.value for cell in table.scores[syntax.TAGS, 4]]
    assert values == pytest.approx([100 * by_chance / 9, 100 * 5 / 9, 100 * 7 / 9])
    random, _, best = (cell.value for cell in table.scores[syntax.EDITS, 4])
    assert best < random
    assert {(gap.first, gap.second) for gap in table.differences} == {(syntax.RANDOM, "x")}
    with pytest.raises(UsageError, match=f"Two systems are named '{syntax.RANDOM}'"):
        evaluate(Syntax(), {syntax.RANDOM: encoder}, pairing)


def test_without_numba_the_error_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.errors.find_spec", lambda name: None)
    with pytest.raises(NotFound, match=r"numba.*\[syntax\]"):
        syntax.counts(bank("a b"), bank("c d"))


def shape(texts: list[str], lang: str, latent: str) -> np.ndarray:
    """Embed a sentence by the kind of the word at each position. A word's kind is its first letter: nn3 has kind n."""
    vectors = np.zeros((len(texts), 40, 6), dtype=np.float32)
    for row, text in enumerate(texts):
        for place, word in enumerate(text.lower().split()):
            vectors[row, place, "dnvic".find(word[0])] = 1
    return vectors.reshape(len(texts), -1)


def test_rows_lie_between_chance_and_the_upper_bound(trees: list[str], treebank: Write) -> None:
    """An encoder that knows the kind of each word scores above chance and below the upper bound."""
    pairing = pair_up(syntax.read_treebank([treebank("a.mrg", trees)]))
    table = evaluate(Syntax(), {"shape": ExternalEncoder("shape", shape)}, pairing, resamples=200)
    for measure, cells in table.scores.items():
        sign = -1 if measure.score == syntax.EDITS else 1
        chance, shaped, best = (sign * cell.value for cell in cells)
        assert chance < shaped < best
        assert [cell.mark for cell in cells] == ["", "best", ""]
    assert table.table().columns == ["system", "labelled F1", syntax.EDITS, syntax.TAGS]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: pair_up(bank("a b", "c d"), limit=1), "limit 1 must be at least 2"),
    (lambda: pair_up(bank("a"), bank("b", kind=syntax.DEPENDENCIES)),
     "Queries have constituents, but candidates have dep"),
    (lambda: pair_up(bank("a b", "a b c", "A b"), bank("d e", "f")),
     r"^1 of 5 sentences are queries with a candidate of their length \(1 to 29 words\); expected 2 or more\. "
     "0 of another length; 1 copies; 1 queries without a candidate of their length$"),
    (lambda: syntax.read_treebank([]), "is missing; give one or more"),
    (lambda: syntax.read_treebank([Path("a.conllu.xz"), Path("b.mrg")]), "a.conllu.xz is CoNLL-U and b.mrg is not"),
])  # fmt: skip
def test_unusable_sentences_and_files_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        call()


def test_files_are_read_and_queries_drawn_by_the_seed(trees: list[str], treebank: Write) -> None:
    half, other = treebank("a.mrg", trees[:120]), treebank("b.mrg", trees[120:])
    drawn = Syntax(lengths="3-12", limit=9).load([half, other], seed=4)
    expected = pair_up(syntax.read_treebank([half, other]), lengths=(3, 12), limit=9, seed=4)
    assert drawn.groups == expected.groups
    given = Syntax(candidates=[other]).load([half], seed=0)
    assert {each.text for each in queries_of(given)} <= {each.text for each in syntax.read_treebank([half])}
