"""Test the page "Maps": maps of both latents, selected rows, search, the user's sentences, and interpolation."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind

from app.core import exports, inventory, rows, state
from app.core.latents import geometry, spaces
from app.maps import compute
from tests.app.conftest import decoded

Open = Callable[..., Any]


def drawn(panels: list[dict]) -> list[str]:
    return [row for panel in panels for row in panel["ids"]]


def test_both_maps_hold_every_sentence_and_bars_count_what_the_table_has(opened: Open) -> None:
    app, table = opened("maps", colour="Length in words"), rows.examples(("en", "fr"), 300)
    semantic, language = app.maps()
    assert sorted(drawn(semantic)) == sorted(table["id"]) == sorted(drawn(language))
    assert len(semantic) == 1 and [{row[:2] for row in panel["ids"]} for panel in language] == [{"en"}, {"fr"}]
    (data,) = (data for data in app.sent() if "columns" in data)
    columns = {column["name"]: column for column in data["columns"]}
    assert {"words", "mark", "address", "contraction", "lang"} <= {*columns}
    marks = [columns["mark"]["categories"][code]["label"] for code in decoded(columns["mark"]["codes"])]
    assert marks == table["mark"].replace("none", "no mark").tolist()
    assert np.array_equal(decoded(columns["words"]["values"]), table["words"])
    labels = [columns["lang"]["categories"][code]["label"] for code in decoded(columns["lang"]["codes"])]
    assert labels == table["lang"].map(rows.language_name).tolist()


def test_a_selection_lights_the_same_rows_on_both_maps_and_survives_a_new_colour(opened: Open) -> None:
    app = opened("maps")
    app.session_state["chosen"] = ["en3", "fr7"]
    for colour in ("words", rows.TOPIC):
        app.put(app.box("Colour"), colour)
        assert app.lit() == {"en3", "fr7"}
    table = rows.examples(("en", "fr"), 300).set_index("id")
    assert app.dataframe[0].value["Sentence"].tolist() == table.loc[["en3", "fr7"], "text"].tolist()
    app.session_state["chosen"] = []
    assert app.run().lit() == set() and len(app.dataframe[0].value) == 600


def test_what_contains_some_words_can_be_found(opened: Open) -> None:
    app = opened("maps")
    table = rows.examples(("en", "fr"), 300)
    expected = set(table.loc[[".*" not in text and "my " in text.lower() for text in table["text"]], "id"])
    app.put(app.text_input(key="find"), "MY ")
    assert expected and app.lit() == expected
    app.text_input(key="find").set_value("((")  # a search text is not a regular expression
    assert app.run().lit() == set()
    assert opened("maps", find="?").lit() == set(rows.matching(table, "?"))


@pytest.mark.slow
def test_the_address_holds_the_selection_and_a_link_restores_it(opened: Open) -> None:
    app = opened("maps")
    app.session_state["chosen"] = ["en3", "en4", "en5", "en9", "fr7"]
    app.run()
    assert app.query_params["rows"] == "en3-5.9~fr7"
    other = opened("maps", rows="en3-5.9~fr7~de8~en99999~../<b>")
    assert other.lit() == {"en3", "en4", "en5", "en9", "fr7"}
    other.session_state["chosen"] = []
    assert "rows" not in other.run().query_params
    app.query_params["rows"] = "fr1-3"
    assert app.run().lit() == {"fr1", "fr2", "fr3"}  # the link's selection replaces the session's
    app.session_state["chosen"] = ["en3", "en4"]  # a new selection replaces that of the link
    assert app.run().lit() == {"en3", "en4"}


def test_a_sentence_of_another_page_becomes_a_star_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("maps")
    for _ in range(2):
        app.query_params.update({"star": "It was getting late.", "star_lang": "en"})
        app.run()
        assert app.lit("chosen") == {"own0"} and "star" not in app.query_params
    app.query_params.update({"star": "Andere Sprache.", "star_lang": "de"})  # a language that this model lacks
    assert app.run().lit("chosen") == {"own0"}
    app.session_state["sentence"], app.session_state["language"] = "Nous n'avons pas pu entendre la réponse.", "en"
    assert app.run().press("Your sentence is French").lit("chosen") == {"own1"}  # it replaces the English star
    assert not app.warning and app.session_state["language"] == "fr"
    monkeypatch.setattr(rows, "MAX_OWN", 1)
    app.query_params.update({"star": "One more.", "star_lang": "en"})
    (warning,) = app.run().warning
    assert "One more" in warning.value and "up to 1 sentences" in warning.value


def test_other_sentences_end_the_selection_and_those_shown_are_exported(
    opened: Open, start: Callable, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own.tsv"
    file.write_text("".join(f"Sentence {n} here.\tPhrase {n} ici.\n" for n in range(140)), "utf-8")
    start("--model", saved, "--data", f"en,fr={file}")
    given = {}
    monkeypatch.setattr(exports, "offer", lambda name, table=None, *_, **__: given.update({name: table}))
    app = opened("maps")
    app.session_state["chosen"] = ["en3"]
    app.box("Sentences").set_value("own.tsv (en-fr)")
    app.put(app.box("Translation pairs"), 100)
    assert app.lit() == set() and any("the first 100 pairs of own.tsv" in caption.value for caption in app.caption)
    exported = next(table for name, table in given.items() if name.startswith("bgt-maps"))
    for panels in app.maps():
        assert sorted(exported["id"]) == sorted(drawn(panels)) and len(exported) == 200
    assert "vector lengths" in exported["map"].iloc[0] and {"x_semantic", "y_language"} < {*exported}


@pytest.mark.usefixtures("fresh")
def test_umap_waits_for_its_button_and_is_computed_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []
    real = geometry.fit

    def fit(vectors: object, method: geometry.Method) -> geometry.Projection:
        fitted.append(method.name)
        return real(vectors, geometry.Method())

    monkeypatch.setattr(geometry, "fit", fit)
    app = opened("maps")
    app.put(app.selectbox(key="map"), "UMAP")
    assert fitted == ["PCA"] * 3 and any("PCA (no seed" in caption.value for caption in app.caption)
    app.press("Compute UMAP")
    assert fitted[3:] == ["UMAP"] * 3 and any("UMAP, neighbours 15, seed 0" in caption.value for caption in app.caption)
    app.run()
    assert len(fitted) == 6 and any("UMAP, neighbours 15" in caption.value for caption in app.caption)
    del app.session_state["fitted_of"]
    app.session_state["arrived"], app.query_params["map"] = True, "UMAP"  # as if a link had opened the page
    assert any("UMAP, neighbours 15" in caption.value for caption in app.run().caption)


@pytest.mark.parametrize("lines", ["Hi.\tSalut.\n", "Hi.\tSalut.\nNo.\tNon.\n", "OK\tOK\n" * 5])
def test_too_few_sentences_are_no_map(opened: Open, start: Callable, saved: Path, tmp_path: Path, lines: str) -> None:
    (tmp_path / "few.tsv").write_text(lines, "utf-8")
    start("--model", saved, "--data", f"en,fr={tmp_path / 'few.tsv'}")
    app = opened("maps")
    app.box("Sentences").set_value("few.tsv (en-fr)")
    assert any("needs 3 pairs and 3" in info.value for info in app.run().info) and not app.get("bidi_component")


@pytest.mark.parametrize(("what", "moves"), [("Meaning", {0}), ("Style", {1}), ("Both", {0, 1})])
def test_an_interpolation_is_written_and_drawn(opened: Open, library: Callable, what: str, moves: set[int]) -> None:
    app = opened("maps")
    (move,) = (group for group in app.button_group if group.label == "Move")
    move.set_value(what)
    app.press("Interpolate")
    walked = app.session_state["walked"]
    first, last = app.text_input(key="start").value, app.text_input(key="end").value
    sources, styles = ([first, last if side in moves else first] for side in (0, 1))
    ends = [best.text for best in library(sources, styles)]
    assert [walked.table["text"].iloc[0], walked.table["text"].iloc[-1]] == ends
    paths = [any(panel["path"] for panel in panels) for panels in app.maps()]
    assert paths == [0 in moves, 1 in moves]
    (shown,) = (table.value for table in app.table if "From step" in table.value)
    assert shown["From step"].iloc[0] == "1" and len(shown) <= 9
    assert f"of the {'language' if what == 'Style' else 'semantic'} latent" in "".join(
        text.value for text in app.markdown
    )


def test_selected_sentences_are_mapped_alone_with_their_translations(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[str] = []
    monkeypatch.setattr(exports, "offer", lambda *_, page, **__: pages.append(page()))
    monkeypatch.setattr(state, "second", state.model)  # the model is compared with itself
    app = opened("maps", rows="en1-9", map="PCA")
    assert '"chosen": "/gMAAA' in pages[0]  # the saved file has the selection: the bits 1 to 9
    assert '"name": "semantic of ' in pages[0]  # and the maps of the second model
    app.press("Map these alone")
    nine = {f"{lang}{number}" for lang in ("en", "fr") for number in range(1, 10)}
    assert set(drawn(app.maps()[0])) == nine
    assert "Mapped alone: 9 of 300 pairs." in [caption.value for caption in app.caption]
    linked = opened("maps", alone="en1-9", map="PCA")
    assert set(drawn(linked.maps()[0])) == nine
    assert len(drawn(linked.press("Map all again").maps()[0])) == 600


def vectors_of(tmp_path: Path, vectors: np.ndarray) -> tuple[str, ...]:
    """Write vectors and their sentences to files. Return the command-line options that open both in the app."""
    text = "".join(f"Sentence number {at} is here.\n" for at in range(len(vectors)))
    for name in ("v.txt", "t.txt"):
        (tmp_path / name).write_text(text)
    np.save(tmp_path / "v.npy", vectors.astype(np.float32))
    return "--model", f"vectors:{tmp_path / 'v.npy'}", "--data", f"en={tmp_path / 't.txt'}"


@pytest.mark.parametrize(
    ("count", "different", "told"),
    [
        (120, 1, "The vectors of semantic are all the same"),
        (120, 3, "t-SNE needs 5 vectors that it can tell apart; drawn by PCA: semantic."),
        (3, 3, "t-SNE needs 5 vectors that it can tell apart; drawn by PCA: semantic."),
        (7, 7, "Perplexity used, because there are few vectors: semantic 2."),
        (100, 100, "Trustworthiness"),
    ],
)
def test_few_or_equal_vectors_are_mapped_at_once_and_the_caption_says_how(
    start: Callable, opened: Open, tmp_path: Path, count: int, different: int, told: str
) -> None:
    vectors = np.random.default_rng(0).normal(size=(different, 16))[np.arange(count) % different]
    start(*vectors_of(tmp_path, vectors))
    app = opened("maps", data="t.txt (en)", map="t-SNE")
    assert not any(button.label.startswith("Compute") for button in app.button)
    (caption,) = (caption.value for caption in app.caption if caption.value.startswith("t-SNE, perplexity 30"))
    assert told in caption
    xy = app.maps()[0][0]["xy"]
    assert len(np.unique(xy, axis=0)) == different


def find(app: Any, text: str, way: str = "Words") -> list[str]:
    """Search for a text by words, meaning or style (`way`), and return the ids of the rows that are then selected."""
    (control,) = (control for control in app.segmented_control if control.label == "Find by")
    control.set_value(way)
    app.text_input(key="find").set_value(text)
    return app.run().session_state["chosen"]


def test_found_by_meaning_or_style_are_the_nearest_in_that_latent(opened: Open) -> None:
    app = opened("maps")
    by_words = find(app, "the")
    by_meaning = find(app, "Where is the dog?", "Meaning")
    assert len(by_meaning) == 20 and by_meaning != by_words
    by_style = find(app, "Where is the dog?", "Style")
    assert len(by_style) == 20 and all(row.startswith("en") for row in by_style)
    assert by_style != by_meaning
    loaded = state.model()
    table = inventory.sentences(inventory.read().texts["Example sentences (en-fr)"], 300)
    vectors = spaces.vectors_of(loaded, table, "semantic")
    similar = loaded.similarity(loaded.embed(["Where is the dog?"], lang="en"), vectors)[0]
    assert set(by_meaning) == set(table["id"].iloc[(-similar).argsort(kind="stable")[:20]])


def test_nearest_are_those_of_a_row_or_of_a_typed_text_and_of_nothing_that_is_gone(opened: Open) -> None:
    app = opened("maps")
    app.text_area[0].set_value("Where is my dog?")
    app.press("Draw as stars")
    box = app.selectbox(key="nearest_of")
    assert box.value == "own0"
    app.press("Remove your 1 sentence")
    assert app.selectbox(key="nearest_of").value is None  # the removed sentence is no longer selected
    app.selectbox(key="nearest_of").set_value("en7").run()
    assert app.session_state["chosen"] == ["en7"]


def test_maps_have_the_axes_that_were_asked_for_and_say_how_well_they_are_read(opened: Open) -> None:
    app = opened("maps")
    app.put(app.selectbox(key="map"), "Chosen axes")
    assert app.selectbox(key="axis_x").options[:4] == ["Longer", "Question", "Negation", "PCA 1"]
    (caption,) = (caption.value for caption in app.caption if "linear probes" in caption.value)
    assert caption.startswith("Longer to the right, Question upwards")
    assert "longer correlation" in caption and "question AUC" in caption
    app.put(app.selectbox(key="axis_x"), "Question")
    assert app.selectbox(key="axis_y").options[:3] == ["Longer", "Negation", "PCA 1"]


def test_an_axis_between_two_sentences_has_them_at_0_and_1_and_components_are_those_of_pca(opened: Open) -> None:
    ends = {"axis_start": "Where is the dog?", "axis_end": "It was late."}
    three = {"map": "Chosen axes", "3d": "true", "axis_x": "Between two sentences", "axis_y": "PCA 1"}
    app = opened("maps", axis_z="PCA 3", **three, **ends)
    for text in ends.values():
        app.text_area[0].set_value(text)
        app.press("Draw as stars")
    ((semantic,), _) = app.maps()
    x, _, z = semantic["xy"].T
    assert x[-2:] == pytest.approx([0, 1], abs=1e-3)
    pca = opened("maps", map="PCA", **{"3d": "true"}).maps()[0][0]["xy"][:, 2]
    assert abs(np.corrcoef(z[:600], pca)[0, 1]) > 0.999


def kept(app: Any, name: str, chosen: Sequence[str]) -> None:
    """Select rows, and save the selection under a name."""
    app.session_state["chosen"] = list(chosen)
    app.run()
    app.put(app.text_input(key="slice_name"), name)
    app.press("Keep")


def test_a_slice_is_kept_by_name_selected_again_and_in_a_link_if_it_is_short(opened: Open) -> None:
    app = opened("maps")
    kept(app, "polite: yes", ["en3", "en4", "fr7"])
    kept(app, "short", ["en9"])
    assert app.query_params["slice"] == ["polite: yes:en3-4~fr7", "short:en9"]
    for other in (app, opened("maps", slice=["polite: yes:en3-4~fr7", "short:en9", "none:en99999", "<b>:../x"])):
        (pills,) = (pills for pills in other.button_group if pills.label == "Select")
        assert pills.options == ["polite: yes", "short"]
        other.put(pills, "polite: yes")
        assert other.session_state["chosen"] == ["en3", "en4", "fr7"] and other.lit() == {"en3", "en4", "fr7"}
    app.press("Remove it")
    assert app.query_params["slice"] == "short:en9"
    every_other = [f"{lang}{number}" for lang in ("en", "fr") for number in range(0, 300, 2)]
    for name in ("x" * 40, "y" * 40):  # the URL has no space for the second selection
        kept(app, name, every_other)
    assert list(app.session_state["slice"]) == ["short", "x" * 40, "y" * 40]
    assert [text.partition(":")[0] for text in app.query_params["slice"]] == ["short", "x" * 40]


@pytest.fixture
def table() -> pd.DataFrame:
    english = ["Is the train late?", "Which train?", "A train to Paris?", "I like tea."]
    french = ["Le thé est bon.", "Il aime le thé.", "Nous buvons.", "Oui."]
    return pd.concat([rows.table(english, "en", english), rows.table(french, "fr", french)], ignore_index=True)


def test_translations_coincide_within_the_width_of_a_mark(table: pd.DataFrame) -> None:
    """The map is 10 wide, and points are 0.15 wide. Four pairs of translations are 0, 0.1, 0.2 and 5 apart. The
    sentence that the user typed has no translation, so it does not count."""
    own = rows.typed("A star.", "en", 0)[0].assign(x=0.0, y=0.0)
    placed = table.assign(x=[0, 1, 2, 10, 0, 1, 2.2, 5], y=[0, 0, 0, 0, 0, 0.1, 0, 0])
    assert compute.coincide(pd.concat([placed, own])) == (2, 4)


def test_a_selection_is_described_against_the_rest(table: pd.DataFrame) -> None:
    chosen = np.arange(8) < 3
    lines = compute.compared(table, chosen).set_index("Measure")
    assert lines.loc["Sentences", ["Selected", "Rest"]].tolist() == ["3", "5"]
    assert lines.loc["Words in a sentence", ["Selected", "Rest"]].tolist() == ["3.3", "2.8"]
    assert lines.loc["Closing mark: question", ["Selected", "Rest"]].tolist() == ["100%", "0%"]
    assert "Closing mark: exclamation" not in lines.index
    assert lines.loc["English", "Difference"].startswith("+80 [")
    assert lines.loc["Words that stand out", "Selected"] == "train"
    for count in (0, 1, 8):  # a selection of none, one or all rows can't be compared
        lines = compute.compared(table, np.arange(8) < count).set_index("Measure")
        assert not lines.loc["Words in a sentence", "Difference"]


def test_intervals_are_welchs_and_newcombes() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(5, 1, 9), rng.normal(3, 2, 30)
    low, high = ttest_ind(left, right, equal_var=False).confidence_interval()
    assert compute.mean_difference(left, right)[2] == f"{left.mean() - right.mean():+.1f} [{low:.1f}, {high:.1f}]"
    has = np.repeat([True, False, True, False], [56, 14, 48, 32])  # Newcombe (1998), table II: 56 of 70, 48 of 80
    assert compute.share_difference(has, np.arange(150) < 70) == ("80%", "60%", "+20 [5, 33]")


def test_whole_words_come_before_parts_of_words() -> None:
    table = rows.table(["The train is late.", "Un entraînement", "She is training.", "TRAIN!", "(a+b)"], "en", None)
    assert rows.matching(table, "train") == ["own0", "own3"]
    assert rows.matching(table, "rain") == ["own0", "own2", "own3"]
    assert rows.matching(table, "(a+b") == ["own4"]
    assert rows.matching(table, ".") == ["own0", "own2"]
    assert rows.matching(table, "plane") == []
