"""Every page opens with every kind of model. If a model or a link can't be opened, the app explains the reason."""

import gc
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import streamlit as st

import app as package
import bgt_core
from app import serve, shell
from app.core import display, inventory, state
from app.sentence import page
from bgt_core.data.examples import example_sentences
from bgt_core.errors import DataError
from probes.results.store import write_cells
from tests.app.conftest import THREE, cells_of
from tests.close import assert_close

Open = Callable[..., Any]
Start = Callable[..., None]
OURS = (*("sp", "translator", "lstm", "bag-of-words", "paraphrases", "three languages"), "writer")
# fixture that returns an encoder -> prefix of this encoder's name in `--model`
OTHERS = {"function": "", "exported": "onnx:", "sentence_transformer": "sentence-transformers:"}
TRIPLES = example_sentences(THREE)[:270]
PAIR = ("Can you help me?", "He is my friend.")


@pytest.fixture
def begin(start: Start, model_of: Callable, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """begin(kind): start the app with a model of the kind `kind`."""

    def choose(kind: str) -> None:
        if kind == "shipped":
            start()
        elif kind in OTHERS:
            start("--model", f"{OTHERS[kind]}{request.getfixturevalue(kind)}")
        elif kind == "three languages":
            triples = tmp_path / "triples.tsv"
            triples.write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES), "utf-8")
            start("--model", model_of(kind), "--data", f"en,fr,de={triples}")
        else:
            start("--model", model_of(kind) if kind in OURS else kind)

    return choose


KINDS = ("title", "markdown", "caption", "info", "warning", "code")
SPLIT = "Split its vectors into two parts on *Your encoder*"
SAYS = {  # kind of model -> page -> a text that the page must show
    "shipped": {},
    "sp": {
        "sentence": "This model computes one latent from a sentence", "card": "25.0%",
        "maps": "This model has one latent", "rewrite": "no latent for style",
    },
    "translator": {
        "main": "A translator", "rewrite": "translates French into English, and has no latent for style",
        "maps": "one latent", "pairs": "the page compares only meaning.",
    },
    "lstm": {"sentence": "<b>syntactic latent</b>", "main": "N19-1254", "card": "chen2019"},
    "bag-of-words": {"rewrite": "generate sentences", "maps": "generate sentences"},
    "paraphrases": {"main": "2020.emnlp-main.122", "card": "wieting2020", "sentence": "paraphrases"},
    "three languages": {"maps": "There are 270 translations"},
    "writer": {},
    "function": {
        "main": "Its languages are unknown. Shown: English", "pairs": SPLIT,
        "maps": "*Your encoder* splits its vectors", "card": "external encoder",
    },
}  # fmt: skip


def texts(app: Any) -> str:
    """Return all texts that a page shows, and the URLs of its links."""
    return "\n".join([
        *(str(part.value) for kind in KINDS for part in app.get(kind)),
        *(part.value.to_string() for part in app.table), *(part.value for part in app.sidebar.text),
        *(part.proto.url for part in app.get("link_button")), app.html(),
    ])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAYS)
def test_every_page_opens_and_says_what_the_model_lacks(kind: str, begin: Callable, opened: Open) -> None:
    begin(kind)
    every = (
        ("main", *(page for page in shell.PAGES if page != "questions"))
        if kind in ("three languages", "function")
        else ("main", *SAYS[kind])
    )
    for name in dict.fromkeys(every):
        app = opened(name)
        assert app.title and not app.error, name
        assert SAYS[kind].get(name, "") in texts(app), name


def test_a_probe_of_both_latents_is_drawn_and_compared(begin: Callable, opened: Open) -> None:
    begin("lstm")
    app = opened("probes").press("Run")
    assert app.success and not app.error
    (figure,) = app.figures()
    colours = {trace["name"]: trace["marker"].get("color") for trace in figure["data"]}
    for latent in ("semantic", "syntactic"):
        assert colours[latent] == display.latent_colour(latent, "light")
    (gap,) = app.put(app.button_group(key="show"), "Latents compared").figures()
    assert gap["layout"]["xaxis"]["title"]["text"] == "← syntactic · semantic →"
    assert not any("Open grey symbols" in caption.value for caption in app.caption)


def test_each_of_three_languages_has_its_own_map_and_symbol(begin: Callable, opened: Open) -> None:
    begin("three languages")
    app = opened("maps", colour="Language")
    (semantic,), language = app.maps()
    assert [{row[:2] for row in panel["ids"]} for panel in language] == [{"en"}, {"fr"}, {"de"}]
    assert len(semantic["ids"]) == 3 * 270
    (data,) = (data for data in app.sent() if "shapes" in data)
    assert data["shapes"] == {"en": "circle", "fr": "diamond", "de": "triangle-up"}
    (langs,) = (column["categories"] for column in data["columns"] if column["name"] == "lang")
    assert [each["label"] for each in langs] == ["English", "French", "German"]
    assert len({each["colour"] for each in langs}) == 3


def test_many_sentences_are_embedded_once_though_nobody_knows_what_decides_the_vectors(begin: Callable) -> None:
    begin("function")
    model, texts = state.model(), [f"sentence {number}" for number in range(state.FEW + 1)]
    import letters_of

    first = state.embed(model, texts, "en", "semantic")
    count = len(letters_of.calls)
    assert np.array_equal(state.embed(model, texts, "en", "semantic"), first)
    assert len(letters_of.calls) == count
    st.cache_resource.clear()  # the same name may now mean another function
    state.embed(state.model(), texts, "en", "semantic")
    assert len(letters_of.calls) == count + 1


def test_folders_of_other_libraries_have_their_own_vectors(begin: Callable, saved: Path) -> None:
    begin("exported")
    vectors = state.embed(state.model(), PAIR, "fr", "semantic")
    assert_close(vectors, bgt_core.load(saved, "cpu", "fp32").embed(PAIR, lang="fr"))
    assert state.model().langs == ("en", "fr") and state.model().title == "exported"
    begin("sentence_transformer")
    assert state.titles()[0] == "bag"
    np.testing.assert_allclose(state.embed(state.model(), PAIR, "en", "semantic"), [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]])


@pytest.mark.parametrize("page", ["probes", "maps"])
def test_heads_of_columns_are_whole(opened: Open, start: Start, model_of: Callable, tmp_path: Path, page: str) -> None:
    """A column is wide enough for its title, which needs up to 6.6 pixels per character, plus 16 pixels for margins."""
    names = ("three languages", "paraphrases")
    write_cells(tmp_path / "r.parquet", [cell for name in names for cell in cells_of(str(model_of(name)))])
    models = [argument for name in names for argument in ("--model", model_of(name))]
    start(*models, "--results", tmp_path)
    app = opened(page)
    heads = [(table.proto.columns, list(table.value)) for table in app.dataframe]
    assert heads
    for columns, names in heads:
        for name, column in json.loads(columns or "{}").items():
            title, width = column.get("label") or name, column.get("width")
            if title in names and isinstance(width, int):
                assert 6.6 * len(title) + 16 <= width, (title, width)


SHIPPED = next(iter(inventory.shipped()))


@pytest.mark.slow
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9])])
def test_a_bad_checkpoint_is_named_and_the_app_lives_on(
    start: Start, opened: Open, saved: Path, tmp_path: Path, damage: Callable
) -> None:
    name = "model.safetensors"
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    damage(folder / name)
    start("--model", folder)
    app = opened("main")
    assert app.error
    (message,) = app.code
    assert str(folder) in message.value and (name in message.value or not (folder / name).exists())
    assert "Traceback" not in str(app)
    app.selectbox(key="ckpt").set_value(SHIPPED)  # the user can still choose another model
    assert app.run().text_input and not app.error
    app.selectbox(key="ckpt").set_value("model")
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    assert app.run().text_input and not app.error


def test_an_empty_folder_of_models_says_the_way_out(start: Start, opened: Open, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        start("--model", path)
        app = opened("main")
        assert path.name in app.code[0].value and any("--model" in part.value for part in app.markdown)
        assert SHIPPED in app.selectbox(key="ckpt").options


@pytest.mark.parametrize(
    ("parameters", "needs"),
    [
        ({"ckpt": "../../etc/passwd"}, "../../etc/passwd"),
        ({"ckpt": "<b>x</b>"}, "<b>x</b>"),
        ({"ckpt": "MiniLM, split (neural)"}, "MiniLM, split (neural)"),
        ({"with": "gone"}, "the model “gone”"),
        ({"data": "Yours: mine.tsv (en-fr)"}, "the sentences “Yours: mine.tsv"),
        ({"own": "AAAAAAAAAAAAAAAAAAAAAA"}, "sentences, files or encoders that are not kept any more"),
        ({"ckpt": "gone", "own": "x"}, "the model “gone”, sentences, files or encoders"),
    ],
)
def test_a_link_to_what_is_not_here_shows_nothing(opened: Open, parameters: dict[str, str], needs: str) -> None:
    app = opened("main", sentence="A cat.", **parameters)
    shown = app.text_input or app.markdown[1:] or app.html().count("<div")
    assert needs in app.error[0].value.replace("\\", "") and not shown
    app.press("Open the page without it")
    assert app.selectbox(key="ckpt").value == "model" and app.text_input[0].value == "A cat." and not app.error


def test_a_busy_model_is_no_crash(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        with state.inference(), state.inference():
            pytest.fail("one request at a time")

    monkeypatch.setattr(state, "PATIENCE", 0.01)
    monkeypatch.setattr(page, "page", busy)
    app = opened("main")
    assert "busy" in app.warning[0].value and [button.label for button in app.button] == ["Try again"]


def test_sessions_side_by_side_lose_nothing_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sys.path` loses no folder if reruns change it while Streamlit adds and removes the app's folder."""
    main = Path(package.__file__).parent / "main.py"
    code = compile(main.read_text("utf-8").partition("\nfrom app.")[0].replace("from __future__", "#"), main, "exec")
    monkeypatch.setattr(sys, "path", [*sys.path])
    before, folder = set(sys.path), str(main.parent)

    def others() -> None:
        for _ in range(2_000):
            sys.path.insert(0, folder)
            time.sleep(0)
            with suppress(ValueError):
                sys.path.remove(folder)

    def rerun() -> None:
        for _ in range(200):
            exec(code, {"__file__": str(main)})

    threads = [threading.Thread(target=work) for work in (others, rerun, rerun)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert before <= {*sys.path, folder}


@pytest.mark.slow
def test_a_wrong_name_lists_the_forms_and_the_shipped_model_still_opens(start: Start, opened: Open) -> None:
    start("--model", "sentense-transformers:x")
    app = opened("main")
    assert app.error and "sentense" in app.code[0].value
    (forms,) = (text.value for text in app.markdown if "onnx:FOLDER" in text.value)
    assert all(form in forms for form in ("onnx:FOLDER", "python:MODULE:OBJECT", "vectors:FILE"))
    app.selectbox(key="ckpt").set_value(SHIPPED)
    assert not app.run().error


def test_a_page_from_outside_is_drawn_as_the_others(opened: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_second_model_is_shown_beside_the_first(start: Start, opened: Open, saved: Path, function: str) -> None:
    start("--model", saved, "--model", function)
    one, two = (f"**{display.verbatim(title)}**" for title in state.titles()[:2])  # the second model can't write
    app = opened("main", **{"with": state.titles()[1]})
    titles = [part.value for part in app.markdown if part.value in (one, two)]
    assert titles == [one, one, two, one, one, one, two]  # pairs, neighbours, reconstruction, recombination, words
    assert app.html().count("Mean cosine of random pairs") == 3
    alone = app.put(app.box("Compare with"), None)
    assert not any(part.value == one for part in alone.markdown)


def test_the_default_model_is_open_before_the_first_page(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    monkeypatch.setitem(sys.modules, "streamlit.runtime", SimpleNamespace(exists=lambda: True))
    serve.prepare()
    monkeypatch.setattr(bgt_core, "open_encoder", lambda spec: pytest.fail("the model was opened again"))
    assert state.model().title == next(iter(inventory.read().models)) and gc.isenabled()


def test_a_model_that_does_not_open_is_explained_in_place_of_the_page(start: Start, opened: Open) -> None:
    start("--model", "/nowhere")
    app = opened("main")
    assert [title.value for title in app.title] == ["This model cannot be opened"] and "no such" in app.code[0].value
