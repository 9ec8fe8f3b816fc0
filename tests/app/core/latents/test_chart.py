"""Figures of maps show each row of a table at its coordinates. HTML in a row's text is shown as it is."""

from collections import Counter

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from app.core import rows
from app.core.latents import chart

LANGS = ("en", "fr")


@pytest.fixture
def table() -> pd.DataFrame:
    """Six pairs of translations and a sentence that the user typed, with random coordinates."""
    own = rows.typed("<b>Bold</b> &amp; <a href='x'>linked</a>", "fr", 0)[0]
    both = pd.concat([rows.examples(("en", "fr"), 6), own], ignore_index=True)
    rng = np.random.default_rng(0)
    styles = {name: rows.styled(both, name) for name in rows.STYLES}
    groups = {rows.TOPIC: pd.Categorical(rng.choice(["1", "2"], len(both)), ["1", "2"])}
    return both.assign(x=rng.normal(size=len(both)), y=rng.normal(size=len(both)), **styles, **groups)


def markers(figure: go.Figure) -> list[go.Scatter]:
    return [trace for trace in figure.data if trace.mode == "markers"]


def ids(trace: go.Scatter) -> list[str]:
    return list(trace.customdata)


@pytest.mark.parametrize("colour", rows.COLOURS)
def test_every_row_is_drawn_once_at_its_place_with_its_languages_symbol(table: pd.DataFrame, colour: str) -> None:
    traces = markers(chart.latent_map({"Semantic": table}, colour, LANGS))
    drawn = {row: (x, y) for trace in traces for row, x, y in zip(ids(trace), trace.x, trace.y, strict=True)}
    assert Counter(row for trace in traces for row in ids(trace)) == Counter(table["id"])
    assert drawn == {row.id: (row.x, row.y) for row in table.itertuples()}
    symbols: dict[str, set[str]] = {}
    for trace in traces:
        for row in ids(trace):
            symbols.setdefault(row[:2], set()).add(trace.marker.symbol)
    assert symbols == {"en": {"circle"}, "fr": {"diamond"}, "ow": {"star-diamond"}}


def test_the_chosen_rows_and_no_others_stand_out(table: pd.DataFrame) -> None:
    chosen = {"en1", "fr4", "own0"}
    traces = markers(chart.latent_map({"Map": table}, "mark", LANGS, chosen=chosen))
    assert {ids(trace)[at] for trace in traces for at in trace.selectedpoints} == chosen
    assert all(trace.selectedpoints is not None for trace in traces)  # plotly would not fade a trace with None
    assert all(trace.selectedpoints is None for trace in markers(chart.latent_map({"Map": table}, "mark", LANGS)))


def test_hover_text_is_plain_and_short(table: pd.DataFrame) -> None:
    text = chart.hover("<img src=x onerror=alert(1)> & " + "long " * 200, "<i>", "en")
    assert "<img" not in text and "&lt;img src=x" in text and "&amp;" in text and "<i>&lt;i&gt;</i>" in text
    assert text.count("<br>") <= 12
    drawn = [shown for trace in markers(chart.latent_map({"Map": table}, "lang", LANGS)) for shown in trace.text]
    assert sum("&lt;b&gt;Bold&lt;/b&gt; &amp;amp;" in shown for shown in drawn) == 1
    assert not any("<a " in shown for shown in drawn)
