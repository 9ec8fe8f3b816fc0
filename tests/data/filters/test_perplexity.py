"""Perplexity: worked by hand, and nltk's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from bgt_core.data.filters.perplexity import Perplexity
from bgt_core.errors import DataError, NotFound

TEXT = ["a b", "a b"]


def test_a_small_model_by_hand() -> None:
    """Witten & Bell: p = (c + d q) / (n + d) where n words of d kinds follow the context, c of them this one, and q is
    what the shorter context says; single words: c / n, here of 10."""
    a = (2 + 2 * 2 / 10) / (4 + 2)  # after <s>, which <s> and a follow twice each
    a = (2 + a) / (2 + 1)  # after <s> <s>
    b = (2 + 2 / 10) / (2 + 1)  # after a
    b = (2 + b) / (2 + 1)  # after <s> a
    end = b  # </s> after a b, as often
    assert Perplexity(TEXT)(["a b"]) == pytest.approx((a * b * end) ** (-1 / 3))


def test_it_is_nltks() -> None:
    from nltk.lm import Vocabulary, WittenBellInterpolated
    from nltk.util import everygrams, ngrams

    text = ["the dog sees a cat", "a cat sees the dog", "the cat sleeps", "the dog sleeps in the sun"]
    padded = [["<s>", "<s>", *sentence.split(), "</s>"] for sentence in text]
    model = WittenBellInterpolated(3, vocabulary=Vocabulary([w for s in padded for w in s], unk_cutoff=2))
    model.fit([list(everygrams(sentence, max_len=3)) for sentence in padded])
    ours = Perplexity(text)
    others = ["the cat sees the dog", "a cat sleeps", "what is unknown", "the"]
    theirs = [model.perplexity(list(ngrams(["<s>", "<s>", *other.split(), "</s>"], 3))) for other in others]
    for _ in range(2):  # what is remembered is the same
        assert ours(others) == pytest.approx(theirs)
    assert ours([]).shape == (0,)


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
