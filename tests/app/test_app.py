"""Every page opens with every kind of model, and explains what the model lacks and what the user can do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st

import bgt_core
from app import shell
from app.core import state, theme
from bgt_core.data.examples import example_sentences
from probes.results.store import Cell, write_cells
from tests.close import assert_close

Open = Callable[..., Any]
Start = Callable[..., None]
OURS = (
    *("sp", "translator", "lstm", "bag-of-words", "paraphrases", "three languages"),
    "writer",
)
OTHERS = {"function": "", "exported": "onnx:", "sentence_transformer": "sentence-transformers:"}  # fixtures
THREE, NAMES = ("en", "fr", "de"), ["English", "French", "German"]
TRIPLES = example_sentences(THREE)[:270]
PAIR = ("Can you help me?", "He is my friend.")


@pytest.fixture
def begin(start: Start, model_of: Callable, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """begin(kind): start the app with a model of this kind."""

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


KINDS = ("title", "markdown", "caption", "info", "warning", "code")
SPLIT = "Split its vectors into two parts on *Your encoder*"
SAYS = {  # texts on pages, by the kind of model
    "shipped": {},
    "sp": {
        "sentence": "This model computes one latent from a sentence", "card": "25.0%",
        "maps": "This model has one latent", "rewrite": "no latent for style",
    },
    "translator": {
        "main": "A translator", "rewrite": "translates French into English, and has no latent for style",
        "maps": "one latent", "pairs": "Here it compares meaning alone.",
    },
    "lstm": {"sentence": "<b>syntactic latent</b>", "main": "N19-1254", "card": "chen2019"},
    "bag-of-words": {"rewrite": "generate sentences", "maps": "generate sentences"},
    "paraphrases": {"main": "2020.emnlp-main.122", "card": "wieting2020", "sentence": "paraphrases"},
    "three languages": {"maps": "There are 270 translations"},
    "writer": {},
    "function": {
        "main": "Its languages are unknown. Shown: English", "pairs": SPLIT,
        "maps": "*Your encoder* splits its vectors", "card": "external encoder",
    },
}  # fmt: skip


def texts(app: Any) -> str:
    """Return all texts of a page, and the addresses that it links to."""
    return "\n".join([
        *(str(part.value) for kind in KINDS for part in app.get(kind)),
        *(part.value.to_string() for part in app.table), *(part.value for part in app.sidebar.text),
        *(part.proto.url for part in app.get("link_button")), app.html(),
    ])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAYS)
def test_every_page_opens_and_says_what_the_model_lacks(kind: str, begin: Callable[[str], None], opened: Open) -> None:
    begin(kind)
    every = (
        ("main", *(page for page in shell.PAGES if page != "questions"))
        if kind in ("three languages", "function")
        else ("main", *SAYS[kind])
    )
    for page in dict.fromkeys(every):
        app = opened(page)
        assert app.title and not app.error, page
        assert SAYS[kind].get(page, "") in texts(app), page


def test_a_probe_of_both_latents_is_drawn_and_compared(begin: Callable, opened: Open) -> None:
    begin("lstm")
    app = opened("probes").press("Run")
    assert app.success and not app.error
    (figure,) = app.figures()
    colours = {trace["name"]: trace["marker"].get("color") for trace in figure["data"]}
    for latent in ("semantic", "syntactic"):
        assert colours[latent] == theme.latent_colour(latent, "light")
    (gap,) = app.put(app.button_group(key="show"), "Difference").figures()
    assert gap["layout"]["xaxis"]["title"]["text"] == "← syntactic · semantic →"
    assert not any("Open and grey" in caption.value for caption in app.caption)


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


def test_many_sentences_are_embedded_once_though_nobody_knows_what_decides_the_vectors(begin: Callable) -> None:
    begin("function")
    model, texts = state.model(), [f"sentence {number}" for number in range(state.FEW + 1)]
    import letters_of

    first = state.embed(model, texts, "en", "semantic")
    count = len(letters_of.calls)
    assert np.array_equal(state.embed(model, texts, "en", "semantic"), first)
    assert len(letters_of.calls) == count
    st.cache_resource.clear()  # the name may now stand for another function
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


@pytest.mark.parametrize("page", ["probes", "maps"])
def test_heads_of_columns_are_not_cut(
    opened: Open, start: Start, model_of: Callable, cells_of: Callable[..., list[Cell]], tmp_path: Path, page: str
) -> None:
    """A character of a title takes up to 6.6 pixels, the margins 16."""
    names = ("three languages", "paraphrases")
    write_cells(tmp_path / "r.parquet", [cell for name in names for cell in cells_of(str(model_of(name)))])
    models = [argument for name in names for argument in ("--model", model_of(name))]
    start(*models, "--results", tmp_path)
    app = opened(page)
    heads = [(table.proto.columns, list(table.value)) for table in app.dataframe]
    assert heads
    for columns, names in heads:
        for name, column in json.loads(columns or "{}").items():
            title, width = column.get("label") or name, column.get("width")
            if title in names and isinstance(width, int):
                assert 6.6 * len(title) + 16 <= width, (title, width)
