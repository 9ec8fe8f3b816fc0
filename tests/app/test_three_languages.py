"""A model of three languages: every page opens with it, and lets each of them be chosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import bgt_core
from app.core import rows, startup, state, theme, writing
from app.core.latents import chart
from app.rewrite.compute import FACTORS
from app.sentence.compute import in_language
from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.recipes.recipe import Recipe
from bgt_core.vectors.compare import cosines

Open = Callable[[str], AppTest]
Run = Callable[[AppTest], AppTest]
Press = Callable[[AppTest, str], AppTest]
Figures = Callable[[AppTest], list[dict]]
LANGS = ("en", "fr", "de")
NAMES = ("English", "French", "German")
PAGES = ("sentence", "maps", "rewrite", "similarity", "probes", "languages", "card")
SUBJECTS = [
    ("The cat", "Le chat", "Die Katze"),
    ("My sister", "Ma sœur", "Meine Schwester"),
    ("A friend", "Un ami", "Ein Freund"),
    ("The old man", "Le vieil homme", "Der alte Mann"),
    ("Our neighbour", "Notre voisin", "Unser Nachbar"),
]
PREDICATES = [
    ("sleeps", "dort", "schläft"),
    ("reads a book", "lit un livre", "liest ein Buch"),
    ("buys bread every morning", "achète du pain tous les matins", "kauft jeden Morgen Brot"),
    ("sings, and dances", "chante, et danse", "singt, und tanzt"),
    ("is waiting at the station", "attend à la gare", "wartet am Bahnhof"),
    ("is tired of all this rain", "en a assez de toute cette pluie", "hat genug von all dem Regen"),
]
TIMES = [
    ("again today", "encore aujourd'hui", "heute schon wieder"),
    ("because it is late", "parce qu'il est tard", "weil es spät ist"),
    (
        "while all of the others are at home",
        "pendant que tous les autres sont chez eux",
        "während alle anderen zu Hause sind",
    ),
]
TRIPLES = [
    tuple(" ".join(parts) + end for parts in zip(*phrases, strict=True))
    for *phrases, end in product(SUBJECTS, PREDICATES, TIMES, (".", "?", "!"))
]


@pytest.fixture(scope="session")
def trilingual(
    tiny: Callable[..., Recipe],
    stirred: Callable[[torch.nn.Module], torch.nn.Module],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """An untrained model of three languages, with a log, beside sentences in all three: model/ and triples.tsv."""
    folder = tmp_path_factory.mktemp("trilingual")
    tokenizer = Tokenizer.train([text for triple in TRIPLES for text in triple], 110, lowercase=True)
    recipe = tiny(columns=LANGS, vocab_size=110)
    torch.manual_seed(0)
    checkpoint.save(folder / "model", recipe, stirred(recipe.build(tokenizer)), tokenizer, step=7)
    pairs = {f"retrieval/{left}-{right}": 0.25 for left, right in combinations(LANGS, 2)}
    kl = {"kl/semantic": 12.0, "kl/en": 0.5, "kl/fr": 1.5, "kl/de": 2.5}
    log = [{"kind": "valid", "step": step, "steps": 7, "elbo": -90.0, **kl, **pairs} for step in (4, 7)]
    (folder / "model" / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log), "utf-8")
    (folder / "triples.tsv").write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES), "utf-8")
    return folder


@pytest.fixture(autouse=True)
def started(trilingual: Path, start: Callable[..., None]) -> None:
    start("--model", trilingual / "model", "--data", f"en,fr,de={trilingual / 'triples.tsv'}")


def group(app: AppTest, key: str) -> list[str]:
    return list(app.button_group(key=key).options)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens(opened: Open, page: str) -> None:
    app = opened(page)
    assert app.title and not app.error


@pytest.mark.parametrize(
    ("page", "keys"),
    [
        ("rewrite", ["source_lang", "lang", "dlang"]),
        ("similarity", ["one_left_lang", "one_right_lang"]),
        ("probes", ["plang"]),
    ],
)
def test_every_language_can_be_chosen(opened: Open, run: Run, page: str, keys: list[str]) -> None:
    app = opened(page)
    for key in keys:
        assert group(app, key) == list(NAMES)
        for lang in LANGS:
            app.button_group(key=key).set_value(lang)
            run(app)
            assert not app.error and app.button_group(key=key).value == lang


def test_sentences_between_two_are_written_in_any_of_them(opened: Open, press: Press, figures: Figures) -> None:
    app = opened("maps")
    assert group(app, "way_lang") == list(NAMES)
    app.button_group(key="way_lang").set_value("de")
    app.button_group(key="move").set_value("Style")
    press(app, "Interpolate")
    assert app.session_state["walked"].lang == "de"
    _, language = figures(app)
    paths = [trace["xaxis"] for trace in language["data"] if trace["mode"] == "lines+markers+text"]
    assert paths == ["x3"]  # on the third map


def test_own_sentences_can_be_of_any_of_them(opened: Open, press: Press, figures: Figures) -> None:
    app = opened("maps")
    (lang,) = (group for group in app.button_group if group.label == "Their language")
    assert list(lang.options) == list(NAMES)
    lang.set_value("de")
    app.text_area[0].set_value("Es regnet.")
    press(app, "Draw as stars")
    _, language = figures(app)
    stars = [trace for trace in language["data"] if trace["customdata"] == ["own0"]]
    assert [trace["marker"]["symbol"] for trace in stars] == ["star-triangle-up"]


def test_each_language_has_its_own_map_and_symbol(opened: Open, run: Run, figures: Figures) -> None:
    app = opened("maps")
    assert any("There are 270 translations" in caption.value for caption in app.caption)
    app.selectbox(key="colour").set_value("lang")
    semantic, language = figures(run(app))
    drawn: dict[str, set] = {}
    for trace in language["data"]:
        drawn.setdefault(trace["xaxis"], set()).update(
            (row[:2], trace["marker"]["symbol"]) for row in trace["customdata"]
        )
    assert list(drawn.values()) == [{("en", "circle")}, {("fr", "diamond")}, {("de", "triangle-up")}]
    points = [trace for trace in semantic["data"] if trace["mode"] == "markers"]
    assert [trace["name"] for trace in points] == list(NAMES)
    assert len({trace["marker"]["color"] for trace in points}) == 3
    assert sum(len(trace["customdata"]) for trace in points) == 810
    assert semantic["layout"]["height"] == language["layout"]["height"] == 780


def test_translations_are_joined_to_closed_triangles() -> None:
    table = rows.translations(TRIPLES[:4], LANGS).assign(x=np.arange(12.0), y=0.0)
    (trace,) = (
        trace for trace in chart.latent_map({"": table}, "mark", LANGS, lines=True).data if trace.mode == "lines"
    )
    assert list(trace.x) == [x for pair in range(4) for x in (pair, pair + 4, pair + 8, pair, None)]


def test_every_pair_of_languages_can_be_scored(opened: Open, run: Run) -> None:
    app = opened("maps")
    loaded = state.model()
    assert app.selectbox(key="lang_pair").options == ["English and French", "English and German", "French and German"]
    for left, right in combinations(range(3), 2):
        app.selectbox(key="lang_pair").set_value((LANGS[left], LANGS[right]))
        run(app)
        shown = app.table[0].value["Semantic"]
        assert shown.index[0] == f"{NAMES[left]} finds its {NAMES[right]}"
        vectors = [loaded.bgt.embed([triple[at] for triple in TRIPLES], lang=LANGS[at]) for at in (left, right)]
        assert shown["Mean cosine of translations"] == f"{cosines(*vectors).mean():.2f}"


def test_a_style_may_be_of_any_language(opened: Open, press: Press) -> None:
    app = opened("rewrite")
    source, style = "Die Katze schläft.", "Ma sœur dort?"
    app.button_group(key="source_lang").set_value("de")
    app.button_group(key="lang").set_value("fr")
    app.text_area(key="source").set_value(source)
    app.text_area(key="style").set_value(style)
    press(app, "Generate")
    loaded = state.model()
    semantic, language = loaded.bgt.embed([source], lang="de"), loaded.bgt.embed([style], lang="fr", latent="language")
    (written,) = writing.write(loaded, semantic, language, "fr")
    assert written == app.session_state["history"][0]["output"]


def test_directions_are_found_in_the_third_language(opened: Open, run: Run) -> None:
    app = opened("rewrite")
    app.button_group(key="dlang").set_value("de")
    run(app)
    app.text_input(key="sentence_de").set_value("Die Katze schläft.")
    run(app)
    assert not app.error
    table = app.dataframe[0].value
    assert len(table) == sum(len(steps) for _, _, steps in FACTORS.values())
    expected = in_language(state.model(), "Die Katze schläft.", "de", "de")
    assert set(table.loc[table["Step"] == 0, "Written there"]) == {expected}


def test_sentences_of_two_of_them_are_compared(opened: Open, run: Run, trilingual: Path) -> None:
    app = opened("similarity")
    left, right = TRIPLES[0][1], TRIPLES[0][2]
    app.button_group(key="one_left_lang").set_value("fr")
    app.button_group(key="one_right_lang").set_value("de")
    app.text_area(key="left").set_value(left)
    app.text_area(key="right").set_value(right)
    run(app)
    bgt = bgt_core.load(trilingual / "model")
    expected = cosines(bgt.embed([left], lang="fr"), bgt.embed([right], lang="de"))[0]
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Semantic latent"] == f"{expected:z.2f}"
    assert set(app.dataframe[0].value["In"]) <= set(LANGS) and len(app.dataframe) == 2


def test_a_probe_runs_in_the_third_language(opened: Open, run: Run, press: Press) -> None:
    app = opened("probes")
    app.button_group(key="plang").set_value("de")
    press(run(app), "Run")
    assert app.success and not app.error, [error.value for error in app.error]
    assert set(app.dataframe[0].value["Language"]) == {"German"}


def test_the_first_page_offers_every_language(opened: Open) -> None:
    assert opened("sentence").selectbox(key="language").options == list(NAMES)


def test_the_text_of_most_languages_comes_first(trilingual: Path) -> None:
    triples = str(trilingual / "triples.tsv")
    options = startup.read(
        ["--data", f"en,de={triples}", "--data", f"en,fr,de={triples}", "--data", f"en,es={triples}"]
    )
    built_in = [f"{startup.EXAMPLES} (en-fr)", f"{startup.EXAMPLES} (en-de)", startup.BUILT_IN]
    assert list(options.texts_in(LANGS)) == ["triples.tsv (en-fr-de)", *built_in, "triples.tsv (en-de)"]
    first, *_, four, grammar = startup.read([]).texts_in(["en", "ar", "de", "es", "fr", "ja", "tr"])
    assert (first, four, grammar) == (built_in[0], f"{startup.EXAMPLES} (en-fr-es-de)", startup.BUILT_IN)


@pytest.mark.parametrize("argument", ["=a.tsv", "_=a.tsv", "en,en=a.tsv", "en,,fr=a.tsv", "en,fr=", "en,fr"])
def test_data_names_its_languages(argument: str) -> None:
    with pytest.raises(UsageError, match="languages, each once"):
        startup.parallel_text(argument)


def test_more_languages_than_symbols_still_look_different() -> None:
    looks = {(theme.cycled(theme.PALETTE["light"], n), theme.cycled(theme.SYMBOLS, n)) for n in range(42)}
    assert len(looks) == 42
