"""How alike: the library's own numbers, files with and without scores, the splits of Hard STS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr

import bgt_core
from app.core import corpora, rows, state
from app.similarity import compute
from app.similarity.page import SEARCHED
from bgt_core.data.examples import CREDIT
from bgt_core.grammar import pairs
from bgt_core.vectors.compare import cosines
from tests.close import FLOAT32, assert_close

Open = Callable[..., Any]


@pytest.fixture
def scored() -> pd.DataFrame:
    """Sixty pairs with scores; the semantic column goes with them, the other does not."""
    rng = np.random.default_rng(0)
    gold = rng.uniform(0, 5, 60)
    translations = pairs(120)
    left, right = ([translations[2 * at + side].texts["en"] for at in range(60)] for side in (0, 1))
    noise = rng.normal(0, 0.4, 60)
    return pd.DataFrame(
        {
            "left": left,
            "right": right,
            "gold": gold,
            "semantic": gold / 5 + noise,
            "words": noise,
            "swer": rng.uniform(0, 1.5, 60),
        }
    )


def test_other_sentences_are_compared_once_and_never_with_themselves(start: Callable[..., None], saved: Path) -> None:
    start("--model", saved)
    loaded, bgt = state.model(), bgt_core.load(saved)
    english, french = ["The cat sleeps.", "Is it late?", "He runs."], ["Le chat dort.", "Est-il tard ?", "Il court."]
    for count, expected in ((1, []), (2, [(0, 1)]), (3, [(0, 2), (1, 0), (2, 1)])):
        texts = english[:count]
        table = rows.translations(
            list(zip([*texts, texts[-1]], [*french[:count], "Encore."], strict=True)), ["en", "fr"]
        )
        vectors = bgt.embed(texts, lang="en")
        wanted = sorted(float(cosines(vectors[at], vectors[other])) for at, other in expected)
        assert_close(sorted(compute.random_pairs(loaded, table, "semantic", ("en", "en"))), wanted, FLOAT32, scale=1)
        assert len(compute.random_pairs(loaded, table, "semantic", ("en", "fr"))) == count + 1
    assert (
        len(compute.random_pairs(loaded, rows.translations([["A.", "B."]], ["en", "fr"]), "semantic", ("en", "fr")))
        == 0
    )


def test_one_pair_has_the_librarys_cosines(opened: Open, saved: Path) -> None:
    app = opened("similarity")
    left, right = "The cat sleeps.", "Is it late?"
    app.text_area(key="left").set_value(left)
    app.put(app.text_area(key="right"), right)
    shown = {metric.label: metric.value for metric in app.metric}
    bgt = bgt_core.load(saved)
    for latent, title in (("semantic", "Semantic latent"), ("language", "Language latent")):
        cosine = cosines(*bgt.embed([left, right], lang="en", latent=latent))
        assert shown[title] == f"{cosine:z.2f}"
        texts = corpora.sentences(next(iter(corpora.readable(("en", "fr")).values())), SEARCHED)
        vectors = bgt.embed(texts.loc[texts["lang"] == "en", "text"].tolist(), lang="en", latent=latent)
        below = int((cosines(vectors, np.roll(vectors, 1, axis=0)) < cosine).sum())
        assert any(f"{below:,} of {len(vectors):,} in the {latent} latent" in text.value for text in app.markdown)
    assert CREDIT in [caption.value for caption in app.caption]
    assert shown["Words in common"] == "0.00" and "Word error rate" not in shown  # of which less would be more alike


def test_correlations_are_pearsons_with_an_interval_around_them(scored: pd.DataFrame) -> None:
    correlations = compute.correlations(scored).set_index("system")
    for name in ("semantic", "words"):
        row = correlations.loc[compute.systems(scored)[name]]
        r, test = row["pearson"] / 100, pearsonr(scored[name], scored["gold"])
        assert r == pytest.approx(test.statistic)
        low, high = test.confidence_interval()  # Fisher's; the bootstrap is near it
        assert (row["ci_low"] / 100, row["ci_high"] / 100) == pytest.approx((low, high), abs=0.1)


def test_splits_are_cut_by_word_errors_and_gold(scored: pd.DataFrame) -> None:
    hard = compute.split(scored, "Hard+")
    assert len(hard) and (hard["gold"] >= 4).all() and (hard["swer"] >= scored["swer"].quantile(0.8)).all()
    easy_words = compute.split(scored, "Hard-")
    assert (easy_words["gold"] <= 1).all() and (easy_words["swer"] <= scored["swer"].quantile(0.2)).all()
    negated = compute.split(scored, "negation")
    for row in negated.itertuples():
        assert (" not " in row.left or "n't" in row.left) != (" not " in row.right or "n't" in row.right)
    assert compute.split(scored, "all") is scored
    french = pd.DataFrame({"left": ["Il dort.", "Elle rit."], "right": ["Il ne dort pas.", "Elle rit bien."]})
    assert compute.split(french, "negation", ("fr", "fr")).index.tolist() == [0]
    assert compute.split(french, "negation", ("tr", "fr")).empty  # Turkish negates inside words


def test_a_file_with_scores_is_drawn_and_its_markup_stays_text(opened: Open) -> None:
    lines = [f"{n % 6}\t<img src=x onerror=alert(1)> {n}\tمرحبا こんにちは {n % 5}" for n in range(40)]
    app = (
        opened("similarity", alike="A file of pairs")
        .upload("pairs.tsv", "\n".join(["score\ten\tfr", *lines]))
        .press("Use these")
    )
    drawn = app.figures()
    assert len(drawn) == 2 and not any("<img" in text for figure in drawn for text in figure["data"][0]["text"])
    assert app.dataframe[-1].value["Left"][0] == "<img src=x onerror=alert(1)> 0"
    assert {metric.label for metric in app.metric} >= {
        "Semantic latent, Pearson × 100",
        "Words (tf-idf), Pearson × 100",
    }
    shown = {metric.label: metric for metric in app.metric}
    assert "Semantic latent - Words (tf-idf)" in shown and all(
        "n 40" in metric.delta for metric in shown.values() if "95%" in metric.delta
    )
    assert any("all 40, Hard+ " in caption.value for caption in app.caption)


def test_without_scores_the_latents_are_drawn_against_one_another(opened: Open) -> None:
    lines = [f"The number is {n}.\tIs it {n} or {n + 1}?" for n in range(1_200)]
    app = (
        opened("similarity", alike="A file of pairs")
        .upload("pairs.tsv", "\n".join(["left\tright", *lines]))
        .press("Use these")
    )
    second, _ = app.figures()
    assert len(second["data"][0]["x"]) and "semantic" in second["layout"]["xaxis"]["title"]["text"]
    assert len(app.dataframe[-1].value) == 1_200  # every row, not the first thousand
    assert app.dataframe[-1].value.columns[0] == "Semantic"


def test_the_worst_misjudged_is_the_pair_farthest_from_people() -> None:
    gold = np.array([0.0, 1, 2, 3, 4, 5, 5, 0])
    cosine = gold / 5
    cosine[3] = -1.0
    wrong = compute.misjudged(pd.DataFrame({"gold": gold, "semantic": cosine}))
    assert wrong.abs().idxmax() == 3 and wrong[3] < 0
