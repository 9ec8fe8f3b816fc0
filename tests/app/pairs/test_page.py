"""Test the page "Pairs": kinds of pairs, similarities, quadrants, human scores, and the comparison of two models."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr
from sklearn.metrics.pairwise import cosine_similarity

import bgt_core
from app.core import inventory, pairs, state, uploads
from app.core.display import verbatim
from app.core.inventory import GRAMMAR, ParallelText
from app.core.pairs import LEAST
from app.pairs import compute, page
from app.pairs.compute import GOLD, MAX_SVG, PairSource, Plane, compared, draw, sources
from bgt_core.data.examples import CREDIT, example_sentences
from bgt_core.data.text import spans
from bgt_core.encoders import open_encoder
from bgt_core.evaluation.systems import disagreement, word_effects
from bgt_core.vectors.arrays import cosines, unit
from tests.close import FLOAT32, assert_close

Open = Callable[..., Any]
Start = Callable[..., None]
WITHIN = PairSource("en", "en", False)
SETS = "Paraphrases, negations, roles: English"
EN = {"language": "English", "other_language": "English"}
LATENTS = {"Semantic latent": "semantic", "Language latent": "language"}


@pytest.fixture
def loaded(start: Callable[..., None]) -> state.Loaded:
    return state.model()


def examples() -> ParallelText:
    return next(text for text in inventory.readable(("en", "fr")).values() if text.credit)


def uploaded(rows: list[list[str]], *uses: str) -> ParallelText:
    return uploads.text_of("f.tsv", pd.DataFrame(rows, columns=list("abcd")[: len(uses)]), uses, False)[1]


def test_within_a_language_each_sentence_meets_its_nearest_and_a_random_one(loaded: state.Loaded) -> None:
    table, random = compared(loaded, GRAMMAR, 40, WITHIN)
    texts = inventory.sentences(GRAMMAR, 40).query("lang == 'en'")["text"].unique().tolist()
    kinds = {compute.NEAR_IN_MEANING: ("semantic", "semantic"), compute.NEAR_IN_STYLE: ("language", "style")}
    for kind, (latent, column) in kinds.items():
        vectors = unit(loaded.embed(texts, lang="en", latent=latent))
        similarities = vectors @ vectors.T
        np.fill_diagonal(similarities, -2)
        expected = {frozenset((texts[at], texts[near])) for at, near in enumerate(similarities.argmax(1))}
        part = table[table["kind"] == kind]
        assert {frozenset(pair) for pair in zip(part["left"], part["right"], strict=True)} == expected
        assert len(part) == len(expected)
        sides = (loaded.embed(part[side], lang="en", latent=latent) for side in ("left", "right"))
        assert_close(part[column].to_numpy(), cosines(*sides), FLOAT32, scale=1)
        others = similarities[~np.eye(len(texts), dtype=bool)]
        assert_close(random[column], np.sort(others), FLOAT32, scale=1)  # all pairs are sampled, as there are few
    drawn = table[table["kind"] == compute.RANDOM]
    assert len(drawn) == len(texts) and (drawn["left"] != drawn["right"]).all()


def test_a_users_pairs_keep_their_columns_and_random_pairs_have_none(loaded: state.Loaded) -> None:
    lines = [[str(at), f"Sentence number {at}.", f"This is {at}.", "ab"[at % 2]] for at in range(9)]
    text = uploaded(lines, "gold", "en", "en", "own")
    assert [source.title for source in sources(text)] == ["Your pairs", "Within English", SETS]
    table, _ = compared(loaded, text, 100, sources(text)[0])
    given = table[table["kind"] == "Your pairs"]
    assert given["left"].tolist() == [line[1] for line in lines] and given[GOLD].tolist() == list(range(9))
    assert given["own:d"].tolist() == [line[3] for line in lines]
    assert table.loc[table["kind"] == compute.RANDOM, GOLD].isna().all()


def test_random_translations_are_no_translations(loaded: state.Loaded) -> None:
    table, _ = compared(loaded, GRAMMAR, 40, PairSource("en", "fr", True))
    own = {(row.left, row.right) for row in table[table["kind"] == "Translations"].itertuples()}
    drawn = table[table["kind"] == compute.RANDOM]
    assert own and len(drawn) and not own & {(row.left, row.right) for row in drawn.itertuples()}
    assert drawn["left_row"].str.startswith("en").all() and drawn["right_row"].str.startswith("fr").all()


def scattered(count: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kinds = np.array(["Translations", compute.RANDOM])[np.arange(count) % 2]
    texts = [f"text {at}" for at in range(count)]
    x, y = rng.normal(size=(2, count))
    table = pd.DataFrame({"kind": kinds, "left": texts, "right": texts, "semantic": x, "style": y})
    return table.assign(semantic_rank=50.0, style_rank=99.9)


def planned(table: pd.DataFrame, colour: str = "kind") -> Plane:
    of = table[table["kind"] == compute.RANDOM]
    random = {axis: np.sort(of[axis].to_numpy()) for axis in compute.AXES}
    stars = table.head(1).assign(kind=compute.MINE, label="yours")
    return Plane(table, random, stars, colour, "c", ("x", "y"))


def test_lines_are_percentiles_of_random_pairs_and_quadrants_are_all_pairs() -> None:
    table = scattered()
    plane = planned(table)
    lines = plane.lines
    assert (plane.random["semantic"] < lines[0]).mean() == pytest.approx(0.95, abs=0.011)
    assert (plane.random["style"] < lines[1]).mean() == pytest.approx(0.95, abs=0.011)
    assert sum(map(len, plane.quadrants.values())) == len(table)
    lower_right = plane.quadrants["Near in meaning only"]
    assert (lower_right["semantic"] >= lines[0]).all() and (lower_right["style"] < lines[1]).all()
    out = np.minimum(
        (lower_right["semantic"] - lines[0]) / table["semantic"].std(),
        (lines[1] - lower_right["style"]) / table["style"].std(),
    )
    assert out.is_monotonic_decreasing


@pytest.mark.parametrize("count", [200, MAX_SVG + 1])
@pytest.mark.parametrize("colour", ["kind", "style_rank"])
def test_every_pair_is_a_point_that_knows_its_row(count: int, colour: str) -> None:
    table = scattered(count).assign(left="<b>x</b>")
    plane = planned(table, colour)
    figure = draw(plane)
    *points, star = figure.data
    places = np.concatenate([trace.customdata for trace in points]).astype(int)
    assert sorted(places) == list(range(count))
    xs = np.concatenate([trace.x for trace in points])
    assert_close(xs, table["semantic"].to_numpy()[places], FLOAT32, scale=1)
    assert not any("<b>" in text for trace in points for text in trace.text)
    assert figure.layout.shapes[0].x0 == plane.lines[0]
    middle = figure.layout.xaxis.tickvals[figure.layout.xaxis.ticktext.index("50")]
    assert middle == pytest.approx(np.median(plane.random["semantic"]))
    assert f"nearer than 99.9 % of {count // 2:,} random pairs" in points[0].text[0]
    assert star.marker.symbol == "star" and star.x[0] == table["semantic"][0]


def test_the_users_pair_is_a_point_beside_those_of_the_start_page(opened: Open) -> None:
    app = opened("pairs", other="A dog.", **EN)
    app.put(app.text_area(key="sentence"), "A cat.")
    (figure,) = app.figures()
    marked = {trace["name"]: trace for trace in figure["data"]}
    assert set(marked) == {compute.RANDOM, compute.START, compute.EARLIER, compute.MINE}
    assert marked[compute.START]["text"] == ["contracted", "negated", "roles swapped"]
    mine, earlier, *others = app.table[0].value[["Left", "Right"]].to_numpy().tolist()
    assert mine == ["A cat.", "A dog."] and earlier == ["You are late.", "A dog."] and len(others) == 3
    app.put(app.button_group(key="language"), "fr")
    (figure,) = app.figures()  # between two languages, the y-axis compares styles through translations
    marked = {trace["name"]: trace for trace in figure["data"]}
    assert marked[compute.START]["text"] == ["translated"]
    assert "through translations" in figure["layout"]["yaxis"]["title"]["text"]
    assert -1 <= marked[compute.MINE]["y"][0] <= 1


def test_an_empty_field_stands_for_the_same_sentence_in_another_form_or_its_neighbour(opened: Open) -> None:
    app = opened("pairs")
    assert app.table[0].value[["Left", "Right"]].iloc[0].tolist() == ["You are late.", "You're late."]
    app.put(app.button_group(key="other_language"), "fr")
    assert app.table[0].value["Right"].iloc[0] in inventory.sentences(examples(), 300)["text"].tolist()


def test_example_sentences_are_pairs_of_which_each_quadrant_is_listed(opened: Open) -> None:
    app = opened("pairs", points="Example sentences", sentence="A cat.", other="A dog.", **EN)
    (figure,) = app.figures()
    names = {compute.NEAR_IN_MEANING, compute.NEAR_IN_STYLE, compute.RANDOM, compute.MINE, compute.START}
    assert {trace["name"] for trace in figure["data"]} == names
    table = app.table[0].value
    assert set(table.iloc[:, 0]) <= set(compute.QUADRANTS.values()) and 4 <= len(table) <= 8
    texts = {verbatim(text) for text in inventory.sentences(examples(), 300)["text"]}
    assert {*table["Left"], *table["Right"]} <= texts  # the table shows whole sentences
    assert CREDIT in (captions := [caption.value for caption in app.caption])
    assert any("the counts in the corners are those of this choice" in each for each in captions)


def test_built_in_pairs_are_paraphrases_negations_and_swapped_roles(opened: Open) -> None:
    app = opened("pairs", points="Example sentences", pairs_of=SETS)
    (figure,) = app.figures()
    kinds = {compute.PARAPHRASES, compute.NEGATIONS, compute.ROLES, compute.RANDOM}
    assert kinds <= {trace["name"] for trace in figure["data"]}
    table = compute.built_in("en")
    assert len(table) == 2 * compute.BUILT_IN and not table["left"].str.contains(r"\b[Tt]his\b").any()
    negated = table[table["kind"] == compute.NEGATIONS]
    words = [set(re.findall(r"[\w']+", text)) for text in (*negated["left"], *negated["right"])]
    assert sum(any("not" in word or "n't" in word for word in each) for each in words) >= len(negated)
    assert all(row.left != row.right for row in table[table["kind"] == compute.ROLES].itertuples())


def test_two_sentences_have_the_librarys_cosines_and_a_place_among_random_pairs(opened: Open, saved: Path) -> None:
    left, right = "The cat sleeps.", "Is it late?"
    app = opened("pairs", sentence=left, other=right, **EN)
    shown = {metric.label: metric.value for metric in app.metric}
    bgt = bgt_core.load(saved)
    own = [float(cosines(*bgt.embed([left, right], lang="en", latent=of))) for of in LATENTS.values()]
    assert [shown[title] for title in LATENTS] == [f"{cosine:z.2f}" for cosine in own]
    assert shown["Words in common"] == "0.00"
    (figure,) = app.figures()
    (star,) = (trace for trace in figure["data"] if trace["name"] == compute.MINE)
    assert [*star["x"], *star["y"]] == pytest.approx(own, abs=1e-3)
    _, random = compared(state.model(), examples(), 300, WITHIN)
    below = [
        compute.share(100 * float((of < cosine).mean()), len(of))
        for of, cosine in zip(random.values(), own, strict=True)
    ]
    assert any("Nearer than {} in meaning and than {} in style.".format(*below) in part.value for part in app.markdown)


def test_correlations_are_pearsons_and_the_worst_misjudged_pair_is_the_farthest_from_people() -> None:
    rng = np.random.default_rng(0)
    gold, noise = rng.uniform(0, 5, 60), rng.normal(0, 0.4, 60)
    texts = [f"number {at}" for at in range(60)]
    given = pd.DataFrame(
        {"left": texts, "right": texts[::-1], "semantic": gold / 5 + noise, "style": noise, GOLD: gold}
    )
    scores = pairs.beside_first(compute.judged(given, "language", ("en", "en"))).set_index("system")
    for title, column in (("Semantic latent", "semantic"), ("Language latent", "style")):
        row = scores.loc[title]
        r, test = row["value"] / 100, pearsonr(given[column], gold)
        assert r == pytest.approx(test.statistic)
        low, high = test.confidence_interval()  # Fisher's interval is close to that of the bootstrap
        assert (row["low"] / 100, row["high"] / 100) == pytest.approx((low, high), abs=0.1)
    second = scores.loc["Language latent"]
    assert second["difference"] == pytest.approx(second["value"] - scores["value"].iloc[0])
    gold = np.array([0.0, 1, 2, 3, 4, 5, 5, 0])
    cosine = np.where(gold == 3, -1.0, gold / 5)
    wrong = compute.misjudged(pd.DataFrame({GOLD: gold, "semantic": cosine}))
    assert wrong.abs().idxmax() == 3 and wrong[3] < 0


def test_a_file_with_scores_is_judged_and_its_markup_stays_text(opened: Open) -> None:
    lines = [f"{n % 6}\t<img src=x onerror=alert(1)> {n}\tمرحبا こんにちは {n % 5}" for n in range(40)]
    app = opened("pairs", points="A file")
    assert "two columns of sentences" in app.info[0].value
    app.upload("pairs.tsv", "\n".join(["score\ten\tfr", *lines])).press("Use these")
    app.put(app.box("Which pairs"), "English and French")
    (figure,) = app.figures()
    assert not any("<img" in text for trace in figure["data"] for text in trace["text"])
    scores, worst = (table.value for table in app.table[-2:])
    assert len(scores) == 2 and len(worst) == 10 and all("\\<img" in text for text in worst["Left"])


@pytest.fixture
def two_models(saved: Path, start: Start, function: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of two models in the app: an untrained one of this toolkit, and a user's function."""
    start("--model", saved, "--model", function)
    titles = state.titles()[:2]
    monkeypatch.setattr(state, "second", lambda: state.opened(titles[1]))
    return titles


def test_disagreements_are_of_the_vectors_and_the_first_pair_has_its_words(two_models: list[str], opened: Open) -> None:
    app = opened("pairs")
    named = [part.value for part in app.markdown if part.value.startswith("**")][:2]
    assert named == [f"**{verbatim(name)}**" for name in two_models]  # both models measure the user's pair
    assert [metric.label for metric in app.metric].count("Semantic latent") == 2
    *_, ranked, left_words, right_words = (table.value for table in app.dataframe)
    of_words = left_words, right_words
    columns = list(zip(*example_sentences(("en", "fr"))[: page.MAX_PAIRS], strict=True))
    encoders = {name: open_encoder(inventory.read().models[name]) for name in two_models}
    expected = disagreement(encoders, *columns, ("en", "fr"))
    assert len(ranked) == page.COMPARED
    assert ranked[page.GAP].tolist() == pytest.approx((100 * expected.gaps[expected.order])[: page.COMPARED].tolist())
    pair = [ranked[side].iloc[0] for side in ("Left", "Right")]
    assert pair == [column[expected.order[0]] for column in columns]
    sides = list(zip(pair, ("en", "fr"), strict=True))
    for table, (text, lang), (other, other_lang) in zip(of_words, sides, sides[::-1], strict=True):
        assert table["Word"].tolist() == [text[start:end] for start, end in spans(text, lang)]
        for name, encoder in encoders.items():
            gains = word_effects(encoder, text, lang, encoder.embed([other], lang=other_lang)[0])
            assert_close(table[name], np.where(np.abs(gains) < LEAST, 0, gains), FLOAT32, scale=1)


def test_translations_found_are_those_that_the_vectors_find(two_models: list[str], opened: Open) -> None:
    app = opened("pairs", by=page.RETRIEVAL)
    table = app.table[-2].value.set_index("Model")
    encoder = open_encoder(inventory.read().models[two_models[0]])
    left, right = zip(*example_sentences(("en", "fr"))[: page.MAX_PAIRS], strict=True)
    vectors = [encoder.embed(side, lang=lang) for side, lang in zip((left, right), ("en", "fr"), strict=True)]
    nearest = cosine_similarity(*vectors).argmax(1)
    share = 100 * np.mean([right[at] == right[row] for row, at in enumerate(nearest)])
    assert float(table.loc[two_models[0], "Score"].split()[0]) == pytest.approx(share, abs=1.0)
