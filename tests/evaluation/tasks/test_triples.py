"""Triples (sentence, paraphrase, altered sentence) are read from files; encoders get the scores computed by hand."""

import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import DataError
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.triples import ALL, Triples, TriplesTask, read_triples
from bgt_core.grammar import triples

WORDS = "the dog bit man was by cat saw not did see a".split()
ROWS = [
    ("roles", "the dog bit the man", "the man was bit by the dog", "the man bit the dog"),
    ("roles", "the cat saw the dog", "the dog was saw by the cat", "the dog saw the cat"),
    ("negation", "the cat did not see", "did the cat not see", "the cat did see"),
]
BITTEN = {row[2]: row[1] for row in ROWS}


def encoder(vector: Callable[[str], Sequence[float]]) -> ExternalEncoder:
    return ExternalEncoder("x", lambda texts, lang, latent: np.array([vector(text) for text in texts], np.float32))


def order(text: str) -> list[float]:
    """Embed a sentence by the word at each position. A paraphrase gets the vector of its original."""
    words = BITTEN.get(text, text).split()
    return [float(words[place : place + 1] == [word]) for place in range(9) for word in WORDS]


def test_shares_of_encoders_whose_answers_are_known() -> None:
    kinds, *columns = (list(column) for column in zip(*ROWS * 20, strict=True))
    encoders = {
        "words": encoder(lambda text: [text.split().count(word) for word in WORDS]),
        "order": encoder(order),
        "constant": encoder(lambda text: [1, 1]),
    }
    result = evaluate(TriplesTask(), encoders, Triples("made", kinds, *columns), resamples=200)
    cells = {key: [cell.value for cell in row] for key, row in result.scores.items()}
    assert list(cells) == [("roles", 40), ("negation", 20), (ALL, 60)]
    assert cells["roles", 40] == [0, 100, 50]  # the swapped sentence has the same words; a tie counts half
    assert cells["negation", 20] == [100, 100, 50]
    assert cells[ALL, 60] == pytest.approx([100 / 3, 100, 50])
    marks = {key: [cell.mark for cell in row] for key, row in result.scores.items()}
    assert (marks["roles", 40], marks["negation", 20]) == (["", "best", ""], ["tied", "tied", ""])
    (gap,) = (
        gap for gap in result.differences if gap.key.kind == ALL and {gap.first, gap.second} == {"words", "order"}
    )
    assert gap.difference.value == pytest.approx(-200 / 3)
    assert gap.p == pytest.approx(2 * 0.5**40)  # "order" is right in all 40 triples of roles, and "words" wrong
    assert result.about.startswith("made: 60 triples; ")


def test_rows_without_a_paraphrase_are_skipped_and_kinds_are_optional(tmp_path: Path) -> None:
    path = tmp_path / "triples.tsv.xz"
    rows = [*ROWS, ("roles", "the man saw a dog", "", "a dog saw the man")]
    path.write_bytes(lzma.compress("".join("\t".join(row) + "\n" for row in rows).encode()))
    items = TriplesTask().load([path], seed=0)
    assert [*zip(items.kinds, items.sentences, items.paraphrases, items.altered, strict=True)] == ROWS
    three = tmp_path / "three.tsv"
    three.write_text("a\tb\tc\nd\te\tf\n", "utf-8")
    assert read_triples(three) == Triples("three.tsv", ["", ""], ["a", "d"], ["b", "e"], ["c", "f"])


@pytest.mark.parametrize(("text", "message"), [
    ("a\tb\n", "file.tsv:1: 2 columns, expected 3: sentence, paraphrase, altered sentence"),
    ("k\ta\tb\tc\na\tb\tc\n", "file.tsv:2: 3 columns, expected 4"), ("a\tb\tc\nk\ta\tb\tc\n", "file.tsv:2: 4 columns"),
    ("k\t\tb\tc\n", "file.tsv:1: an empty sentence"), ("k\ta\t\tc\n", "no triples"),
])  # fmt: skip
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "file.tsv"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=message):
        read_triples(path)


def test_without_a_file_triples_are_drawn_from_the_grammar() -> None:
    items = TriplesTask(count=10, lang="fr").load([], seed=3)
    drawn = [each.texts["fr"] for each in triples(10, seed=3, held_out=True)]
    assert list(zip(items.sentences, items.paraphrases, items.altered, strict=True)) == drawn
