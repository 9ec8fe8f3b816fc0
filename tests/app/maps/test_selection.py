"""On the maps: search by words, meaning or style; the description of a selection; maps on probe axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from app.core import corpora, startup, state
from app.core.address import MAX_ROWS
from app.core.latents import spaces
from app.maps import selection

Open = Callable[..., Any]


def find(app: Any, text: str, way: str = "Words") -> list[str]:
    """Search for a text, and return the ids of the selected rows."""
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
    similar = loaded.similarity(loaded.embed(["Where is the dog?"], lang="en"), vectors)[0]
    assert set(by_meaning) == set(table["id"].iloc[(-similar).argsort(kind="stable")[:20]])


def test_nearest_are_those_of_a_row_or_of_a_typed_text_and_of_nothing_that_is_gone(opened: Open) -> None:
    app = opened("maps")
    app.text_area[0].set_value("Where is my dog?")
    app.press("Draw as stars")
    box = app.selectbox(key="nearest_of")
    assert box.value == "own0"
    app.press("Remove your 1 sentence")
    assert app.selectbox(key="nearest_of").value is None  # not the text "own0"
    app.selectbox(key="nearest_of").set_value("en7").run()
    assert app.session_state["chosen"] == ["en7"]


def test_maps_have_the_axes_that_were_asked_for_and_say_how_well_they_are_read(opened: Open) -> None:
    app = opened("maps")
    app.put(app.selectbox(key="map"), "Probe axes")
    assert app.selectbox(key="axis_x").options == ["Longer", "Question", "Negation"]
    (caption,) = (caption.value for caption in app.caption if "linear probes" in caption.value)
    assert caption.startswith("Longer to the right, Question upwards")
    assert "longer correlation" in caption and "question AUC" in caption
    app.put(app.selectbox(key="axis_x"), "Question")
    assert app.selectbox(key="axis_y").options == ["Longer", "Negation"]


def kept(app: Any, name: str, chosen: Sequence[str]) -> None:
    """Select rows, and save them under a name."""
    app.session_state["chosen"] = list(chosen)
    app.run()
    app.put(app.text_input(key="slice_name"), name)
    app.press("Keep")


def test_a_slice_is_kept_by_name_selected_again_and_brought_by_a_link(opened: Open) -> None:
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


def test_a_slice_too_long_for_a_link_stays_in_the_session(opened: Open) -> None:
    app = opened("maps")
    every_other = [f"en{number}" for number in range(0, 300, 2)] + [f"fr{number}" for number in range(0, 300, 2)]
    kept(app, "x" * 40, every_other)
    kept(app, "y" * 40, every_other)
    assert list(app.session_state["slice"]) == ["x" * 40, "y" * 40]
    linked = app.query_params["slice"]
    assert linked.startswith("x" * 40) and len(linked) < MAX_ROWS


@pytest.mark.parametrize("count", [1, 8, 13])
def test_a_selection_comes_back_as_it_was_sent(count: int) -> None:
    mask = np.random.default_rng(count).random(count) < 0.5
    mask[0] = True
    assert selection.unpacked(selection.packed(mask), count).tolist() == mask.tolist()
    assert selection.packed(mask & False) == "" and not selection.unpacked("", count).any()
