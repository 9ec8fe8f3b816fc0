"""Fixtures that open pages of the app without a browser, with an untrained model."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

import bgt_core
from app.core import state
from bgt_core import checkpoint, recipes
from bgt_core.data.text import Tokenizer
from bgt_core.encoders import onnx
from bgt_core.generation import generate, search
from bgt_core.generation.options import DEFAULT_SEARCH
from bgt_core.recipes.recipe import Recipe
from probes.results.store import PREDICTIONS, Cell, Difference, ProbeResult, ProbeScore

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"
SCRIPT = """
import streamlit as st
from app import shell
there = st.Page(lambda: None, title="There", url_path="there")
st.navigation([there], position="hidden")
st.session_state["pages"] = dict.fromkeys(shell.PAGES, there)
shell.draw(shell.PAGES["{name}"], st.empty())
"""


class App(AppTest):
    """A page of the app, with methods for a user's actions. An exception in the page fails the test."""

    def run(self, *, timeout: float | None = None) -> App:
        super().run(timeout=timeout)
        assert not self.exception, [part.stack_trace for part in self.exception]
        return self

    def press(self, label: str) -> App:
        """Press the button whose label begins with this text, and run the page again."""
        (button,) = (button for button in self.button if button.label.startswith(label))
        button.click()
        return self.run()

    def put(self, widget: Any, value: object) -> App:
        """Set a widget of the page to this value, and run the page again."""
        widget.set_value(value)
        return self.run()

    def box(self, label: str) -> Any:
        """Return the only select box with this label."""
        (box,) = (box for box in self.selectbox if box.label == label)
        return box

    def upload(self, name: str, content: str | bytes) -> App:
        """Choose a file in the upload dialog."""
        self.press("Upload")
        content = content.encode() if isinstance(content, str) else content
        self.file_uploader(key="own_file").set_value((name, content, "text/plain"))
        return self.run()

    def html(self) -> str:
        return "".join(part.proto.body for part in self.get("html"))

    def sent(self) -> list[dict]:
        """Return the data that the page sends to each JavaScript component."""
        return [json.loads(part.proto.json) for part in self.get("bidi_component")]

    def figures(self) -> list[dict]:
        """Return the figures sent to plotly. Check that each figure has an alternative text."""
        charts = [chart.proto for chart in self.get("plotly_chart")]
        assert all(chart.alt for chart in charts)
        return [json.loads(chart.spec) for chart in charts]

    def maps(self) -> list[list[dict[str, Any]]]:
        """Return the panels of each map: row `ids` (N,), coordinates `xy` (N, 2 or 3), `path` of an interpolation."""
        (data,) = (data for data in self.sent() if "maps" in data)
        ids = np.array(data["rows"]["id"])
        return [[
            {"ids": ids[decoded(panel["rows"])], "path": panel["path"],
             "xy": np.column_stack([decoded(panel[side]) for side in "xyz" if side in panel])}
            for panel in drawn["panels"]
        ] for drawn in data["maps"]]  # fmt: skip

    def lit(self, what: str = "lit") -> set[str]:
        """Return the ids of the rows that the maps highlight ("lit") or count as selected ("chosen")."""
        (ids,) = (data["rows"]["id"] for data in self.sent() if "rows" in data)
        (bits,) = (data[what] for data in self.sent() if what in data)
        mask = np.unpackbits(np.frombuffer(base64.b64decode(bits), np.uint8), bitorder="little")
        return {ids[at] for at in np.flatnonzero(mask)}


def decoded(values: Mapping[str, str]) -> np.ndarray:
    """Decode an array that is sent to the browser in base64."""
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])


scanned = cache(manifest_scanner.scan_component_manifests)


@pytest.fixture
def fresh() -> Iterator[None]:
    """Clear the app's caches before and after a test; without this, tests share loaded models, vectors and maps."""
    st.cache_data.clear()
    st.cache_resource.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit generated texts to 12 tokens, as an untrained model never ends them. Let Streamlit scan packages once."""
    monkeypatch.setattr(state, "MAX_LENGTH", 12)
    for write in (generate.candidates, generate.generate, search.decode):
        monkeypatch.setitem(write.__kwdefaults__, "max_length", 12)
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", scanned)


@pytest.fixture
def start(saved: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """start(*arguments): set the command-line arguments of the app. By default, the app opens an untrained model."""

    def choose(*arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["main.py", *map(str, arguments)])

    choose("--model", saved)
    return choose


@pytest.fixture
def opened(start: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., App]:
    """opened(name, parameter=value, ...): open a page by a link with these parameters; "main" opens the app."""

    def show(name: str, **parameters: str) -> App:
        path = MAIN
        if name != "main":
            path = tmp_path_factory.mktemp("page") / f"{name}.py"
            path.write_text(SCRIPT.format(name=name), "utf-8")
        app = App(path, default_timeout=180)
        for parameter, value in parameters.items():
            app.query_params[parameter] = value
        return app.run()

    return show


@pytest.fixture
def library(saved: Path) -> Callable[..., list[generate.Candidate]]:
    """library(sources, styles, lang, source_lang): the best text `bgt_core` generates for each source and style."""
    bgt = bgt_core.load(saved)

    def written(sources: list[str], styles: list[str], lang: str = "en", source_lang: str = "") -> list:
        latents = generate.exchanged(bgt, sources, styles, lang, source_lang or lang)
        return [best for best, *_ in generate.candidates(bgt, latents, lang=lang, search=DEFAULT_SEARCH)]

    return written


def cells_of(
    model: str = "m",
    lang: str = "en",
    points: float = -30.0,
    fingerprint: str = "",
    probe: str = "linear",
    langs: tuple[str, ...] = ("en", "fr"),
    low: Mapping[str, float] = {},
) -> list[Cell]:
    """Return results of `bgt-probe` on two tasks. `points` is the difference between the latents' accuracies, in
    percentage points. `low` maps a latent to the lower end of its confidence interval."""
    trail = {"fingerprint": fingerprint or f"{model} fp32 cpu", "probe": probe, "langs": [*langs]}
    cells = []
    for task in ("length", "punct-num"):
        rows = [
            ProbeScore(task, lang, name, 800, 100, 5, value, low.get(name, value - 0.1), value + 0.1, 0.01)
            for name, value in {"semantic": 0.4, "language": 0.7, "majority": 0.2}.items()
        ]
        gap = Difference(task, lang, "semantic", "language", points, points - 5, points + 5, 0.01, 0.02)
        result = ProbeResult(task, lang, 1, 0, rows, gap, 0, predictions=PREDICTIONS.empty_table())
        cells.append(Cell(model, result, {**trail, "latents": ["semantic", "language"], "data": "mine"}))
    return cells


STRANGER = "http://stranger.test"
KINDS = (
    "selectbox", "multiselect", "button_group", "slider", "select_slider", "number_input", "text_input", "text_area",
    "toggle",
)  # fmt: skip
HOSTILE = f"![x]({STRANGER}/p.png) [click]({STRANGER}) {STRANGER} $x$ **b**"
SHOWN_AS_MARKDOWN = ("body", "label", "help", "text", "value_string", "delta")  # fields of Streamlit's elements
NOT_MARKDOWN = ("text", "code", "iframe", "bidi_component", "arrow_data_frame", "page_link", "html")


def hostile_in(app: AppTest) -> list[tuple[str, str]]:
    """Return the parts of `HOSTILE` that a browser would interpret as Markdown, each with the kind of its element."""
    shown = [(element.type, text) for element in app._tree for text in markdown_of(element)]
    return [(kind, text) for kind, text in shown if re.search(r"\[click\]\(|!\[x|http://stranger|\*\*b", text)]


def markdown_of(element: Any) -> list[str]:
    """Return the texts that an element asks the browser to show as Markdown."""
    if element.type in NOT_MARKDOWN or getattr(element, "proto", None) is None:
        return []
    fields = ((field.name, value) for field, value in element.proto.ListFields())
    return [value for name, value in fields if name in SHOWN_AS_MARKDOWN and isinstance(value, str)]


THREE = ("en", "fr", "de")
VGVAE = {"model.semantic_dim": 8, "model.syntactic_dim": 6, "model.d_model": 12}
SIDES = {f"kl/{latent}/{side}": 1.0 for latent in ("semantic", "syntactic") for side in "ab"}
LOGS: dict[str, dict[str, float]] = {  # kind of model -> metrics on held-out pairs in its training log
    "sp": {"kl/semantic": 0.0, "retrieval/en-fr": 0.25},
    "writer": {"elbo": -90.0, "kl/language": 1.5},
    "translator": {"translate/en": 17.1},
    "lstm": {"elbo": -90.0, "retrieval/a-b": 0.5, **SIDES},
    "bag-of-words": {"elbo": -90.0, "retrieval/a-b": 0.5, **SIDES},
    "paraphrases": {"elbo": -90.0, "retrieval/a-b": 0.5, **SIDES},
    "three languages": {"elbo": -90.0, "kl/semantic": 12.0, **dict.fromkeys((f"kl/{lang}" for lang in THREE), 0.5)},
}


@pytest.fixture(scope="session")
def model_of(
    tiny: Callable[..., Recipe],
    stirred: Callable[[torch.nn.Module], torch.nn.Module],
    tokenizer: Tokenizer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Path]:
    """model_of(kind): the folder of an untrained model of a kind in `LOGS`, with a training log; saved only once."""

    def recipe_of(kind: str) -> Recipe:
        if kind in ("lstm", "bag-of-words"):
            return recipes.configure("vgvae", {"model.decoder": kind, **VGVAE})
        langs = {"paraphrases": ["a:en", "b:en"], "translator": ["fr", "en"], "three languages": list(THREE)}
        name = kind if kind in recipes.RECIPES else "bgt-small"
        return tiny(name, **({"columns": langs[kind]} if kind in langs else {}))

    @cache
    def make(kind: str) -> Path:
        folder = tmp_path_factory.mktemp("kind") / kind.replace(" ", "-")
        torch.manual_seed(0)
        recipe = recipe_of(kind)
        checkpoint.save(folder, recipe, stirred(recipe.build(tokenizer)), tokenizer, step=7)
        rows = [{"kind": "valid", "step": step, "steps": 7, **LOGS[kind]} for step in (4, 7)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        return folder

    return make


LETTERS = """
import numpy as np

calls = []

def letters(sentences):
    calls.append(len(sentences))
    return np.array([[text.lower().count(letter) for letter in "aeinorst"] + [1] for text in sentences], float)
"""


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None) -> str:
    """The argument of `--model` that opens a user's own Python function as an encoder."""
    (tmp_path / "letters_of.py").write_text(LETTERS, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "letters_of", raising=False)
    return "python:letters_of:letters"


@pytest.fixture(scope="session")
def exported(saved: Path, made_once: Callable[..., Path]) -> Path:
    pytest.importorskip("onnxscript")
    return made_once("exported", lambda folder: onnx.export(checkpoint.load(saved), folder))


@pytest.fixture
def sentence_transformer(tmp_path: Path) -> Path:
    """A folder with a sentence-transformers model whose vectors are the counts of five words."""
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import BoW

    folder = tmp_path / "bag"
    library.SentenceTransformer(modules=[BoW(["you", "me", "he", "is", "a"])], device="cpu").save(str(folder))
    return folder
