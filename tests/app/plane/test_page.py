"""The plane of disagreement: which pairs there are, how alike they are, where the lines run, and the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from app.core import corpora, startup, state, upload_dialog
from app.core.markdown import verbatim
from app.core.startup import GRAMMAR, ParallelText
from app.plane import compute
from app.plane.compute import MAX_SVG, PairSource, cuts, pairs, plane, quadrants, sources
from bgt_core.vectors.compare import cosines, unit
from tests.close import FLOAT32, assert_close

Open = Callable[..., Any]
WITHIN = PairSource("en", "en", False)
SETS = "Paraphrases, negations, roles: English"


@pytest.fixture
def loaded(start: Callable[..., None], saved: Path) -> state.Loaded:
    start("--model", saved)
    return state.model()


def uploaded(rows: list[list[str]], *uses: str) -> ParallelText:
    return upload_dialog.text_of("f.tsv", pd.DataFrame(rows, columns=list("abcd")[: len(uses)]), uses, False)[1]


def test_within_a_language_each_sentence_meets_its_nearest_and_a_random_one(loaded: state.Loaded) -> None:
    table = pairs(loaded, GRAMMAR, 40, WITHIN)
    texts = corpora.sentences(GRAMMAR, 40).query("lang == 'en'")["text"].unique().tolist()
    for kind, latent, column in (
        (compute.NEAR_IN_MEANING, "semantic", "semantic"),
        (compute.NEAR_IN_STYLE, "language", "style"),
    ):
        vectors = unit(loaded.encoder.embed(texts, lang="en", latent=latent))
        similarities = vectors @ vectors.T
        np.fill_diagonal(similarities, -2)
        expected = {frozenset((texts[at], texts[near])) for at, near in enumerate(similarities.argmax(1))}
        part = table[table["kind"] == kind]
        assert {frozenset(pair) for pair in zip(part["left"], part["right"], strict=True)} == expected
        assert len(part) == len(expected)
        similarities = cosines(
            *(loaded.encoder.embed(part[side], lang="en", latent=latent) for side in ("left", "right"))
        )
        assert_close(part[column].to_numpy(), similarities, FLOAT32, scale=1)
    random = table[table["kind"] == compute.RANDOM]
    assert len(random) == len(texts) and (random["left"] != random["right"]).all()


def test_a_users_pairs_keep_their_columns_and_random_pairs_have_none(loaded: state.Loaded) -> None:
    lines = [[str(at), f"Sentence number {at}.", f"This is {at}.", "ab"[at % 2]] for at in range(9)]
    text = uploaded(lines, "gold", "en", "en", "own")
    assert [source.title for source in sources(text)] == ["Your pairs", "Within English", SETS]
    table = pairs(loaded, text, 100, sources(text)[0])
    given = table[table["kind"] == "Your pairs"]
    assert given["left"].tolist() == [line[1] for line in lines] and given["own:gold"].tolist() == list(range(9))
    assert given["own:d"].tolist() == [line[3] for line in lines]
    assert table.loc[table["kind"] == compute.RANDOM, "own:gold"].isna().all()


def scattered(count: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kinds = np.array(["Translations", compute.RANDOM])[np.arange(count) % 2]
    texts = [f"text {at}" for at in range(count)]
    x, y = rng.normal(size=(2, count))
    table = pd.DataFrame({"kind": kinds, "left": texts, "right": texts, "semantic": x, "style": y, "length": 1})
    return table.assign(semantic_rank=50.0, style_rank=99.9)


def test_lines_are_percentiles_of_random_pairs_and_quadrants_are_all_pairs() -> None:
    table = scattered()
    random = table[table["kind"] == compute.RANDOM]
    lines = cuts(random, (95, 60))
    assert (random["semantic"] < lines[0]).mean() == pytest.approx(0.95, abs=0.011)
    assert (random["style"] < lines[1]).mean() == pytest.approx(0.6, abs=0.011)
    parts = quadrants(table, lines)
    assert sum(map(len, parts.values())) == len(table)
    lower_right = parts["Near in meaning only"]
    assert (lower_right["semantic"] >= lines[0]).all() and (lower_right["style"] < lines[1]).all()
    out = np.minimum(
        (lower_right["semantic"] - lines[0]) / table["semantic"].std(),
        (lines[1] - lower_right["style"]) / table["style"].std(),
    )
    assert out.is_monotonic_decreasing


@pytest.mark.parametrize("count", [200, MAX_SVG + 1])
def test_every_pair_is_a_point_that_knows_its_row(count: int) -> None:
    table = scattered(count).assign(left="<b>x</b>")
    counts = dict.fromkeys(compute.QUADRANTS.values(), 1)
    for colour in ("kind", "length"):
        figure = plane(
            table, colour, (0.5, 0.1), counts, ("x", "y", "c"), ({"95 %": 0.5}, {"50 %": 0.1, "90 %": 0.2}), 435
        )
        places = np.concatenate([trace.customdata for trace in figure.data]).astype(int)
        assert sorted(places) == list(range(count))
        xs = np.concatenate([trace.x for trace in figure.data])
        assert_close(xs, table["semantic"].to_numpy()[places], FLOAT32, scale=1)
        assert not any("<b>" in text for trace in figure.data for text in trace.text)
        assert figure.layout.shapes[0].x0 == 0.5
        assert figure.layout.xaxis.ticktext == ("95 %",) and figure.layout.yaxis.tickvals == (0.1, 0.2)
        assert "nearer than 99.9 % of 435 random pairs" in figure.data[0].text[0]


def test_the_page_opens_on_example_sentences_and_lists_each_quadrant(opened: Open) -> None:
    app = opened("plane")
    (figure,) = app.figures()
    assert {trace["name"] for trace in figure["data"]} == {
        compute.NEAR_IN_MEANING,
        compute.NEAR_IN_STYLE,
        compute.RANDOM,
    }
    headings = [part.value for part in app.markdown if part.value.startswith("**Near")]
    assert len(headings) == 4 and 1 <= len(app.table) <= 4
    texts = {verbatim(text) for text in corpora.sentences(next(iter(startup.read().texts.values())), 300)["text"]}
    assert all({*table.value["Left"], *table.value["Right"]} <= texts for table in app.table)  # whole sentences


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("source", [WITHIN, PairSource("en", "fr", True)])
def test_random_pairs_are_no_sentence_with_itself_or_its_translation(
    loaded: state.Loaded, source: PairSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(
        compute, "similarities", lambda loaded, source, latents, left, right: seen.append((left, right)) or (left, left)
    )
    compute.background(loaded, GRAMMAR, 40, source)
    ((left, right),) = seen
    half = len(corpora.sentences(GRAMMAR, 40)) // 2 if source.given else 0
    assert (left != right - half).all()
    assert not half or (left.max() < half <= right.min())


def test_built_in_pairs_are_paraphrases_negations_and_swapped_roles(opened: Open) -> None:
    app = opened("plane", pairs_of=SETS)
    (figure,) = app.figures()
    assert {trace["name"] for trace in figure["data"]} == {
        compute.PARAPHRASES,
        compute.NEGATIONS,
        compute.ROLES,
        compute.RANDOM,
    }
    table = compute.built_in("en")
    negated = table[table["kind"] == compute.NEGATIONS]
    words = [set(re.findall(r"[\w']+", text)) for text in (*negated["left"], *negated["right"])]
    assert sum(any("not" in word or "n't" in word for word in each) for each in words) >= len(negated)
    for row in table[table["kind"] == compute.ROLES].itertuples():
        assert row.left != row.right
