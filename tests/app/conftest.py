"""Pages without a browser: one is opened by its module's name, on an untrained model."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from app.core import writing
from app.sentence import properties
from bgt_core.generation import generate, search
from probes.result import SCHEMA, Difference, ProbeResult, ProbeScore

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"
NEEDS = {  # pages that link to others
    "sentence": "st.empty(), page.Next(there, there, there, there, there)",
    "languages": "there",
    "plane": "there, there",
}
SCRIPT = """
import streamlit as st
from app.{name} import page
there = st.Page(lambda: None, title="There", url_path="there")
st.navigation([there], position="hidden")
page.page({arguments})
"""


scanned = cache(manifest_scanner.scan_component_manifests)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def without_probes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page fits probes for seconds: only its own tests wait for that."""
    if request.path.parent.name != "sentence":
        monkeypatch.setattr(properties, "names", lambda lang: [])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained model writes on and on: grids and swaps end early. Streamlit reads the installed packages once."""
    monkeypatch.setattr(writing, "MAX_LENGTH", 12)
    for write in (writing.candidates, generate.candidates, generate.generate, search.decode):
        monkeypatch.setitem(write.__kwdefaults__, "max_length", 12)
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", scanned)


@pytest.fixture
def start(saved: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """start(*arguments): what the app is started with; at first an untrained model."""

    def choose(*arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["main.py", *map(str, arguments)])

    choose("--model", saved)
    return choose


@pytest.fixture
def run() -> Callable[[AppTest], AppTest]:
    """run(app): once more, and nothing may have gone wrong."""

    def once(app: AppTest) -> AppTest:
        app.run()
        assert not app.exception, [part.stack_trace for part in app.exception]
        return app

    return once


@pytest.fixture
def opened(start: Callable[..., None], run: Callable[[AppTest], AppTest]) -> Callable[[str], AppTest]:
    """opened(name): that page, run once; "main" is the whole app."""

    def show(name: str) -> AppTest:
        if name == "main":
            return run(AppTest.from_file(MAIN, default_timeout=180))
        script = SCRIPT.format(name=name, arguments=NEEDS.get(name, ""))
        return run(AppTest.from_string(script, default_timeout=180))

    return show


@pytest.fixture
def press(run: Callable[[AppTest], AppTest]) -> Callable[[AppTest, str], AppTest]:
    """press(app, label): the one button with that label."""

    def go(app: AppTest, label: str) -> AppTest:
        (button,) = (button for button in app.button if button.label == label)
        button.click()
        return run(app)

    return go


@pytest.fixture
def figures() -> Callable[[AppTest], list[dict]]:
    """figures(app): what plotly is given, in charts and on maps; every figure has a text in its place."""

    def read(app: AppTest) -> list[dict]:
        charts = [(chart.proto.alt, chart.proto.spec) for chart in app.get("plotly_chart")]
        drawn = [(part["alt"], part["figure"]) for data in sent(app) for part in data.get("maps", [])]
        assert all(alt for alt, _ in [*charts, *drawn])
        return [json.loads(figure) for _, figure in [*charts, *drawn]]

    return read


@pytest.fixture
def lit() -> Callable[..., set[str]]:
    """lit(app, what): ids of the rows that stand out on all maps ("lit") or are counted as selected ("chosen")."""

    def read(app: AppTest, what: str = "lit") -> set[str]:
        (ids,) = (data["rows"]["id"] for data in sent(app) if "rows" in data)
        (bits,) = (data[what] for data in sent(app) if what in data)
        mask = np.unpackbits(np.frombuffer(base64.b64decode(bits), np.uint8), bitorder="little")
        return {ids[at] for at in np.flatnonzero(mask)}

    return read


@pytest.fixture
def document_of() -> Callable[..., dict]:
    """document_of(model, lang, points, fingerprint, probe): a document of `bgt-probe --json`, two tasks."""

    latents = {"semantic": 0.4, "language": 0.7, "majority": 0.2}

    def make(
        model: str = "m",
        lang: str = "en",
        points: float = -30.0,
        fingerprint: str | None = None,
        probe: str = "linear",
        langs: tuple[str, ...] = ("en", "fr"),
    ) -> dict:
        fingerprint = f"{model} fp32 cpu" if fingerprint is None else fingerprint
        entries = []
        for task in ("length", "punct-num"):
            rows = [
                ProbeScore(task, lang, name, 800, 100, 5, value, value - 0.1, value + 0.1, 0.01)
                for name, value in latents.items()
            ]
            gap = Difference(task, lang, "semantic", "language", points, points - 5, points + 5, 0.01)
            result = ProbeResult(task, lang, 1, 0, 0.95, rows, gap, 0).as_dict()
            entries.append(
                {"model": model, **result, "trail": {"fingerprint": fingerprint, "probe": probe, "langs": langs}}
            )
        return {"schema": SCHEMA, "results": entries}

    return make


def sent(app: AppTest) -> list[dict]:
    """What each part with JavaScript of its own is given."""
    return [json.loads(part.proto.json) for part in app.get("bidi_component")]
