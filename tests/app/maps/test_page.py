"""The page of the two latents: what is drawn, what a selection does, the user's sentences, the way between two."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from html import escape
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import bgt_core
from app.core import address, controls, exports, rows, startup, writing
from app.core.latents import chart, geometry
from bgt_core.data.examples import CREDIT
from bgt_core.generation.generate import candidates, exchanged

Open = Callable[[str], AppTest]
Run = Callable[[AppTest], AppTest]
Press = Callable[[AppTest, str], AppTest]
Figures = Callable[[AppTest], list[dict]]
Lit = Callable[..., set[str]]


def drawn(figure: dict) -> list[str]:
    return [row for trace in figure["data"] if trace["mode"] == "markers" for row in trace["customdata"]]


def select(app: AppTest, label: str) -> object:
    (box,) = (box for box in app.selectbox if box.label == label)
    return box


def unpack(values: dict) -> np.ndarray:
    """Plotly sends arrays as base64."""
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])


def test_the_maps_open_on_example_sentences_and_say_whose_they_are(opened: Open, figures: Figures, run: Run) -> None:
    app = opened("maps")
    assert select(app, "Sentences").value == f"{startup.EXAMPLES} (en-fr)"
    assert CREDIT in [caption.value for caption in app.caption]
    app.selectbox(key="data").set_value(startup.BUILT_IN)
    run(app)
    assert sorted(drawn(figures(app)[0])) == sorted(rows.of_grammar(("en", "fr"), 300)["id"])
    assert CREDIT not in [caption.value for caption in app.caption]


def test_both_maps_hold_every_sentence_and_keep_languages_apart(opened: Open, figures: Figures) -> None:
    semantic, language = figures(opened("maps"))
    assert sorted(drawn(semantic)) == sorted(rows.examples(("en", "fr"), 300)["id"]) == sorted(drawn(language))
    panels = {}
    for trace in language["data"]:
        panels.setdefault(trace["xaxis"], set()).update(row[:2] for row in trace["customdata"])
    assert list(panels.values()) == [{"en"}, {"fr"}]


def test_maps_are_of_the_models_own_vectors_and_the_same_every_time(
    opened: Open, figures: Figures, saved: Path
) -> None:
    bgt, table = bgt_core.load(saved), rows.examples(("en", "fr"), 300)
    vectors = [bgt.embed(part["text"].tolist(), lang=lang) for lang, part in table.groupby("lang")]
    expected = geometry.fit(np.concatenate(vectors), geometry.Method()).xy
    position = {}
    for trace in figures(opened("maps"))[0]["data"]:
        if trace["mode"] == "markers":
            xy = np.column_stack([unpack(trace["x"]), unpack(trace["y"])])
            position |= dict(zip(drawn({"data": [trace]}), xy, strict=True))
    assert np.allclose([position[row] for row in table["id"]], expected, atol=1e-4)
    assert figures(opened("maps")) == figures(opened("maps"))


def test_one_map_can_stand_alone(opened: Open, run: Run, figures: Figures) -> None:
    app = opened("maps")
    for shown, panels in (("Semantic", 1), ("Language", 2)):
        app.button_group(key="maps").set_value(shown)
        (figure,) = figures(run(app))
        assert len({trace["xaxis"] for trace in figure["data"]}) == panels


def test_a_selection_lights_the_same_rows_on_both_maps_and_survives_a_new_colour(
    opened: Open, run: Run, lit: Lit
) -> None:
    app = opened("maps")
    app.session_state["chosen"] = ["en3", "fr7"]
    for colour in rows.COLOURS:
        select(app, "Colour").set_value(colour)
        run(app)
        assert lit(app) == {"en3", "fr7"}
    table = rows.examples(("en", "fr"), 300).set_index("id")
    assert app.dataframe[0].value["Sentence"].tolist() == table.loc[["en3", "fr7"], "text"].tolist()
    app.session_state["chosen"] = []
    assert lit(run(app)) == set() and len(app.dataframe[0].value) == 600


def test_what_contains_some_words_can_be_found(opened: Open, run: Run, lit: Lit) -> None:
    app = opened("maps")
    table = rows.examples(("en", "fr"), 300)
    expected = set(table.loc[[".*" not in text and "my " in text.lower() for text in table["text"]], "id"])
    app.text_input(key="find").set_value("MY ")
    run(app)
    assert expected and lit(app) == expected
    app.text_input(key="find").set_value("((")  # no pattern, only text
    assert lit(run(app)) == set()


def test_a_link_to_some_words_selects_their_sentences(opened: Open, run: Run, lit: Lit) -> None:
    given = AppTest.from_string(Path(opened("maps")._script_path).read_text("utf-8"), default_timeout=60)
    given.query_params["find"] = "?"
    expected = set(rows.matching(rows.examples(("en", "fr"), 300), "?"))
    assert expected and lit(run(given)) == expected


def test_the_address_holds_the_selection_and_a_link_restores_it(opened: Open, run: Run, lit: Lit) -> None:
    app = opened("maps")
    app.session_state["chosen"] = ["en3", "en4", "en5", "en9", "fr7"]
    run(app)
    assert app.query_params["rows"] == "en3-5.9~fr7"
    other = AppTest.from_file(app._script_path, default_timeout=60)
    other.query_params["rows"] = "en3-5.9~fr7~de8~en99999~../<b>"
    assert lit(run(other)) == {"en3", "en4", "en5", "en9", "fr7"}
    other.session_state["chosen"] = []
    assert "rows" not in run(other).query_params


def test_a_link_replaces_the_selection_of_the_session(opened: Open, run: Run, lit: Lit) -> None:
    app = opened("maps")
    app.session_state["chosen"] = ["en3", "en4"]
    run(app)
    app.query_params["rows"] = "fr1-3"
    assert lit(run(app)) == {"fr1", "fr2", "fr3"}
    app.session_state["chosen"] = ["en3", "en4"]  # and what is selected then, that of the link
    assert lit(run(app)) == {"en3", "en4"}


def test_a_sentence_of_another_page_becomes_a_star_once(
    opened: Open, run: Run, lit: Lit, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened("maps")
    for _ in range(2):
        app.query_params.update({"star": "It was getting late.", "star_lang": "en"})
        run(app)
        assert lit(app, "chosen") == {"own0"} and "star" not in app.query_params
    app.query_params.update({"star": "Andere Sprache.", "star_lang": "de"})  # none of the model's
    assert lit(run(app), "chosen") == {"own0"}
    monkeypatch.setattr(rows, "MAX_OWN", 1)
    app.query_params.update({"star": "One more.", "star_lang": "en"})
    (warning,) = run(app).warning
    assert "One more" in warning.value and "1 of your own" in warning.value


def test_a_selection_that_no_link_can_hold_is_said(opened: Open, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "MAX_ROWS", 20)
    app = opened("maps")
    app.session_state["chosen"] = [f"en{number}" for number in range(0, 100, 2)]
    run(app)
    assert "rows" not in app.query_params and any("too scattered" in caption.value for caption in app.caption)


def test_the_nearest_of_a_selected_sentence_stand_out_in_both_latents(
    opened: Open, run: Run, lit: Lit, saved: Path
) -> None:
    app = opened("maps")
    app.query_params["rows"] = "fr7"
    app = AppTest.from_file(app._script_path, default_timeout=60)
    app.query_params["rows"] = "fr7"
    run(app)
    bgt, table = bgt_core.load(saved), rows.examples(("en", "fr"), 300)
    french = table[table["lang"] == "fr"]
    expected = {"fr7"}
    for latent, part in (("semantic", table), ("language", french)):
        vectors = [bgt.embed(texts.tolist(), lang=lang, latent=latent) for lang, texts in part.groupby("lang")["text"]]
        place = part["id"].tolist().index("fr7")
        similarities = bgt.similarity(np.concatenate(vectors)[[place]], np.concatenate(vectors))[0]
        similarities[place] = -np.inf
        expected |= set(part["id"].iloc[np.argsort(-similarities, kind="stable")[:10]])
    assert lit(app) == expected and lit(app, "chosen") == {"fr7"}


def test_other_sentences_end_the_selection(
    opened: Open, start: Callable, run: Run, figures: Figures, lit: Lit, saved: Path, tmp_path: Path
) -> None:
    file = tmp_path / "own.tsv"
    file.write_text("".join(f"Sentence {n} here.\tPhrase {n} ici.\n" for n in range(40)), "utf-8")
    start("--model", saved, "--data", f"en,fr={file}")
    app = opened("maps")
    app.session_state["chosen"] = ["en3"]
    select(app, "Sentences").set_value("own.tsv (en-fr)")
    run(app)
    semantic, language = figures(app)
    assert len(drawn(semantic)) == 80 == len(drawn(language)) and lit(app) == set()
    assert any("40 pairs" in caption.value for caption in app.caption)  # 300 were asked for


def test_more_pairs_than_are_shown_are_announced_and_the_shown_ones_are_exported(
    opened: Open,
    start: Callable,
    run: Run,
    figures: Figures,
    saved: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "own.tsv"
    file.write_text("".join(f"Sentence {n} here.\tPhrase {n} ici.\n" for n in range(140)), "utf-8")
    start("--model", saved, "--data", f"en,fr={file}")
    given = {}
    monkeypatch.setattr(exports, "offer", lambda name, table=None, *_, **__: given.update({name: table}))
    app = opened("maps")
    select(app, "Sentences").set_value("own.tsv (en-fr)")
    select(app, "Translation pairs").set_value(100)
    run(app)
    assert any("the first 100 pairs of own.tsv" in caption.value for caption in app.caption)
    semantic = next(table for name, table in given.items() if name.startswith("bgt-maps"))
    assert sorted(semantic["id"]) == sorted(drawn(figures(app)[0])) and len(semantic) == 200


@pytest.mark.parametrize("asked", ["100", "1000", "1,000"])
def test_a_link_may_write_a_number_of_pairs_with_or_without_a_comma(opened: Open, run: Run, asked: str) -> None:
    app = AppTest.from_file(opened("maps")._script_path, default_timeout=60)
    app.query_params["pairs"] = asked
    assert select(run(app), "Translation pairs").value == int(asked.replace(",", ""))


@pytest.mark.parametrize("asked", ["200000", "200,000"])
def test_a_link_to_more_pairs_than_a_map_takes_is_answered_with_the_most(
    opened: Open, run: Run, figures: Figures, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(controls, "COUNTS", [50, 100, 150])  # as if these were many
    app = AppTest.from_file(opened("maps")._script_path, default_timeout=60)
    app.query_params["pairs"] = asked
    assert len(drawn(figures(run(app))[0])) == 300
    assert any("asks for 200,000 pairs; a map takes up to 150" in caption.value for caption in app.caption)
    select(app, "Translation pairs").set_value(100)
    assert not any("200,000" in caption.value for caption in run(app).caption)


def test_past_five_thousand_points_a_map_is_painted_unless_it_is_wanted_drawn(
    opened: Open, run: Run, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart, "MAX_SVG", 150)  # as if these were many
    app = opened("maps")
    select(app, "Translation pairs").set_value(100)
    for sharp, kind in ((False, "scattergl"), (True, "scatter")):
        app.toggle(key="sharp").set_value(sharp)
        semantic, _ = figures(run(app))
        assert {trace["type"] for trace in semantic["data"] if trace["mode"] == "markers"} == {kind}


def test_own_sentences_are_stars_in_their_language_and_go_away(
    opened: Open, run: Run, press: Press, figures: Figures
) -> None:
    app = opened("maps")
    app.text_area[0].set_value("<script>alert(1)</script>\n" + "\n".join(f"Line {n}." for n in range(250)))
    press(app, "Draw as stars")
    assert "51 lines" in app.warning[0].value
    semantic, language = figures(app)
    stars = [trace for trace in semantic["data"] if "star" in str(trace.get("marker", {}).get("symbol"))]
    assert sum(len(trace["customdata"]) for trace in stars) == rows.MAX_OWN
    assert "<script>" not in json.dumps([semantic, language])
    assert len(drawn(language)) == 600 + rows.MAX_OWN
    press(app, f"Remove all {rows.MAX_OWN}")
    assert len(drawn(figures(app)[0])) == 600


def test_umap_waits_for_its_button_and_is_computed_once(
    opened: Open, run: Run, press: Press, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = []
    real = geometry.fit

    def fit(vectors: object, method: geometry.Method) -> geometry.Projection:
        fitted.append(method.name)
        return real(vectors, geometry.Method())

    monkeypatch.setattr(geometry, "fit", fit)
    app = opened("maps")
    app.selectbox(key="map").set_value("UMAP")
    run(app)
    assert fitted == ["PCA"] * 3 and any("PCA (no seed" in caption.value for caption in app.caption)
    press(app, "Compute UMAP")
    assert fitted[3:] == ["UMAP"] * 3 and any("UMAP, neighbours 15, seed 0" in caption.value for caption in app.caption)
    run(app)
    assert len(fitted) == 6 and any("UMAP, neighbours 15" in caption.value for caption in app.caption)


def test_fewer_pairs_keep_the_page_whole(opened: Open, run: Run, figures: Figures, lit: Lit) -> None:
    app = opened("maps")
    app.session_state["chosen"] = ["en5", "en250"]
    select(app, "Translation pairs").set_value(100)
    semantic, _ = figures(run(app))
    assert len(drawn(semantic)) == 200 and lit(app, "chosen") == {"en5"}


@pytest.mark.parametrize("lines", ["Hi.\tSalut.\n", "Hi.\tSalut.\nNo.\tNon.\n", "OK\tOK\n" * 5])
def test_too_few_sentences_for_a_map_are_said(
    opened: Open, start: Callable, run: Run, saved: Path, tmp_path: Path, lines: str
) -> None:
    (tmp_path / "few.tsv").write_text(lines, "utf-8")
    start("--model", saved, "--data", f"en,fr={tmp_path / 'few.tsv'}")
    app = opened("maps")
    select(app, "Sentences").set_value("few.tsv (en-fr)")
    assert any("needs 3 pairs and 3 different" in info.value for info in run(app).info) and not app.get(
        "bidi_component"
    )


def test_the_nearest_of_a_typed_sentence_are_found_in_both_latents_of_its_language(
    opened: Open, run: Run, saved: Path
) -> None:
    app = opened("maps")
    typed, box = "Il est tard.", select(app, "Nearest sentences of")
    box.options.append(typed)
    box.set_value(typed)
    run(app)
    select(app, box.label).options.append(typed)  # a browser offers it from then on; Streamlit's test does not
    (lang,) = (group for group in app.button_group if group.label == "Its language")
    lang.set_value("fr")
    run(app)
    titles = [text.value for text in app.markdown if " latent:" in text.value]
    assert titles == ["**Semantic latent: any language**", "**Language latent: French only**"]
    bgt, french = bgt_core.load(saved), rows.examples(("en", "fr"), 300).query("lang == 'fr'")["text"].tolist()
    vectors = (bgt.embed(texts, lang="fr", latent="language") for texts in ([typed], french))
    similarities = bgt.similarity(*vectors)[0]
    semantic, language = app.dataframe[:2]
    assert language.value["Sentence"].tolist() == [french[at] for at in (-similarities).argsort(kind="stable")[:10]]
    assert set(semantic.value["In"]) <= {"en", "fr"}


def test_a_model_of_other_languages_is_told_how_to_bring_sentences(
    opened: Open, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "read", lambda: startup.StartOptions({"model": str(saved)}, {}, ()))
    app = opened("maps")
    assert "No sentences for this model" in app.info[0].value and "--data" in app.code[0].value
    assert not app.get("bidi_component")


@pytest.mark.parametrize(("what", "moves"), [("Meaning", {0}), ("Style", {1}), ("Both", {0, 1})])
def test_the_way_between_two_sentences_is_written_and_drawn(
    opened: Open, press: Press, run: Run, figures: Figures, saved: Path, what: str, moves: set[int]
) -> None:
    app = opened("maps")
    (move,) = (group for group in app.button_group if group.label == "Move")
    move.set_value(what)
    press(app, "Interpolate")
    walked = app.session_state["walked"]
    first, last = select(app, "From").value, select(app, "To").value
    bgt = bgt_core.load(saved)
    other = last if 1 in moves else first
    sources, styles = [first, last if 0 in moves else first], [first, other]
    latents = exchanged(bgt, sources, styles, "en", "en")
    ends = [best.text for best, *_ in candidates(bgt, latents, lang="en", search=writing.DEFAULT_SEARCH)]
    assert [walked.table["text"].iloc[0], walked.table["text"].iloc[-1]] == ends
    paths = [any(trace["mode"].startswith("lines+") for trace in figure["data"]) for figure in figures(app)]
    assert paths == [0 in moves, 1 in moves]
    for step in (1, 9):
        (slider,) = (slider for slider in app.slider if slider.label.startswith("Step"))
        slider.set_value(step)
        run(app)
        written = walked.table["text"].iloc[step - 1] or "(nothing)"
        assert escape(written) in "".join(part.proto.body for part in app.get("html"))
