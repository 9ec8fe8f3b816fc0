"""On the maps: rows found by the values of a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.core import corpora, startup

Open = Callable[..., Any]


def test_rows_are_found_by_the_values_of_a_column(opened: Open) -> None:
    app = opened("maps")
    table = corpora.sentences(startup.read().texts["Example sentences (en-fr)"], 300)
    (control,) = (control for control in app.segmented_control if control.label == "Find by")
    control.set_value("Column")
    app.run()
    app.put(app.selectbox(key="find_column"), "words")
    app.put(app.slider(key="values of words"), (5, 7))
    assert app.session_state["chosen"] == table.loc[table["words"].between(5, 7), "id"].tolist() != []
    app.put(app.selectbox(key="find_column"), "mark")
    assert app.session_state["chosen"] == []
    app.put(app.multiselect(key="values of mark"), ["question", "exclamation"])
    assert app.session_state["chosen"] == table.loc[table["mark"].isin(["question", "exclamation"]), "id"].tolist()
