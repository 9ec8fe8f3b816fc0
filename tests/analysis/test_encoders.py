"""The measurements of analysis/encoders.py for a small encoder equal values that plain loops compute."""

import lzma
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score

from analysis import encoders
from bgt_core.data.examples import example_sentences
from bgt_core.encoders.external import ExternalEncoder

LETTERS = "abcdefghijklmnopqrstuvwxyz'"
TEST, FITTED = 100, 400


def letters(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """Embed sentences as counts of letters, plus one unit that marks the language."""
    counts = [[text.lower().count(letter) for letter in LETTERS] for text in sentences]
    return np.hstack([np.array(counts, float), np.full((len(counts), 1), 4.0 * (lang == "fr"))])


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.slow
def test_the_rows_are_those_of_a_computation_by_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "CURVE", (50, 200))
    monkeypatch.setattr(encoders, "PAIRS", 200)
    monkeypatch.setattr(encoders, "STORE", 150)
    pairs = example_sentences(["en", "fr"])
    for folder in ("parallel", "retrieval", "stsb"):
        (tmp_path / folder).mkdir()
    test, rest = pairs[:TEST], pairs[: TEST + FITTED]  # `rest` contains the test pairs, but fitting must skip them
    (tmp_path / "retrieval" / "en-fr.tatoeba1000.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in test), "utf-8")
    with lzma.open(tmp_path / "parallel" / "en-fr.tatoeba.tsv.xz", "wt", encoding="utf-8") as file:
        file.write("".join(f"{a}\t{b}\n" for a, b in rest))
    rated = [(len(set(a[0]) & set(b[0])) % 6, a[0], b[0]) for a, b in zip(pairs[:60], pairs[60:120], strict=True)]
    (tmp_path / "stsb" / "dev.tsv").write_text("".join(f"{gold}\t{a}\t{b}\n" for gold, a, b in rated), "utf-8")
    encoder = ExternalEncoder("letters", letters, ("en", "fr"))
    encoders.add(tmp_path / "rows.tsv", encoders.of_language("letters", encoder, tmp_path, "fr"))
    encoders.add(tmp_path / "rows.tsv", encoders.of_store("letters", encoder, tmp_path, ["fr"]))
    table = pd.read_csv(tmp_path / "rows.tsv", sep="\t")
    rows = {(row.lang, row.part, row.measure): row.value for row in table.itertuples()}

    fitted = encoders.pairs(tmp_path, "fr")
    assert not {text for pair in test for text in pair} & {text for column in fitted for text in column}
    english = unit(letters([pair[0] for pair in test], "en", ""))
    french = unit(letters([pair[1] for pair in test], "fr", ""))
    hits = 0
    for row in range(TEST):
        others = [(english[row] @ vector, "en") for place, vector in enumerate(english) if place != row]
        hits += max(others + [(english[row] @ vector, "fr") for vector in french])[0] <= english[row] @ french[row]
    assert rows["fr", "as they are", "P@1 in the pool, en to fr"] == pytest.approx(100 * hits / TEST)
    both, labels = np.concatenate([english, french]), np.repeat([0, 1], TEST)
    groups = np.tile(np.arange(TEST), 2)
    told = cross_val_score(LogisticRegression(C=1e3, max_iter=2_000), both, labels, groups=groups, cv=GroupKFold(5))
    assert rows["fr", "as they are", "language told"] == pytest.approx(100 * told.mean(), abs=3)
    assert rows["fr", "bgt: shared", "language told"] < 75 < rows["fr", "bgt: private", "language told"]
    left, right = (unit(letters([row[place] for row in rated], "en", "")) for place in (1, 2))
    gold = spearmanr((left * right).sum(1), [row[0] for row in rated]).statistic
    assert rows["fr", "as they are", "STS Benchmark dev, en"] == pytest.approx(100 * gold, abs=0.1)

    store = [*(a for a, _ in test), *fitted[0][200:350], *(b for _, b in test), *fitted[1][200:350]]
    langs = np.repeat(["en", "fr"], 250)
    vectors = np.concatenate([unit(letters(store[:250], "en", "")), unit(letters(store[250:], "fr", ""))])
    share, recall = [], []
    english_rows, french_rows = range(TEST), range(250, 250 + TEST)
    for query, own in zip([*english_rows, *french_rows], [*french_rows, *english_rows], strict=True):
        similarity = vectors @ vectors[query]
        similarity[query] = -np.inf
        nearest = np.argsort(-similarity)[:20]  # the order of equal similarities is arbitrary
        share.append(np.mean(langs[nearest] == langs[query]))
        recall.append(own in nearest)
    for measure, values in (("own language in the first 20", share), ("recall@20", recall)):
        assert rows["all", "as they are", measure] == pytest.approx(100 * np.mean(values), abs=0.5)
    assert rows["all", "the store", "own language in the first 20"] == 50
    assert "| letters | shared part |" in encoders.tables(table)
