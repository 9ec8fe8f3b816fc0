"""Triples: files, encoders that count words or see their order, and ties."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks import triples as module
from bgt_core.evaluation.tasks.triples import ALL, Triples, TriplesTask, read_triples
from bgt_core.grammar import triples
from bgt_core.vectors.compare import ComparesByCosine

WORDS = "the dog bit man was by cat saw not did see a".split()
ROWS = [
    ("roles", "the dog bit the man", "the man was bit by the dog", "the man bit the dog"),
    ("roles", "the cat saw the dog", "the dog was saw by the cat", "the dog saw the cat"),
    ("negation", "the cat did not see", "did the cat not see", "the cat did see"),
]
BITTEN = {row[2]: row[1] for row in ROWS}


class Counter(ComparesByCosine):
    """A bag of words."""

    langs: Sequence[str] = ("en",)
    latents: Sequence[str] = (SEMANTIC,)
    fingerprint = ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        return np.array([[sentence.split().count(word) for word in WORDS] for sentence in sentences], dtype=np.float32)


class Reader(Counter):
    """One that knows each paraphrase; all else are words at their positions."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        vectors = np.zeros((len(sentences), 9, len(WORDS)), dtype=np.float32)
        for row, sentence in enumerate(sentences):
            for position, word in enumerate(BITTEN.get(sentence, sentence).split()):
                vectors[row, position, WORDS.index(word)] = 1
        return vectors.reshape(len(sentences), -1)


class Constant(Counter):
    """Every sentence is the same to it."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        return np.ones((len(sentences), 2), dtype=np.float32)


@pytest.fixture
def items() -> Triples:
    kinds, *columns = (list(column) for column in zip(*ROWS * 20, strict=True))
    return Triples("made", kinds, *columns)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "triples.tsv.xz"
    rows = [*ROWS, ("roles", "the man saw a dog", "", "a dog saw the man")]
    path.write_bytes(lzma.compress("".join("\t".join(row) + "\n" for row in rows).encode()))
    return path


def measured(encoders: dict[str, Any], items: Triples, **how: Any) -> Result:
    return evaluate(TriplesTask(**how), encoders, items, resamples=200)


def test_shares_of_encoders_whose_answers_are_known(items: Triples) -> None:
    result = measured({"words": Counter(), "order": Reader(), "constant": Constant()}, items)
    cells = {key: [cell.value for cell in row] for key, row in result.scores.items()}
    assert list(cells) == [("roles", 40), ("negation", 20), (ALL, 60)]
    assert cells["roles", 40] == [0, 100, 50]  # the swapped sentence has the same words; ties count half
    assert cells["negation", 20] == [100, 100, 50]
    assert cells[ALL, 60] == pytest.approx([100 / 3, 100, 50])
    marks = {key: [cell.mark for cell in row] for key, row in result.scores.items()}
    assert (marks["roles", 40], marks["negation", 20]) == (["", "best", ""], ["tied", "tied", ""])
    (gap,) = (
        gap for gap in result.differences if gap.key.kind == ALL and {gap.first, gap.second} == {"words", "order"}
    )
    assert gap.difference.value == pytest.approx(-200 / 3)
    assert gap.p == pytest.approx(2 * 0.5**40)  # all 40 triples of roles differ, in one direction
    assert result.about.startswith("made: 60 triples; ")
    assert result.counts == {"triples": 60, "skipped": 0}


def test_many_triples_are_embedded_in_parts(items: Triples, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measured({"x": Reader()}, items).scores
    monkeypatch.setattr(module, "BLOCK", 7)
    assert measured({"x": Reader()}, items).scores == whole


def test_a_file_without_paraphrases_in_some_rows(file: Path) -> None:
    items = read_triples(file)
    assert (len(items), items.skipped, items.kinds) == (3, 1, ["roles", "roles", "negation"])
    assert (items.sentences[2], items.paraphrases[2], items.altered[2]) == ROWS[2][1:]
    only = read_triples(file, ["negation"])
    assert (len(only), only.skipped) == (1, 0)
    assert (len(read_triples(file, ["roles"])), read_triples(file, ["roles"]).skipped) == (2, 1)


def test_kinds_are_optional(tmp_path: Path) -> None:
    path = tmp_path / "three.tsv"
    path.write_text("a\tb\tc\nd\te\tf\n", "utf-8")
    assert read_triples(path) == Triples("three.tsv", ["", ""], ["a", "d"], ["b", "e"], ["c", "f"])


@pytest.mark.parametrize(
    ("text", "kinds", "error", "message"),
    [
        ("a\tb\n", [], DataError, "file.tsv:1: 2 columns"),
        ("k\ta\tb\tc\na\tb\tc\n", [], DataError, "file.tsv:2: 3 columns"),
        ("k\t\tb\tc\n", [], DataError, "file.tsv:1: an empty sentence"),
        ("k\ta\t\tc\n", [], DataError, "no triples"),
        ("swap\ta\tb\tc\n", ["swip"], UsageError, "'swip'; its kinds: swap. Did you mean 'swap'?"),
    ],
)
def test_files_that_are_refused(
    tmp_path: Path, text: str, kinds: list[str], error: type[Exception], message: str
) -> None:
    path = tmp_path / "file.tsv"
    path.write_text(text, "utf-8")
    with pytest.raises(error, match=message.replace("?", r"\?")):
        read_triples(path, kinds)


@pytest.mark.parametrize(
    ("paths", "settings", "message"),
    [
        (["a.tsv"], {"count": 9}, "count is for the grammar's triples"),
        ([], {"kinds": "roles"}, "kinds chooses rows of a file"),
        (["a.tsv", "b.tsv"], {}, "data takes one file"),
        ([], {"lang": "de"}, "lang de"),
    ],
)
def test_a_file_or_the_grammar(paths: list[str], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TriplesTask(**settings).load([Path(path) for path in paths], seed=0)


def test_what_is_loaded_is_the_file_or_so_many_of_the_grammar(file: Path) -> None:
    assert len(TriplesTask(kinds="roles").load([file], seed=0)) == 2
    for settings, seed, count in (({"count": 10, "lang": "fr"}, 3, 10), ({"lang": "fr"}, 0, 1_000)):
        items = TriplesTask(**settings).load([], seed=seed)
        drawn = [each.texts["fr"] for each in triples(count, seed=seed, held_out=True)]
        assert list(zip(items.sentences, items.paraphrases, items.altered, strict=True)) == drawn
