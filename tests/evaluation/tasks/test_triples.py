"""Triples: files, encoders that count words or see their order, ties, intervals, and `bgt triples`."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from bgt_core.evaluation.comparison import PairwiseDifference
from bgt_core.evaluation.triples import ALL, Triples, evaluate, exactly_tested, grammar_triples, read_triples
from scipy.stats import binomtest

from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.grammar.triples import triples
from bgt_core.tables import Estimate
from bgt_core.vectors.compare import ComparesByCosine

Bgt = Callable[..., tuple[int, str, str]]

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


class Broken(Counter):
    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        return np.full((len(sentences), 2), np.nan, dtype=np.float32)


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


def test_shares_of_encoders_whose_answers_are_known(items: Triples) -> None:
    table = evaluate({"words": Counter(), "order": Reader(), "constant": Constant()}, items, resamples=200)
    assert table.counts == {"roles": 40, "negation": 20, ALL: 60}
    values = {kind: [cell.value for cell in row] for kind, row in table.shares.items()}
    assert values["roles"] == [0, 100, 50]  # the swapped sentence has the same words; ties count half
    assert values["negation"] == [100, 100, 50]
    assert values[ALL] == pytest.approx([100 / 3, 100, 50])
    assert [cell.mark for cell in table.shares["roles"]] == ["", "best", ""]
    assert [cell.mark for cell in table.shares["negation"]] == ["tied", "tied", ""]
    low, high = wilson(20, 60)
    assert table.shares[ALL][0][1:3] == pytest.approx((100 * low, 100 * high))
    assert table.nearer["words"].tolist() == [0, 0, 1] * 20


def test_differences_are_paired(items: Triples) -> None:
    table = evaluate({"words": Counter(), "order": Reader()}, items, resamples=200)
    (gap,) = (gap for gap in table.differences if gap.key == ALL)
    assert gap.difference.value == pytest.approx(-200 / 3)
    assert gap.difference.low < -200 / 3 < gap.difference.high < 0
    assert gap.p == pytest.approx(2 * 0.5**40)  # all 40 triples of roles differ, in one direction
    assert gap.p_holm == pytest.approx(3 * gap.p)
    (none,) = (gap for gap in table.differences if gap.key == "negation")
    assert (none.difference.value, none.p) == (0, 1)


class Both(Counter):
    """The order of words by the semantic latent, none by the language latent; notes what it is asked."""

    latents = (SEMANTIC, "language")
    langs = ("en", "fr")

    def __init__(self) -> None:
        self.asked: set[tuple[str, str]] = set()

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "none") -> np.ndarray:
        self.asked.add((lang, latent))
        return (Reader() if latent == SEMANTIC else Counter()).embed(sentences, lang=lang)


def test_each_latent_is_a_system_by_itself(items: Triples) -> None:
    encoder = Both()
    table = evaluate({"both": encoder, "words": Counter()}, items, resamples=150, level=0.9, seed=3)
    assert list(table.systems) == ["both semantic", "both language", "words"]
    assert encoder.asked == {("en", SEMANTIC), ("en", "language")}
    assert [cell.value for cell in table.shares["roles"]] == [100, 0, 0]
    assert (table.level, table.resamples, table.seed) == (0.9, 150, 3)
    low, high = wilson(20, 60, 0.9)
    assert table.shares[ALL][2][1:3] == pytest.approx((100 * low, 100 * high))
    assert table.about.startswith("made: 60 triples\n") and "90% intervals" in table.about
    assert "from 150 resamples" in table.about
    one = Both()
    alone = evaluate(one, items, lang="fr", latent="language")
    assert list(alone.systems) == ["model language"] and one.asked == {("fr", "language")}
    assert (alone.level, alone.resamples, alone.seed) == (0.95, 2_000, 0)
    assert list(evaluate(Counter(), items, resamples=100).systems) == ["model"]
    with pytest.raises(UsageError, match="Two systems are called 'x semantic'; give one another name"):
        evaluate({"x": Both(), "x semantic": Counter()}, items, resamples=100)


def test_a_sign_test_counts_those_that_are_ahead(items: Triples) -> None:
    """Of eight triples in which they differ the first is ahead in six, by a half or by a whole."""
    nearer = {"a": np.array([1.0] * 6 + [0, 0.5] + [1] * 4), "b": np.array([0.0] * 3 + [0.5] * 3 + [1, 1] + [1] * 4)}
    gap = PairwiseDifference(ALL, "a", "b", Estimate(0, 0, 0), 0.5, 0.5)
    other = PairwiseDifference("k", "b", "a", Estimate(0, 0, 0), 0.5, 0.5)
    rows = {ALL: np.arange(12), "k": np.arange(8, 12)}
    first, second = exactly_tested([gap, other], nearer, rows)
    assert first.p == pytest.approx(binomtest(6, 8).pvalue) and first.p_holm == pytest.approx(2 * first.p)
    assert (second.p, second.p_holm) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones(9), r"^m: 9 sentences gave vectors of shape \(9,\); expected a row each\.$"),
        (np.ones((8, 2)), r"^m: 9 sentences gave vectors of shape \(8, 2\)"),
        (
            np.where(np.arange(9) == 6, np.nan, 1)[:, None],
            rf"^m: The vector of '{'see ' * 15}' contains NaN or infinity",
        ),
    ],
)
def test_vectors_that_are_none_are_named(vectors: np.ndarray, message: str) -> None:
    class Given(Counter):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
            assert len(sentences) == 9
            return vectors

    columns = [[f"s{row}" for row in range(3)], [f"p{row}" for row in range(3)], ["see " * 20, "b", "c"]]
    with pytest.raises(DataError, match=message):
        evaluate({"m": Given()}, Triples("made", ["k"] * 3, *columns))


def test_triples_of_one_kind_have_one_row() -> None:
    items = Triples("made", [""] * 2, *([row[column] for row in ROWS[:2]] for column in (1, 2, 3)))
    assert list(evaluate(Counter(), items).shares) == [ALL]


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


def test_an_absent_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="absent"):
        read_triples(tmp_path / "absent.tsv")


def test_the_grammar_gives_its_held_out_part() -> None:
    items = grammar_triples(50, "fr", seed=2)
    assert list(zip(items.sentences, items.paraphrases, items.altered, strict=True)) == [
        each.texts["fr"] for each in triples(50, seed=2, held_out=True)
    ]
    with pytest.raises(UsageError, match="en and fr"):
        grammar_triples(50, "de")


def test_what_an_encoder_lacks_is_said_with_its_name(items: Triples) -> None:
    with pytest.raises(UsageError, match="words: no latent 'manner'; choose from semantic"):
        evaluate({"words": Counter()}, items, latent="manner")
    with pytest.raises(UsageError, match="words: the model has no language 'de'; it has en"):
        evaluate({"words": Counter()}, items, lang="de")
    with pytest.raises(DataError, match="broken: The vector of 'the dog bit the man' contains NaN"):
        evaluate({"broken": Broken()}, items)
    with pytest.raises(UsageError, match="`resamples` 3"):
        evaluate(Counter(), items, resamples=3)


def test_a_table_and_its_differences(bgt: Bgt, saved: Path, file: Path) -> None:
    code, out, err = bgt("triples", file, "--model", f"mine={saved}", "--model", "baseline:words", "--resamples", 100,
                         "--device", "cpu", "--compare")  # fmt: skip
    assert code == 0, err
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["kind", "triples", "mine semantic", "mine language", "baseline:words"]
    assert [row[:2] for row in rows[:3]] == [["roles", "2"], ["negation", "1"], ["all", "3"]]
    assert rows[0][4].startswith("0.0 [0.0, ")
    assert len(rows) == 3 + 2 + 3 * 3  # a blank line, a head, and three kinds of three pairs of systems
    assert "3 triples; 1 rows without a paraphrase skipped" in err


def test_one_document_of_json_about_the_grammar(bgt: Bgt) -> None:
    code, out, err = bgt("triples", "--model", "baseline:words", "--count", 100, "--lang", "fr", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["schema"] == "bgt-triples/1"
    assert [row["kind"] for row in document["shares"]][-1] == ALL
    assert [row["triples"] for row in document["shares"]] == [20] * 5 + [100]
    assert document["shares"][1]["systems"]["baseline:words"]["value"] < 20


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("absent.tsv", 3, "absent.tsv"),
        ("a.tsv --count 9", 2, "--count is for the grammar's triples"),
        ("--kinds roles", 2, "--kinds chooses rows of a file"),
        ("--lang de", 2, "--lang de"),
        ("--resamples 3", 2, "--resamples 3"),
        ("--count 1000000", 2, "0 to 10,000 triples"),
        ("--count 0", 4, "no triples"),
    ],
)
def test_errors_take_a_line(bgt: Bgt, arguments: str, code: int, message: str) -> None:
    got, out, err = bgt("triples", *arguments.split())
    assert (got, out) == (code, ""), err
    assert message in err
