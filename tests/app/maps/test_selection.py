"""On the maps: sentences found by words, meaning or style; a selection described; maps on probe axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.core import corpora, startup, state
from app.core.latents import spaces

Open = Callable[..., Any]


def find(app: Any, text: str, way: str = "Words") -> list[str]:
    """The ids that are selected after a text is looked for."""
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
    table = corpora.sentences(startup.read().texts["Example sentences (en-fr)"], 300)
    vectors = spaces.vectors_of(loaded, table, "semantic")
    similar = loaded.encoder.similarity(loaded.encoder.embed(["Where is the dog?"], lang="en"), vectors)[0]
    assert set(by_meaning) == set(table["id"].iloc[(-similar).argsort(kind="stable")[:20]])


def test_what_no_sentence_has_is_said_and_nothing_is_selected(opened: Open) -> None:
    app = opened("maps")
    assert find(app, "xyzzy") == []
    assert any("No sentence has “xyzzy”" in caption.value for caption in app.caption)


def test_nearest_are_those_of_a_row_or_of_a_typed_text_and_of_nothing_that_is_gone(opened: Open) -> None:
    app = opened("maps")
    app.text_area[0].set_value("Where is my dog?")
    app.press("Draw as stars")
    box = app.selectbox(key="nearest_of")
    assert box.value == "own0"
    app.press("Remove your 1 sentence")
    assert app.selectbox(key="nearest_of").value is None  # not a text "own0"
    app.selectbox(key="nearest_of").set_value("en7").run()
    assert app.session_state["chosen"] == ["en7"]


def test_a_star_that_was_dragged_on_another_map_is_back_in_its_place(opened: Open) -> None:
    app = opened("maps")
    app.selectbox(key="nearest_of").set_value("en7").run()
    moved = {"id": "en7", "map": "semantic", "x": 0.1, "y": 0.1, "at": 1}
    app.session_state["moved"] = moved | {"of": ("another model", None)}
    assert any(caption.value.startswith("Drag the star") for caption in app.run().caption)


def test_a_selection_is_described_beside_the_map(opened: Open) -> None:
    app = opened("maps")
    chosen = find(app, "?")
    (described,) = (table.value for table in app.table if "Measure" in table.value)
    lines = described.set_index("Measure")
    assert lines.loc["Sentences", "Selected"] == str(len(chosen))
    assert lines.loc["Closing mark: question", "Selected"] in ("98%", "99%", "100%")  # one is quoted inside
    assert lines.loc["Closing mark: question", "Difference"].startswith("+")


def test_maps_have_the_axes_that_were_asked_for_and_say_how_well_they_are_read(opened: Open) -> None:
    app = opened("maps")
    app.put(app.selectbox(key="map"), "Probe axes")
    assert app.selectbox(key="axis_x").options == ["Longer", "Question", "Negation"]
    (caption,) = (caption.value for caption in app.caption if "linear probes" in caption.value)
    assert caption.startswith("Longer to the right, Question upwards")
    assert "longer correlation" in caption and "question AUC" in caption
    app.put(app.selectbox(key="axis_x"), "Question")
    assert app.selectbox(key="axis_y").options == ["Longer", "Negation"]
