"""Maps drawn in the browser, and the component that sends their selection to Python.

They are two components, so that a selection only reruns the fragment of the second: the figures and texts are not
created or sent again.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.core.component import mounted

JS = Path(__file__).parent / "js"
_maps = mounted("maps", "points", "onemap", "legend", folder=JS)
_wire = mounted("selection", folder=JS)
WIRE = "maps_wire"


def draw(
    maps: Mapping[str, tuple[go.Figure, str]], key: str, table: pd.DataFrame, languages: Mapping[str, str], file: str
) -> None:
    """Draw all maps of a page: for each latent, a figure of `compute.map_figures` and its alternative text.

    `table` has their rows (id, lang, text, translation, pair, own), `languages` the languages' names; `file` is the
    name of a saved drawing, with {} for the latent. `key` identifies the rows: selections with another key are ignored.
    """
    texts = {name: table[name].tolist() for name in ("id", "lang", "text", "translation")}
    pair = table["pair"].where(~table["own"], -1).tolist()
    figures = [{"name": name, "alt": alt, "figure": figure.to_json()} for name, (figure, alt) in maps.items()]
    _maps(
        data={"maps": figures, "rows": {**texts, "pair": pair}, "languages": dict(languages), "key": key, "file": file},
        key="maps_view",
    )


def light(
    key: str,
    on_picked: Callable[[], None],
    on_moved: Callable[[], None],
    *,
    chosen: np.ndarray,
    lit: np.ndarray,
    focus: int,
    near: Sequence[tuple[Sequence[int], str]],
    movable: Sequence[str],
    answered: float,
) -> None:
    """Tell the maps which rows of the table to highlight; `on_picked` is called after a selection, `on_moved` after a
    drag.

    `chosen` (N,) bool is the selection; its size is shown. If any row is `lit` (N,), the others fade. `focus` is the
    row drawn as a star, or -1; it can be dragged on the maps of the latents `movable`. `near` are rows to ring, with
    the colours of the rings. `answered` is the time `at` of the move for which a sentence has been generated.
    """
    rings = [{"rows": [int(row) for row in rows], "colour": colour} for rows, colour in near]
    data = {"key": key, "chosen": packed(chosen), "lit": packed(lit), "focus": focus, "near": rings,
            "movable": list(movable), "answered": answered}  # fmt: skip
    _wire(data=data, key=WIRE, on_picked_change=on_picked, on_moved_change=on_moved)


def packed(mask: np.ndarray) -> str:
    """Encode a mask (N,) in base64, lowest bit first; "" if nothing is set."""
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode() if mask.any() else ""


def unpacked(text: str, count: int) -> np.ndarray:
    """Decode a text of `packed` to its mask (count,)."""
    bits = np.frombuffer(base64.b64decode(text), np.uint8)
    return np.unpackbits(bits, count=count, bitorder="little").astype(bool) if text else np.zeros(count, bool)


def event(name: str) -> dict[str, Any]:
    """Return the last event from the browser: "picked" {key, rows, id} or "moved" {key, id, map, x, y, at}."""
    return dict(st.session_state[WIRE][name] or {})
