"""Scores that compare a translation with its reference equal scores computed by hand and by sacrebleu."""

import importlib.util
import math
import random
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

from bgt_core.data.scores import Perplexity, ScoreRange, chosen_scores, overlap, pair_scores, sentence_bleu
from bgt_core.errors import DataError, NotFound, UsageError


@pytest.mark.parametrize(
    ("reference", "translation", "shares"),
    [
        ("a b c d", "a b c d", (1, 1, 1)),
        ("a b c d", "b c d a", (1, 2 / 3, 1 / 2)),
        ("a b c d e", "a b x d", (3 / 4, 1 / 3, 0)),  # the translation is shorter, so these are shares of its n-grams
        ("the the cat", "the dog ran off", (2 / 3, 0, 0)),  # if counts were clipped, this would be 1 / 3
        ("a a b", "a c d", (2 / 3, 0, 0)),  # both are equally long, so these are shares of the reference's n-grams
        ("a c d", "a a b", (1 / 3, 0, 0)),
        ("a", "a b", (1, 0, 0)),  # the reference has no bigram, so the share is 0
        ("The cat", "the cat", (1 / 2, 0, 0)),
    ],
)
def test_overlap(reference: str, translation: str, shares: tuple[float, ...]) -> None:
    assert [overlap(reference, translation, n) for n in (1, 2, 3)] == pytest.approx(shares)


def test_bleu_is_sacrebleus() -> None:
    draw = random.Random(1)
    for _ in range(50):
        reference, translation = (" ".join(draw.choices("the, a man sees. dogs run".split(), k=n)) for n in (7, 6))
        theirs = sacrebleu.sentence_bleu(
            translation, [reference], smooth_method="add-k", smooth_value=1, tokenize="none"
        )
        assert sentence_bleu(reference, translation) == pytest.approx(theirs.score / 100)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("bleu=0.1..0.7", [False, True, True, True, False, False]),
        ("bleu=..0.5", [True, True, True, False, False, False]),
        ("bleu=0.7..", [False, False, False, True, True, False]),
        ("bleu=-2..0.1", [True, True, False, False, False, False]),
    ],
)
def test_a_range_holds_both_its_ends(text: str, kept: list[bool]) -> None:
    limits = ScoreRange.parse(text)
    assert limits.holds(np.array([0.0, 0.1, 0.5, 0.7, 0.71, math.nan])).tolist() == kept
    assert str(limits) == text


@pytest.mark.parametrize("text", ["bleu", "bleu=", "bleu=..", "bleu=0.1", "bleu=a..b", "=1..2", "bleu=0.7..0.1"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"keep.*expected"):
        ScoreRange.parse(text)


def test_scores_are_computed_in_one_order() -> None:
    class Vowels:
        fingerprint = "vowels"

        def __call__(self, sentences: list[str]) -> np.ndarray:
            return np.array([sum(char in "aeiou" for char in text) for text in sentences], float)

    pairs, costs = [("a b c d", "a b c x"), ("a b c d", "x y"), ("a b c d", "e " * 101)], np.array([1.5, 2.0, 0.0])
    scores = pair_scores({"vowels": Vowels()})
    values = {name: score(pairs, costs).round(3).tolist() for name, score in scores.items()}
    assert (values["cost"], values["words"]) == ([1.5, 2.0, 0.0], [4.0, 2.0, 100.0])
    assert (values["overlap-2"], values["vowels"]) == ([0.667, 0.0, 0.0], [1.0, 0.0, 101.0])
    assert list(chosen_scores([ScoreRange("vowels", 1), ScoreRange("cost", 1)], scores)) == ["cost", "vowels"]


TEXT = ["a b", "a b"]


def test_a_small_model_by_hand() -> None:
    """Witten & Bell estimate the probability of a word as p = (c + d q) / (n + d), where n is the number of words that
    follow the context in the training text, d the number of different words among them, c the count of the word, and q
    the word's probability after the context without its first word. Without a context, p = c / n, where n = 10 here."""
    a = (2 + 2 * 2 / 10) / (4 + 2)  # p of a after <s>; the 4 words after <s> are a, a, <s>, <s>
    a = (2 + a) / (2 + 1)  # p of a after <s> <s>
    b = (2 + 2 / 10) / (2 + 1)  # p of b after a
    b = (2 + b) / (2 + 1)  # p of b after <s> a
    end = b  # p of </s> after a b; the counts are the same as for b
    assert Perplexity(TEXT)(["a b"]) == pytest.approx((a * b * end) ** (-1 / 3))


def test_perplexities_are_those_of_nltk() -> None:
    from nltk.lm import Vocabulary, WittenBellInterpolated
    from nltk.util import everygrams, ngrams

    text = ["the dog sees a cat", "a cat sees the dog", "the cat sleeps", "the dog sleeps in the sun"]
    padded = [["<s>", "<s>", *sentence.split(), "</s>"] for sentence in text]
    model = WittenBellInterpolated(3, vocabulary=Vocabulary([w for s in padded for w in s], unk_cutoff=2))
    model.fit([list(everygrams(sentence, max_len=3)) for sentence in padded])
    ours, others = Perplexity(text), ["the cat sees the dog", "a cat sleeps", "what is unknown", "the"]
    theirs = [model.perplexity(list(ngrams(["<s>", "<s>", *other.split(), "</s>"], 3))) for other in others]
    for _ in range(2):  # the second call returns cached results
        assert ours(others) == pytest.approx(theirs)


def test_a_file_is_read_by_its_first_column_and_repeated_lines_count_once(tmp_path: Path) -> None:
    path = tmp_path / "references.tsv"
    path.write_text("a b\tone\na b\ttwo\n\nb  a\tthree\na b\tfour\n", encoding="utf-8")
    from_file, from_text = Perplexity.of_file(path), Perplexity(["a b", "b a", "a b"])
    assert from_file.fingerprint == from_text.fingerprint != Perplexity(TEXT).fingerprint
    assert from_file(["a b"]) == from_text(["a b"]) != Perplexity(TEXT)(["a b"])


def test_what_it_needs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(DataError, match=r"empty\.txt: no sentence"):
        Perplexity.of_file(tmp_path / "empty.txt")
    with pytest.raises(DataError, match="no sentence"):
        Perplexity([])
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("bgt_core.errors.find_spec", lambda name: None if name == "nltk" else find_spec(name))
    with pytest.raises(NotFound, match=r'needs nltk.*pip install "bgt\[lm\]"'):
        Perplexity(TEXT)
