"""The app on every kind of model: ours of one to three languages, with and without a second latent, and others'."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bgt_core
from app.core import state, theme
from app.core.rows import latent_title
from app.similarity import chart, compute
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.vectors.compare import cosines
from tests.close import assert_close

Open = Callable[..., Any]
Start = Callable[..., None]
PAGES = ("main", "sentence", "maps", "plane", "rewrite", "similarity", "probes", "languages", "models", "split", "card")
OURS = (
    *("sp", "bilingual-trans", "english-vae", "translator", "lstm", "bag-of-words", "paraphrases", "three languages"),
    "writer",
)
OTHERS = {"function": "", "exported": "onnx:", "sentence_transformer": "sentence-transformers:"}  # fixtures
THREE, NAMES = ("en", "fr", "de"), ["English", "French", "German"]
TRIPLES = example_sentences(THREE)[:270]
PAIR = ("Can you help me?", "He is my friend.")


@pytest.fixture
def begin(start: Start, model_of: Callable, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """begin(kind): the app is started with a model of that kind."""

    def choose(kind: str) -> None:
        if kind == "shipped":
            start()
        elif kind in OTHERS:
            start("--model", f"{OTHERS[kind]}{request.getfixturevalue(kind)}")
        elif kind == "three languages":
            triples = tmp_path / "triples.tsv"
            triples.write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES), "utf-8")
            start("--model", model_of(kind), "--data", f"en,fr,de={triples}")
        else:
            start("--model", model_of(kind) if kind in OURS else kind)

    return choose


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shipped", *OURS, "baseline:tfidf", *OTHERS])
def test_every_page_opens(kind: str, begin: Callable[[str], None], opened: Open) -> None:
    begin(kind)
    for page in PAGES:
        app = opened(page)
        assert app.title and not app.error, page


def test_a_model_of_one_latent_says_what_it_lacks(begin: Callable, opened: Open) -> None:
    begin("sp")
    assert any("25.0%" in table.value.to_string() for table in opened("card").table)
    assert len(opened("maps").figures()) == 1
    assert "no latent for style" in opened("rewrite").info[0].value


def test_a_model_of_one_language_and_latent_has_a_map_of_it(begin: Callable, opened: Open) -> None:
    begin("english-vae")
    app = opened("maps")
    assert len(app.figures()) == 1 and not app.table
    assert "This model computes one latent from a sentence" in opened("sentence").html()


def test_a_translator_says_that_it_translates_and_what_its_latent_is(begin: Callable, opened: Open) -> None:
    begin("translator")
    app = opened("main")
    assert app.title[0].value == "A translator"
    assert "French into English" in app.sidebar.text[0].value
    (text,) = (text.value for text in app.markdown if "translates" in text.value)
    assert "French into English" in text and "`bgt translate`" in text and "not trained as one" in text
    assert "translates French into English, and has no latent for style" in opened("rewrite").info[0].value
    assert "one latent" in opened("languages").info[0].value and "one latent" in opened("maps").caption[0].value
    app = opened("similarity")  # no English examples where French is read
    assert [app.text_area(key=side).value for side in ("left", "right")] == ["", ""]
    assert app.warning[0].value == "Type two sentences."


def test_an_outside_encoder_is_described_and_each_page_says_how_to_go_on(begin: Callable, opened: Open) -> None:
    begin("function")
    assert "Its languages are unknown. Shown: English" in opened("main").sidebar.text[0].value
    for page in ("plane", "languages"):
        assert "Split its vectors into two parts on *Your encoder*" in opened(page).info[0].value, page
    assert "*Your encoder* splits its vectors" in opened("maps").caption[0].value
    app = opened("card")
    known = app.table[0].value.set_index("").iloc[:, 0]
    assert known["Units"] == "9" and known["Languages"].startswith("Its languages are unknown")
    assert any("*Probes* tells which properties" in text.value for text in app.markdown)


def test_the_maps_of_one_language_are_named_after_its_latents(begin: Callable, opened: Open) -> None:
    begin("lstm")
    app = opened("maps", maps="Language")  # a link to a latent that this model lacks shows both
    assert list(app.button_group(key="maps").options) == ["Both", "Semantic", "Syntactic"]
    assert list(app.button_group(key="move").options) == ["Semantic", "Syntactic", "Both"]
    sentences = {sentence for (sentence,) in example_sentences(["en"])[:300]}
    for figure, title in zip(app.figures(), ("Semantic latent", "Syntactic latent"), strict=True):
        assert figure["layout"]["annotations"][0]["text"] == f"{title}  ● English"
        assert {trace["mode"] for trace in figure["data"]} == {"markers"}  # no lines to translations
        assert sum(len(trace["customdata"]) for trace in figure["data"]) == 300
    listed = app.dataframe[0].value
    assert set(listed["Sentence"]) == sentences and not {"Translation", "Language"} & set(listed)
    assert not [toggle for toggle in app.toggle if toggle.label == "Join translations"]
    (shared,) = app.table
    assert list(shared.value) == ["Semantic", "Syntactic", "Chance"]
    app.button_group(key="maps").set_value("Syntactic")
    assert len(app.run().figures()) == 1


def test_a_bag_of_words_says_that_it_cannot_write(begin: Callable, opened: Open) -> None:
    begin("bag-of-words")
    for page in ("rewrite", "maps"):
        app = opened(page)
        (info,) = app.info
        assert "generate sentences" in info.value
        assert not {"Generate", "Interpolate"} & {button.label for button in app.button}
    assert len(app.figures()) == 2


def test_the_first_page_says_what_the_latents_are(begin: Callable, opened: Open) -> None:
    begin("lstm")
    text = opened("sentence").html()
    assert "<b>syntactic latent</b>" in text and "paraphrases" in text and "translations" not in text


@pytest.mark.parametrize(
    ("kind", "address", "key"),
    [("lstm", "N19-1254", "chen2019"), ("paraphrases", "2020.emnlp-main.122", "wieting2020")],
)
def test_the_paper_is_that_of_the_model(begin: Callable, opened: Open, kind: str, address: str, key: str) -> None:
    begin(kind)
    (link,) = (button for button in opened("main").get("link_button") if button.proto.label == "The paper")
    assert address in link.proto.url
    assert [key in code.value for code in opened("card").code].count(True) == 1


def test_pairs_are_correlated_in_both_latents(begin: Callable) -> None:
    begin("lstm")
    pairs = pd.DataFrame({"left": ["A cat.", "A dog.", "Me?"], "right": ["A cat!", "It.", "You."], "gold": [5, 1, 2]})
    scored = compute.similarities(state.model(), pairs, "en", "en")
    systems = ["Semantic latent", "Syntactic latent", "Words (tf-idf)"]
    assert compute.correlations(scored)["system"].tolist() == systems
    figure = chart.alike_scatter(scored, "gold", "gold", compute.systems(scored))
    assert [trace.name for trace in figure.data] == systems


def test_a_probe_of_both_latents_is_drawn_and_compared(begin: Callable, opened: Open) -> None:
    begin("lstm")
    app = opened("probes").press("Run")
    assert app.success and not app.error
    (figure,) = app.figures()
    colours = {trace["name"]: trace["marker"].get("color") for trace in figure["data"]}
    for latent in ("semantic", "syntactic"):
        assert colours[latent] == theme.latent_colour(latent, "light")
    compared = opened("languages")
    compared.session_state["probed"] = app.session_state["probed"]
    compared.run().multiselect(key="languages_of").set_value([state.model().title])
    (gap,) = compared.run().figures()
    assert gap["layout"]["xaxis"]["title"]["text"] == "← syntactic · semantic →"
    assert not any("the paper's" in caption.value for caption in compared.caption)
    assert not compared.subheader  # no distances to English of English


@pytest.mark.parametrize(
    ("page", "keys"),
    {
        "rewrite": ["source_lang", "lang", "dlang"],
        "similarity": ["one_left_lang", "one_right_lang"],
        "probes": ["plang"],
    }.items(),
)
def test_every_language_can_be_chosen(begin: Callable, opened: Open, page: str, keys: list[str]) -> None:
    begin("three languages")
    app = opened(page)
    for key in keys:
        assert list(app.button_group(key=key).options) == NAMES
        for lang in THREE:
            app.button_group(key=key).set_value(lang)
            assert not app.run().error and app.button_group(key=key).value == lang


def test_sentences_of_ones_own_and_between_two_can_be_of_any_language(begin: Callable, opened: Open) -> None:
    begin("three languages")
    app = opened("maps")
    assert list(app.button_group(key="way_lang").options) == NAMES
    app.button_group(key="way_lang").set_value("de")
    app.button_group(key="move").set_value("Style")
    app.press("Interpolate")
    assert app.session_state["walked"].lang == "de"
    _, language = app.figures()
    paths = [trace["xaxis"] for trace in language["data"] if trace["mode"] == "lines+markers+text"]
    assert paths == ["x3"]  # on the third map
    (lang,) = (group for group in app.button_group if group.label == "Their language")
    lang.set_value("de")
    app.text_area[0].set_value("Es regnet.")
    _, language = app.press("Draw as stars").figures()
    stars = [trace for trace in language["data"] if trace["customdata"] == ["own0"]]
    assert [trace["marker"]["symbol"] for trace in stars] == ["star-triangle-up"]


def test_each_language_has_its_own_map_and_symbol(begin: Callable, opened: Open) -> None:
    begin("three languages")
    app = opened("maps", colour="Language")
    assert any("There are 270 translations" in caption.value for caption in app.caption)
    semantic, language = app.figures()
    drawn: dict[str, set] = {}
    for trace in language["data"]:
        looks = {(row[:2], trace["marker"]["symbol"]) for row in trace["customdata"]}
        drawn.setdefault(trace["xaxis"], set()).update(looks)
    assert list(drawn.values()) == [{("en", "circle")}, {("fr", "diamond")}, {("de", "triangle-up")}]
    points = [trace for trace in semantic["data"] if trace["mode"] == "markers"]
    assert [trace["name"] for trace in points] == NAMES
    assert len({trace["marker"]["color"] for trace in points}) == 3
    assert sum(len(trace["customdata"]) for trace in points) == 810
    assert semantic["layout"]["height"] == language["layout"]["height"] == 720


def test_every_pair_of_languages_can_be_scored(begin: Callable, opened: Open) -> None:
    begin("three languages")
    app = opened("maps")
    for left, right in combinations(range(3), 2):
        app.selectbox(key="lang_pair").set_value((THREE[left], THREE[right]))
        shown = app.run().table[0].value["Semantic"]
        assert shown.index[0] == f"{NAMES[left]} finds its {NAMES[right]}"
        sides = ([triple[at] for triple in TRIPLES] for at in (left, right))
        vectors = [state.model().bgt.embed(side, lang=THREE[at]) for at, side in zip((left, right), sides, strict=True)]
        assert shown["Mean cosine of translations"] == f"{cosines(*vectors).mean():.2f}"


def test_a_function_has_its_own_similarities_and_offers_every_language(begin: Callable, opened: Open) -> None:
    begin("function")
    loaded = state.model()
    assert set(loaded.langs) == set(LANGS) and loaded.bgt is None and not loaded.second_latent and not loaded.info
    assert "this machine" in loaded.device
    assert loaded.cannot_write in opened("rewrite").info[0].value and len(opened("maps").figures()) == 1
    import letters_of

    expected = cosines(*letters_of.letters(PAIR)[:, None])
    table = compute.alike(loaded, *PAIR, "en", "en").set_index("measure")["value"]
    assert table[latent_title("semantic")] == pytest.approx(float(expected[0]), rel=1e-5)


def test_many_sentences_are_embedded_once_though_nobody_knows_what_decides_the_vectors(begin: Callable) -> None:
    begin("function")
    model, texts = state.model(), [f"sentence {number}" for number in range(state.FEW + 1)]
    import letters_of

    first = state.embed(model, texts, "en", "semantic")
    count = len(letters_of.calls)
    assert np.array_equal(state.embed(model, texts, "en", "semantic"), first)
    assert len(letters_of.calls) == count
    state.clear()  # another object may be behind the name now
    state.embed(state.model(), texts, "en", "semantic")
    assert len(letters_of.calls) == count + 1


def test_folders_of_other_libraries_have_their_own_vectors(begin: Callable, saved: Path) -> None:
    begin("exported")
    vectors = state.embed(state.model(), PAIR, "fr", "semantic")
    assert_close(vectors, bgt_core.load(saved, "cpu", "fp32").embed(PAIR, lang="fr"))
    assert state.model().langs == ("en", "fr") and state.model().title == "exported"
    begin("sentence_transformer")
    assert state.titles()[0] == "bag"
    np.testing.assert_allclose(state.embed(state.model(), PAIR, "en", "semantic"), [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]])


@pytest.mark.parametrize("page", ["rewrite", "probes", "plane", "similarity", "maps", "languages", "card", "models"])
def test_heads_of_columns_are_not_cut(
    opened: Open, start: Start, model_of: Callable, document_of: Callable[..., dict], tmp_path: Path, page: str
) -> None:
    """A character of a head takes up to 6.6 pixels, the margins 16."""
    documents = {name: document_of(str(model_of(name))) for name in ("three languages", "paraphrases")}
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document), "utf-8")
    models = [argument for name in documents for argument in ("--model", model_of(name))]
    start(*models, "--results", tmp_path)
    parameters = {"rewrite": {"how": "One sentence"}, "models": {"by": "Probes"}}
    app = opened(page, **parameters.get(page, {}))
    heads = [(table.proto.columns, list(table.value)) for table in app.dataframe]
    assert heads or page in ("card", "plane")
    for columns, names in heads:
        for name, column in json.loads(columns or "{}").items():
            title, width = column.get("label") or name, column.get("width")
            if title in names and isinstance(width, int):
                assert 6.6 * len(title) + 16 <= width, (title, width)
