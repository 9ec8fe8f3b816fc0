"""Selections with names, kept in the link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.core.address import MAX_ROWS

Open = Callable[..., Any]


def kept(app: Any, name: str, chosen: Sequence[str]) -> None:
    """Select rows and keep them under a name."""
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
