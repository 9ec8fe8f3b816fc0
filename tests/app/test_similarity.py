"""How alike: the library's own numbers, files with and without scores, the splits of Hard STS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr
from streamlit.testing.v1 import AppTest

import bgt_core
from app import scoring, state
from app.charts import scores
from bgt_core.data.examples import CREDIT
from bgt_core.errors import BgtError
from bgt_core.grammar import pairs
from bgt_core.vectors.compare import cosines

Open = Callable[[str], AppTest]
Run = Callable[[AppTest], AppTest]


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


def test_one_pair_has_the_librarys_cosines(opened: Open, run: Run, saved: Path) -> None:
    app = opened("similarity")
    left, right = "The cat sleeps.", "Is it late?"
    app.text_area(key="left").set_value(left)
    app.text_area(key="right").set_value(right)
    run(app)
    shown = {metric.label: metric.value for metric in app.metric}
    bgt = bgt_core.load(saved)
    for latent, title in (("semantic", "Semantic latent"), ("language", "Language latent")):
        cosine = cosines(*bgt.embed([left, right], lang="en", latent=latent))
        assert shown[title] == f"{cosine:z.2f}"
    assert CREDIT in [caption.value for caption in app.caption]
    assert shown["Word error rate"] == "1.00"  # three words and a mark each, none of them the same


def test_across_languages_only_meaning_is_compared(opened: Open, run: Run) -> None:
    app = opened("similarity")
    app.button_group(key="one_right_lang").set_value("fr")
    run(app)
    assert "Language latent" not in {metric.label for metric in app.metric}
    assert any("share no axes" in caption.value for caption in app.caption)


def test_an_empty_side_is_asked_for(opened: Open, run: Run) -> None:
    app = opened("similarity")
    app.text_area(key="left").set_value(" ")
    assert run(app).warning and not app.metric


def test_correlations_are_pearsons_with_an_interval_around_them(scored: pd.DataFrame) -> None:
    correlations = scoring.correlations(scored).set_index("system")
    for name in ("semantic", "words"):
        row = correlations.loc[scoring.systems(scored)[name]]
        r, test = row["pearson"] / 100, pearsonr(scored[name], scored["gold"])
        assert r == pytest.approx(test.statistic)
        low, high = test.confidence_interval()  # Fisher's; the bootstrap is near it
        assert row["ci_low"] / 100 == pytest.approx(low, abs=0.1) and row["ci_high"] / 100 == pytest.approx(
            high, abs=0.1
        )


@pytest.mark.parametrize("gold", [[1.0, 2.0], [3.0, 3.0, 3.0]])
def test_too_little_to_correlate_is_said(scored: pd.DataFrame, gold: list[float]) -> None:
    with pytest.raises(BgtError, match="a correlation needs"):
        scoring.correlations(scored.head(len(gold)).assign(gold=gold))


def test_splits_are_cut_by_word_errors_and_gold(scored: pd.DataFrame) -> None:
    hard = scoring.split(scored, "Hard+")
    assert len(hard) and (hard["gold"] >= 4).all() and (hard["swer"] >= scored["swer"].quantile(0.8)).all()
    easy_words = scoring.split(scored, "Hard-")
    assert (easy_words["gold"] <= 1).all() and (easy_words["swer"] <= scored["swer"].quantile(0.2)).all()
    negated = scoring.split(scored, "negation")
    for row in negated.itertuples():
        assert (" not " in row.left or "n't" in row.left) != (" not " in row.right or "n't" in row.right)
    assert scoring.split(scored, "all") is scored


def test_a_file_of_pairs_gets_every_measure(start: Callable, saved: Path, scored: pd.DataFrame) -> None:
    start("--model", saved)
    loaded, given = state.model(), scored[["left", "right", "gold"]].head(7)
    similarities = scoring.similarities(loaded, given, "en", "en")
    assert {"semantic", "language", "words", "swer"} <= set(similarities)
    assert similarities.loc[3, "semantic"] == pytest.approx(
        cosines(*loaded.bgt.embed(given.loc[3, ["left", "right"]].tolist(), lang="en")), abs=1e-5
    )
    assert "language" not in scoring.similarities(loaded, given, "en", "fr")


def test_the_scatter_holds_every_pair(scored: pd.DataFrame) -> None:
    figure = scores.gold_scatter(scored.assign(left="<b>x</b>"), scoring.systems(scored))
    assert [trace.name for trace in figure.data] == ["Semantic latent", "Words (tf-idf)"]
    for trace, column in zip(figure.data, ("semantic", "words"), strict=True):
        assert list(trace.y) == scored[column].tolist()
        assert np.abs(np.array(trace.x) - scored["gold"]).max() < 0.07
        assert not any("<b>" in text for text in trace.text)


@pytest.fixture
def uploaded(opened: Open, run: Run, press: Callable) -> Callable[[str, bytes], AppTest]:
    """uploaded(name, content): the page with that file chosen."""

    def upload(name: str, content: bytes) -> AppTest:
        app = press(opened("similarity"), "Upload")
        app.file_uploader(key="own_file").set_value((name, content, "text/plain"))
        run(app)
        use = [button.label for button in app.button if button.label.startswith("Use these")]
        return press(app, use[0]) if use else app

    return upload


def test_a_file_that_cannot_be_read_is_explained_on_the_page(uploaded: Callable) -> None:
    app = uploaded("pairs.tsv", b"fine\tfine\nbad \xff\tx\n")
    assert "not UTF-8" in app.error[0].value and not app.get("plotly_chart")


def test_a_file_with_scores_is_drawn_and_its_markup_stays_text(uploaded: Callable, figures: Callable) -> None:
    lines = [f"{n % 6}\t<img src=x onerror=alert(1)> {n}\tمرحبا こんにちは {n % 5}" for n in range(40)]
    app = uploaded("pairs.tsv", "\n".join(["score\ten\tfr", *lines]).encode())
    (figure,) = figures(app)
    assert not any("<img" in text for trace in figure["data"] for text in trace["text"])
    assert app.dataframe[-1].value["Left"][0] == "<img src=x onerror=alert(1)> 0"
    assert {metric.label for metric in app.metric} >= {
        "Semantic latent, Pearson × 100",
        "Words (tf-idf), Pearson × 100",
    }
