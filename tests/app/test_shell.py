"""A new page needs a module with `page(loaded)`, and a row of `PAGES`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import streamlit as st

from app import shell
from bgt_core.errors import DataError


def test_a_page_from_outside_is_drawn_as_the_others(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("app.echo.page")

    def page(loaded: Any) -> None:
        text = st.text_input("Your sentence")
        st.write(f"{loaded.name}: {text}")
        if "?" in text:
            raise DataError("a question: give a statement")

    module.page = page  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "app.echo.page", module)
    monkeypatch.setitem(shell.PAGES, "echo", shell.Page("echo", "echo", "Echo", "campaign", "It repeats you."))
    app = opened("echo")
    assert [app.title[0].value, app.markdown[0].value] == ["Echo", "It repeats you."]
    app.text_input[0].set_value("It is late?")
    assert "a question: give a statement" in str(app.run().error[0].value)
    app.text_input[0].set_value("It is late.")
    app.run()
    assert not app.error and any("It is late." in part.value for part in app.markdown)
