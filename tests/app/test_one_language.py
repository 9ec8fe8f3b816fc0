"""Models of one language: a semantic and a syntactic latent of English, whose decoder writes or is a bag of words."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from pathlib import Path

import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

import bgt_core
from app.card.chart import kl_curves
from app.core import corpora, rows, startup, state, theme, writing
from app.languages.compute import with_paper
from app.similarity import chart, compute
from bgt_core import checkpoint
from bgt_core.data.examples import example_sentences
from bgt_core.data.text import Tokenizer
from bgt_core.generation.rerank import candidates
from bgt_core.generation.search import exchanged
from bgt_core.recipes.recipe import Recipe
from bgt_core.vectors.compare import cosines

Open = Callable[[str], AppTest]
Run = Callable[[AppTest], AppTest]
Press = Callable[[AppTest, str], AppTest]
Figures = Callable[[AppTest], list[dict]]
PAGES = ("sentence", "maps", "rewrite", "similarity", "probes", "languages", "card")
WRITING, BAG = "lstm", "bag-of-words"


@pytest.fixture(scope="session")
def english_pairs(
    tiny: Callable[..., Recipe],
    stirred: Callable[[torch.nn.Module], torch.nn.Module],
    tokenizer: Tokenizer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Untrained models of English paraphrases, each with a log: a vgvae with either decoder, and a bgt."""
    folder = tmp_path_factory.mktemp("english")
    recipes = {decoder: recipe_of(decoder) for decoder in (WRITING, BAG)}
    recipes["bgt"] = tiny("bgt-small", columns=["a:en", "b:en"])
    kl = {"kl/semantic/a": 4.0, "kl/semantic/b": 5.0, "kl/syntactic/a": 2.0, "kl/syntactic/b": 1.0}
    log = [{"kind": "valid", "step": step, "steps": 7, "elbo": -90.0, **kl, "retrieval/a-b": 0.5} for step in (4, 7)]
    for name, recipe in recipes.items():
        torch.manual_seed(0)
        checkpoint.save(folder / name, recipe, stirred(recipe.build(tokenizer)), tokenizer, step=7)
        (folder / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log), "utf-8")
    return folder


def recipe_of(decoder: str) -> Recipe:
    settings = {"model.decoder": decoder, "model.semantic_dim": 8, "model.syntactic_dim": 6, "model.d_model": 12}
    return bgt_core.recipes.build("vgvae", settings)


@pytest.fixture(autouse=True)
def started(english_pairs: Path, start: Callable[..., None]) -> None:
    start("--model", english_pairs / WRITING)


@pytest.mark.parametrize("name", [WRITING, BAG, "bgt"])
@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens(english_pairs: Path, start: Callable, opened: Open, name: str, page: str) -> None:
    start("--model", english_pairs / name)
    app = opened(page)
    assert app.title and not app.error


def test_the_maps_are_of_single_sentences_and_named_after_the_latents(opened: Open, figures: Figures, run: Run) -> None:
    app = opened("maps")
    assert list(app.button_group(key="maps").options) == ["Both", "Semantic", "Syntactic"]
    sentences = {sentence for (sentence,) in example_sentences(["en"])[:300]}
    for figure, title in zip(figures(app), ("Semantic latent", "Syntactic latent"), strict=True):
        assert figure["layout"]["annotations"][0]["text"] == f"{title}  ● English"
        assert {trace["mode"] for trace in figure["data"]} == {"markers"}  # no lines to translations
        assert sum(len(trace["customdata"]) for trace in figure["data"]) == 300
    listed = app.dataframe[0].value
    assert set(listed["Sentence"]) == sentences and not {"Translation", "Language"} & set(listed)
    assert not [toggle for toggle in app.toggle if toggle.label == "Join translations"]
    assert any("The syntactic latent is a space of its own" in caption.value for caption in app.caption)
    (shared,) = app.table
    assert list(shared.value) == ["Semantic", "Syntactic", "Chance"]
    app.button_group(key="maps").set_value("Syntactic")
    assert len(figures(run(app))) == 1


def test_a_link_to_a_map_of_another_models_latent_shows_both(opened: Open, run: Run, figures: Figures) -> None:
    app = AppTest.from_file(opened("maps")._script_path, default_timeout=60)
    app.query_params["maps"] = "Language"
    assert len(figures(run(app))) == 2 and app.button_group(key="maps").value == "Both"


def test_nearest_sentences_of_one_that_is_typed_stand_side_by_side(opened: Open, run: Run) -> None:
    app = opened("maps")
    (box,) = (box for box in app.selectbox if box.label == "Nearest sentences of")
    typed = "The station is not far from here."
    box.options.append(typed)
    box.set_value(typed)
    run(app)
    titles = [text.value for text in app.markdown if text.value.endswith("latent**")]
    assert titles == ["**Semantic latent**", "**Syntactic latent**"]
    texts = [sentence for (sentence,) in example_sentences(["en"])[:300]]
    bgt = state.model().bgt
    for latent, shown in zip(bgt.latents, app.dataframe[:2], strict=True):
        similarities = bgt.similarity(
            bgt.embed([typed], lang="en", latent=latent), bgt.embed(texts, lang="en", latent=latent)
        )[0]
        assert shown.value["Sentence"].tolist() == [texts[at] for at in (-similarities).argsort(kind="stable")[:10]]
        assert shown.value["Cosine"].tolist() == pytest.approx(sorted(similarities, reverse=True)[:10], abs=1e-5)


def test_the_style_of_a_sentence_is_its_syntactic_latent(opened: Open, press: Press) -> None:
    app = opened("rewrite")
    assert any("**syntactic latent**" in text.value for text in app.markdown)  # of the directions
    source, style = "The cat sleeps.", "Is it late?"
    app.text_area(key="source").set_value(source)
    app.text_area(key="style").set_value(style)
    press(app, "Generate")
    bgt = state.model().bgt
    ((best, *_),) = candidates(
        bgt, exchanged(bgt, [source], [style], "en", "en"), lang="en", search=writing.DEFAULT_SEARCH
    )
    assert escape(best.text) in "".join(part.proto.body for part in app.get("html"))


@pytest.mark.parametrize(("what", "moved"), [("Semantic", {0}), ("Syntactic", {1}), ("Both", {0, 1})])
def test_the_way_between_two_sentences_moves_in_either_latent(
    opened: Open, press: Press, figures: Figures, what: str, moved: set[int]
) -> None:
    app = opened("maps")
    app.button_group(key="move").set_value(what)
    press(app, "Interpolate")
    paths = [any(trace["mode"].startswith("lines+") for trace in figure["data"]) for figure in figures(app)]
    assert paths == [0 in moved, 1 in moved]


def test_a_bag_of_words_says_that_it_cannot_write(
    english_pairs: Path, start: Callable, opened: Open, figures: Figures
) -> None:
    start("--model", english_pairs / BAG)
    pages = {page: opened(page) for page in ("rewrite", "maps")}
    for app in pages.values():
        (info,) = app.info
        assert "cannot write sentences" in info.value
        assert not {"Generate", "Interpolate"} & {button.label for button in app.button}
    assert len(figures(pages["maps"])) == 2


def test_the_first_page_says_what_the_latents_are(english_pairs: Path, start: Callable, opened: Open) -> None:
    (text,) = (html.proto.body for html in opened("sentence").get("html") if "reads a sentence" in html.proto.body)
    assert "<b>syntactic latent</b>" in text and "paraphrases" in text and "translations" not in text


def test_the_paper_is_that_of_the_model(english_pairs: Path, start: Callable, opened: Open) -> None:
    for name, address, key in ((WRITING, "N19-1254", "chen2019"), ("bgt", "2020.emnlp-main.122", "wieting2020")):
        start("--model", english_pairs / name)
        (link,) = (button for button in opened("main").get("link_button") if button.proto.label == "The paper")
        assert address in link.proto.url
        assert [key in code.value for code in opened("card").code].count(True) == 1


def test_the_curves_of_training_have_every_kl() -> None:
    kl = {"kl/semantic/a": 3.0, "kl/syntactic/a": 2.0}
    log = [{"kind": "valid", "step": step, "elbo": -1.0, **kl} for step in (2, 4)]
    drawn = {trace.name: trace.y[0] for trace in kl_curves(log, ("en",)).data}
    assert drawn == {"semantic/a": 3.0, "syntactic/a": 2.0}


def test_two_sentences_are_compared_in_both_latents(opened: Open, run: Run) -> None:
    app = opened("similarity")
    left, right = "The cat sleeps.", "Is it late?"
    app.text_area(key="left").set_value(left)
    app.text_area(key="right").set_value(right)
    shown = {metric.label: metric.value for metric in run(app).metric}
    for latent in ("semantic", "syntactic"):
        cosine = cosines(*state.model().bgt.embed([left, right], lang="en", latent=latent))
        assert shown[rows.latent_title(latent)] == f"{cosine:z.2f}"


def test_pairs_are_correlated_in_both_latents(opened: Open) -> None:
    opened("card")
    pairs = pd.DataFrame({"left": ["A cat.", "A dog.", "Me?"], "right": ["A cat!", "It.", "You."], "gold": [5, 1, 2]})
    scored = compute.similarities(state.model(), pairs, "en", "en")
    systems = ["Semantic latent", "Syntactic latent", "Words (tf-idf)"]
    assert compute.correlations(scored)["system"].tolist() == systems
    figure = chart.alike_scatter(scored, "gold", "gold", compute.systems(scored))
    assert [trace.name for trace in figure.data] == systems


def test_a_probe_of_both_latents_is_drawn_and_compared(opened: Open, press: Press, figures: Figures) -> None:
    app = press(opened("probes"), "Run")
    assert app.success and not app.error
    (figure,) = figures(app)
    colours = {trace["name"]: trace["marker"].get("color") for trace in figure["data"]}
    assert [colours[latent] for latent in ("semantic", "syntactic")] == [
        theme.latent_colour(latent, "light") for latent in ("semantic", "syntactic")
    ]
    compared = AppTest.from_file(opened("languages")._script_path, default_timeout=60)
    compared.session_state["probed"] = app.session_state["probed"]
    compared.run()
    compared.multiselect(key="languages_of").set_value([state.model().title])
    compared.run()
    assert not compared.exception
    (gap,) = figures(compared)
    assert gap["layout"]["xaxis"]["title"]["text"] == "← syntactic · semantic →"
    assert any("that on the syntactic latent" in caption.value for caption in compared.caption)
    assert not any("the paper's" in caption.value for caption in compared.caption)
    assert any("one language, English: there is no other" in caption.value for caption in compared.caption)
    assert not compared.subheader  # no distances to English of English


def test_the_papers_language_latents_are_not_set_beside_syntactic_ones() -> None:
    gap = {"model": "m", "fingerprint": "", "probe": "linear", "lang": "en", "task": "length", "langs": "en fr",
           "first": "semantic", "points": 1.0, "ci_low": 0.0, "ci_high": 2.0, "p": 0.5}  # fmt: skip
    table = pd.DataFrame([gap | {"second": second} for second in ("language", "syntactic", "majority")])
    published = with_paper(table).set_index("second")
    assert published["paper_gap"].notna().to_dict() == {"language": True, "syntactic": False}


def test_one_column_of_a_text_is_read_and_each_sentence_once(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("Salut.\tHi.\nBonjour.\tHi.\nNon.\tNo.\nOui.\tYes.\n", "utf-8")
    options = startup.read(["--data", f"fr,en={tmp_path / 'pairs.tsv'}", "--data", f"_,en={tmp_path / 'pairs.tsv'}"])
    texts = options.texts_in(["en"])
    assert list(texts) == [f"{startup.EXAMPLES} (en)", startup.BUILT_IN, "pairs.tsv (fr-en)", "pairs.tsv (en)"]
    for name in ("pairs.tsv (fr-en)", "pairs.tsv (en)"):
        table = corpora.sentences(texts[name], 2)
        assert table["text"].tolist() == ["Hi.", "No."] and set(table["lang"]) == {"en"}
        assert set(table["translation"]) == {""} and not table["own"].any()
    assert options.texts_in(["en", "fr"])["pairs.tsv (fr-en)"].langs == ("fr", "en")


def test_a_language_without_sentences_says_how_to_bring_some(
    opened: Open, english_pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {"model": str(english_pairs / WRITING)}
    monkeypatch.setattr(startup, "read", lambda: startup.StartOptions(models, {}, ()))
    app = opened("maps")
    assert "a file of sentences" in app.info[0].value and "--data en=FILE.tsv" in app.code[0].value
