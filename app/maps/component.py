"""Maps drawn in the browser, and the component that sends their selection to Python.

They are two components, so that a selection reruns only the fragment of the second: neither the figures nor the texts
are made or sent again.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.core.component import mounted

JS = Path(__file__).parent / "js"
_maps = mounted("maps", "points", "onemap", "legend", folder=JS)
_wire = mounted("selection", folder=JS)
WIRE = "maps_wire"


class Map(NamedTuple):
    """A figure of `compute.map_figures`, the latent it is of, and a text in its place."""

    latent: str
    figure: go.Figure
    alt: str


class Light(NamedTuple):
    """The highlights of all maps: rows by their index in the table of texts."""

    chosen: np.ndarray  # (N,) bool: the selection, which is counted
    lit: np.ndarray  # (N,) bool: rows that do not fade; if none is set, nothing fades
    sentence: int = -1  # the row drawn as a star
    near: Sequence[tuple[Sequence[int], str]] = ()  # rows to ring, and the rings' colour
    movable: Sequence[str] = ()  # latents on whose maps the star can be dragged
    answered: float = 0  # the time `at` of the move whose sentence has been written


def draw(maps: Sequence[Map], key: str, table: pd.DataFrame, languages: Mapping[str, str], file: str) -> None:
    """Draw all maps of a page; `table` has their rows (id, lang, text, translation, pair, own), `languages` names them,
    and `file` names a saved drawing, with {} for the latent. `key` names the rows: selections with another key are
    ignored."""
    texts = {name: table[name].tolist() for name in ("id", "lang", "text", "translation")}
    pair = table["pair"].where(~table["own"], -1).tolist()
    figures = [{"name": part.latent, "alt": part.alt, "figure": part.figure.to_json()} for part in maps]
    _maps(
        data={"maps": figures, "rows": {**texts, "pair": pair}, "languages": dict(languages), "key": key, "file": file},
        key="maps_view",
    )


def light(key: str, shown: Light, on_picked: Callable[[], None], on_moved: Callable[[], None]) -> None:
    """Tell the maps which rows stand out; `picked` and `moved` are called after the user has selected or dragged."""
    _wire(
        data={
            "key": key,
            "chosen": packed(shown.chosen),
            "lit": packed(shown.lit),
            "focus": shown.sentence,
            "near": [{"rows": [int(row) for row in rows], "colour": colour} for rows, colour in shown.near],
            "movable": list(shown.movable),
            "answered": shown.answered,
        },
        key=WIRE,
        on_picked_change=on_picked,
        on_moved_change=on_moved,
    )


def packed(mask: np.ndarray) -> str:
    """A mask (N,) in base64, lowest bit first; "" if nothing is set."""
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode() if mask.any() else ""


def unpacked(text: str, count: int) -> np.ndarray:
    """The mask (count,) of a `packed` text."""
    bits = np.frombuffer(base64.b64decode(text), np.uint8)
    return np.unpackbits(bits, count=count, bitorder="little").astype(bool) if text else np.zeros(count, bool)


def event(name: str) -> dict[str, Any]:
    """The last event from the browser: "picked" {key, rows, id} or "moved" {key, id, map, x, y, at}."""
    return dict(st.session_state[WIRE][name] or {})
