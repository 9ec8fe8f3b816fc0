"""The plane of disagreement: which pairs there are, how alike they are, where the lines run, and the page."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable
from operator import eq, lt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from app.core import corpora, startup, state
from app.core.markdown import verbatim
from app.core.startup import GRAMMAR, ParallelText
from app.core.uploads import columns
from app.plane import compute
from app.plane.chart import MAX_SVG, plane
from app.plane.compute import PairSource, across, cuts, pairs, quadrants, sources
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
    return columns.text_of("f.tsv", pd.DataFrame(rows, columns=list("abcd")[: len(uses)]), uses, False)[1]


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


def test_the_rows_of_a_pair_are_rows_of_the_maps(loaded: state.Loaded) -> None:
    table = pairs(loaded, GRAMMAR, 40, PairSource("en", "fr", True))
    texts = corpora.sentences(GRAMMAR, 40).set_index("id")["text"]
    for side in ("left", "right"):
        assert texts[table[f"{side}_row"]].tolist() == table[side].tolist()
    given = table[table["kind"] == "Translations"]
    assert len(given) == 40 and given["left_row"].str[2:].tolist() == given["right_row"].str[2:].tolist()


def test_a_users_pairs_keep_their_columns_and_random_pairs_have_none(loaded: state.Loaded) -> None:
    lines = [[str(at), f"Sentence number {at}.", f"This is {at}.", "ab"[at % 2]] for at in range(9)]
    text = uploaded(lines, "gold", "en", "en", "own")
    assert [source.title for source in sources(text)] == ["Your pairs", "Within English", SETS]
    table = pairs(loaded, text, 100, sources(text)[0])
    given = table[table["kind"] == "Your pairs"]
    assert given["left"].tolist() == [line[1] for line in lines] and given["own:gold"].tolist() == list(range(9))
    assert given["own:d"].tolist() == [line[3] for line in lines]
    assert table.loc[table["kind"] == compute.RANDOM, "own:gold"].isna().all()


def test_sources_are_each_language_and_each_pair_of_languages() -> None:
    sets = [SETS, SETS.replace("English", "French")]
    titles = ["Within English", "Within French", *sets, "English and French"]
    assert [source.title for source in sources(GRAMMAR)] == titles
    assert [source.title for source in sources(GRAMMAR.alone("fr"))] == ["Within French", sets[1]]
    assert [source.title for source in sources(ParallelText(("de",), None))] == ["Within German"]


def test_sentences_of_two_languages_are_compared_by_where_they_stand(loaded: state.Loaded) -> None:
    rng = np.random.default_rng(0)
    english = rng.normal(size=(60, 8)).astype(np.float32)
    turned = english @ np.linalg.qr(rng.normal(size=(8, 8)))[0].astype(np.float32)  # other axes, same arrangement
    left = np.arange(60)
    both = np.concatenate([english, turned])
    assert_close(across(loaded, both, left, left + 60), np.ones(60), 10 * FLOAT32)
    assert (across(loaded, both, left, np.roll(left, 1) + 60) < 0.9).mean() > 0.9
    unrelated = np.concatenate([english, rng.normal(size=(60, 8)).astype(np.float32)])
    assert abs(across(loaded, unrelated, left, left + 60).mean()) < 0.1


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
    texts = {verbatim(text) for text in corpora.sentences(next(iter(startup.built_in_texts().values())), 300)["text"]}
    assert all({*table.value["Left"], *table.value["Right"]} <= texts for table in app.table)  # whole sentences


def test_thirty_sentences_are_compared_with_their_435_pairs(
    start: Callable[..., None], opened: Open, saved: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.txt").write_text("".join(f"Sentence number {at} is here.\n" for at in range(30)))
    start("--model", saved, "--data", f"en={tmp_path / 't.txt'}")
    app = opened("plane", data="t.txt (en)")
    assert any("nearer than 95 % of 435 random pairs" in caption.value for caption in app.caption)
    (figure,) = app.figures()
    assert figure["layout"]["xaxis"]["ticktext"] == ["1", "50", "90", "99"]


def test_translations_and_moved_lines_change_what_is_drawn(opened: Open) -> None:
    app = opened("plane")
    lines = [shape["x0"] for shape in app.figures()[0]["layout"]["shapes"]]
    app.put(app.slider(key="meaning_line"), 50)
    assert app.figures()[0]["layout"]["shapes"][0]["x0"] < lines[0]
    app.put(app.selectbox(key="pairs_of"), "English and French")
    (figure,) = app.figures()
    assert {trace["name"] for trace in figure["data"]} == {"Translations", compute.RANDOM}
    assert "through translations" in figure["layout"]["yaxis"]["title"]["text"]


def test_each_pair_is_ranked_among_random_pairs(loaded: state.Loaded) -> None:
    table, random = pairs(loaded, GRAMMAR, 40, WITHIN), compute.background(loaded, GRAMMAR, 40, WITHIN)
    count = corpora.sentences(GRAMMAR, 40).query("lang == 'en'")["text"].nunique()
    assert len(random) == count * (count - 1) // 2
    for axis in compute.AXES:
        less, equal = ([by(random[axis], value).mean() for value in table[axis]] for by in (lt, eq))
        expected = [100 * (below + tied / 2) for below, tied in zip(less, equal, strict=True)]
        assert table[f"{axis}_rank"].tolist() == pytest.approx(expected)
    near = table[table["kind"] == compute.NEAR_IN_MEANING]["semantic_rank"]
    assert near.min() > table[table["kind"] == compute.RANDOM]["semantic_rank"].median()


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


@pytest.mark.parametrize("size", [0, 1, 2, 30, 141, 200, 201, 5_000])
def test_random_pairs_are_all_pairs_once_or_as_many_different_ones(size: int) -> None:
    for in_order, every in ((False, itertools.combinations), (True, itertools.permutations)):
        left, right = compute.unlike(size, in_order)
        drawn = set(zip(left.tolist(), right.tolist(), strict=True))
        assert len(drawn) == len(left) == min(compute.BACKGROUND, math.perm(size, 2) // (1 if in_order else 2))
        if len(left) < compute.BACKGROUND:
            assert drawn == set(every(range(size), 2))
        assert all(0 <= one < size and 0 <= two < size and one != two for one, two in drawn)
        assert in_order or all(one < two for one, two in drawn)


@pytest.mark.parametrize("count", [1, 2, 6, 19, 20, 435])
def test_a_near_pair_exceeds_the_share_of_random_pairs_that_the_page_names(count: int) -> None:
    values = np.random.default_rng(count).integers(0, 40, count) / 40  # some are equal
    random = pd.DataFrame({"semantic": values, "style": -values})
    for line, axis in zip(cuts(random, (95, 50)), compute.AXES, strict=True):
        share = 95 if axis == "semantic" else 50
        below = {value: 100 * (random[axis] < value).mean() for value in random[axis]}
        assert all((value >= line) == (percent >= share) for value, percent in below.items())
    marked = {1: [], 2: ["50"], 6: ["50"], 19: ["50", "90"], 20: ["50", "90"], 435: ["1", "50", "90", "99"]}
    assert list(compute.ticks(random)[0]) == marked[count]


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


@pytest.mark.parametrize(
    ("roles", "ends"), [(0.5, "Paraphrases are the nearest."), (0.95, "no measure of meaning there.")]
)
def test_the_page_says_whether_paraphrases_are_nearest(roles: float, ends: str) -> None:
    near = {compute.PARAPHRASES: 0.9, compute.NEGATIONS: 0.8, compute.ROLES: roles, compute.RANDOM: 0.0}
    pairs = pd.DataFrame(
        [(kind, each) for kind, at in near.items() for each in (at, at, 1.0)], columns=["kind", "semantic"]
    )
    text = compute.ordered(pairs)
    assert f"roles swapped {roles:.2f}" in text and text.endswith(ends)


def test_the_lasso_that_the_text_names_is_always_visible(opened: Open) -> None:
    app = opened("plane")
    (chart,) = app.get("plotly_chart")
    assert any("press the lasso in the row of buttons above" in text.value for text in app.markdown)
    assert json.loads(chart.proto.config)["displayModeBar"] is True
    assert app.figures()[0]["layout"]["margin"]["t"] >= 40  # room for it, so that it covers no point
